"""What chapters 4, 5.2 and appendix A state about S-RM, one test each, by hand."""

from typing import Any

import pytest

from semcast.core import Blocked, Enumeration, Frame, Item, MessageId, Unblocked
from semcast.core.ids import MILLISECOND
from semcast.obsolescence import Purging
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import Data, Gossip, Notice, Request
from semcast.sim.mutants.semantic import PurgeAnnouncedEarly, PurgeWithoutSafety, SafetyCountsReceived

SETTINGS = Settings(buffer_messages=10)


def not_to(*names: str) -> Any:
    return lambda _source, dest, _frame: dest not in names


def make_safe(lab: Any, first: str, second: str) -> None:
    """Enough gossip between two of three members for what both queued to be safe at both."""
    for source, dest in ((first, second), (second, first)) * 2:
        lab.gossip(source, dest)
        lab.carry()


def test_a_message_is_delivered_by_everybody_the_sender_included(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1")
    lab.carry()
    assert [lab.read(name) for name in "pqr"] == [[b"m1"]] * 3


def test_with_an_empty_relation_nothing_is_ever_skipped(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    for number in range(5):
        lab.multicast("p", b"%d" % number)
    lab.carry()
    assert lab.read("q") == [b"0", b"1", b"2", b"3", b"4"]
    assert lab.purged("q") == []


def test_the_delivery_queue_is_purged_at_once_without_safety(make_lab: Any) -> None:
    """4.3.2: purging of the delivery queue does not need to be restricted to safe messages."""
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"old", Item("x"))
    lab.multicast("p", b"new", Item("x"))
    lab.carry()
    assert lab.read("q") == [b"new"]
    assert lab.purged("q") == [1]


def test_a_retransmission_buffer_waits_for_safety(make_lab: Any) -> None:
    """TP5: m leaves O only when some m' that makes it obsolete is safe."""
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"old", Item("x"))
    lab.multicast("p", b"new", Item("x"))
    p = lab.members["p"]
    lab.carry(not_to("q", "r"))
    lab.gossip("p", "q")
    lab.carry()
    assert len(p.buffers.retained[0]) == 2, "nobody else has queued the new one yet"
    lab.multicast("p", b"other")
    lab.request("q")
    lab.carry()
    lab.carry()
    make_safe(lab, "p", "q")
    assert [batch.payloads for batch in p.buffers.retained[0]] == [[b"new"], [b"other"]]


@pytest.mark.parametrize(
    ("stack", "kept"), [(None, [b"m1", b"m2", b"m3"]), (SafetyCountsReceived, [b"m2", b"m3"])]
)
def test_a_message_behind_a_gap_does_not_count_as_queued(
    make_lab: Any, stack: Any, kept: list[bytes]
) -> None:
    """4.3.2: who received m3 without m1 and m2 does not vouch for it, so p keeps the m1 that m3 replaces."""
    lab = make_lab("pqr", SETTINGS) if stack is None else make_lab("pqr", SETTINGS, stack)
    for payload, annotation in ((b"m1", Item("x")), (b"m2", None), (b"m3", Item("x"))):
        lab.multicast("p", payload, annotation)
    lab.members["p"]._track(lab.now)
    lab.carry(lambda _s, dest, frame: dest == "q" and isinstance(frame, Data) and frame.first == 3)
    make_safe(lab, "p", "q")
    retained = lab.members["p"].buffers.retained[0]
    assert [payload for batch in retained for payload in batch.payloads] == kept


def test_appendix_a2_first_scenario(make_lab: Any) -> None:
    """q learns that m1 was purged although the messages that replace it may go on for ever."""
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1", Item("x"))
    lab.multicast("p", b"m2")
    lab.multicast("p", b"m3", Item("x"))
    lab.carry(not_to("q"))
    make_safe(lab, "p", "r")
    for number in range(4, 8):
        # Each makes its predecessor obsolete; none of them gets to q.
        lab.multicast("p", b"m%d" % number, Item("x"))
        lab.carry(not_to("q"))
        make_safe(lab, "p", "r")
    lab.gossip("p", "q")
    lab.carry()
    lab.request("q")
    answers: list[Frame] = []
    lab.carry()
    answers = [frame for _, dest, frame in lab.wire if dest == "q"]
    assert any(isinstance(frame, Notice) for frame in answers)
    lab.carry()
    assert lab.read("q")[0] == b"m2"
    assert 1 in lab.purged("q")


@pytest.mark.parametrize("answered", [True, False])
def test_appendix_a2_second_scenario(make_lab: Any, answered: bool) -> None:
    """p crashes after q got m2; m3, which replaces m1, reached nobody. q must not skip m1."""
    lab = make_lab("pqr", SETTINGS)
    delivered = second_scenario(lab, answered)
    assert delivered == ([b"m1", b"m2"] if answered else [])
    assert lab.purged("q") == []


@pytest.mark.parametrize("mutant", [PurgeWithoutSafety, PurgeAnnouncedEarly])
def test_appendix_a2_second_scenario_breaks_the_naive_protocol(make_lab: Any, mutant: Any) -> None:
    lab = make_lab("pqr", SETTINGS, mutant)
    assert second_scenario(lab, answered=True) == [b"m2"], "q delivered m2 and will never have m1 or m3"


def second_scenario(lab: Any, answered: bool) -> list[bytes]:
    for payload, annotation in ((b"m1", Item("x")), (b"m2", None), (b"m3", Item("x"))):
        lab.multicast("p", payload, annotation)
    p_track = lab.members["p"]
    p_track._track(lab.now)
    lab.carry(lambda _s, dest, frame: dest == "q" and isinstance(frame, Data) and frame.first == 2)
    lab.request("q")
    lab.carry()  # the request reaches p
    lab.carry(lambda *_: answered)  # p's answer
    lab.crash("p")
    for name in "qrqr":
        lab.gossip(name, *"qr")
        lab.carry()
        lab.request(name)
        lab.carry()
        lab.carry()
    result: list[bytes] = lab.read("q")
    return result


def test_a_holder_repairs_when_the_sender_died(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1")
    lab.carry(not_to("q"))
    lab.crash("p")
    lab.gossip("r", "q")
    lab.carry()
    lab.request("q")
    assert [(source, dest) for source, dest, frame in lab.wire if isinstance(frame, Request)] == [("q", "r")]
    lab.carry()
    lab.carry()
    assert lab.read("q") == [b"m1"]


def test_the_last_message_is_missed_by_gossip_alone(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"only")
    lab.drop()
    lab.gossip("p", "q", "r")
    lab.carry()
    for name in "qr":
        lab.request(name)
    lab.carry()
    lab.carry()
    assert lab.read("q") == lab.read("r") == [b"only"]


def test_stability_needs_every_member_and_empties_the_buffers(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1")
    lab.carry(not_to("r"))
    make_safe(lab, "p", "q")
    assert len(lab.members["p"].buffers.retained[0]) == 1
    lab.gossip("p", "r")
    lab.carry()
    lab.request("r")
    lab.carry()
    lab.carry()
    for source, dest in (("p", "q"), ("q", "r"), ("r", "p"), ("p", "q"), ("q", "r")) * 2:
        lab.gossip(source, dest)
        lab.carry()
    assert [len(member.buffers.retained[0]) for member in lab.members.values()] == [0, 0, 0]


def test_a_failed_member_no_longer_stops_stability(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1")
    lab.carry(not_to("r"))
    make_safe(lab, "p", "q")
    lab.crash("r")
    make_safe(lab, "p", "q")
    assert len(lab.members["p"].buffers.retained[0]) == 0


def test_uniform_delivery_waits_for_safety(make_lab: Any) -> None:
    lab = make_lab("pqr", Settings(buffer_messages=10, uniform=True))
    lab.multicast("p", b"m1")
    assert not lab.members["p"].deliverable()
    lab.carry()
    make_safe(lab, "p", "q")
    assert lab.read("p") == lab.read("q") == [b"m1"]
    assert lab.read("r") == []


def test_flow_control_blocks_and_says_so(make_lab: Any) -> None:
    lab = make_lab("pqr", Settings(buffer_messages=5))
    accepted = [lab.multicast("p", b"%d" % number) for number in range(5)]
    assert accepted == [True, True, True, False, False], "two slots are kept for the other senders"
    assert [type(event) for event in lab.events["p"]] == [Blocked]
    lab.carry()
    for name in "pqr":
        lab.read(name)
    for source, dest in (("p", "q"), ("q", "r"), ("r", "p"), ("p", "q")) * 2:
        lab.gossip(source, dest)
        lab.carry()
    assert [type(event) for event in lab.events["p"]] == [Blocked, Unblocked]
    assert lab.multicast("p", b"again")


def test_only_the_declared_senders_keep_slots(make_lab: Any) -> None:
    lab = make_lab("pqr", Settings(buffer_messages=5, senders=(0,)))
    assert [lab.multicast("p", b"%d" % number) for number in range(6)] == [True] * 5 + [False]
    with pytest.raises(ValueError, match="not among the senders"):
        lab.multicast("q", b"no")


def test_a_full_receiver_accepts_what_replaces_a_stable_message(make_lab: Any) -> None:
    """5.1.1: under congestion a message is accepted only if it makes one in the buffer obsolete."""
    lab = make_lab("pq", Settings(buffer_messages=3, senders=(0,)))
    for payload, item in ((b"a1", "a"), (b"b1", "b"), (b"c1", "c")):
        lab.multicast("p", payload, Item(item))
    lab.read("p")
    lab.carry()
    for source, dest in (("p", "q"), ("q", "p")) * 3:
        lab.gossip(source, dest)
        lab.carry()
    lab.multicast("p", b"d1", Item("d"))
    lab.carry()
    q = lab.members["q"]
    assert q.buffers.queued == [3, 0], "d1 waits at the door"
    lab.request("q")
    assert not lab.wire, "and is not asked for"
    assert lab.read("q", 1) == [b"a1"]
    assert q.buffers.queued == [4, 0]
    lab.multicast("p", b"b2", Item("b"))
    lab.carry()
    assert q.buffers.queued == [5, 0], "b2 replaces b1 and takes its place"
    assert q.stats.refused == 0
    assert lab.read("q") == [b"c1", b"d1", b"b2"]


def test_lazy_purging_purges_only_for_room(make_lab: Any) -> None:
    lab = make_lab("pq", Settings(buffer_messages=3, senders=(0,), purging=Purging.LAZY))
    lab.multicast("p", b"a1", Item("a"))
    lab.multicast("p", b"a2", Item("a"))
    lab.carry()
    assert len(lab.members["q"].buffers.to_deliver) == 2
    assert lab.read("q") == [b"a1", b"a2"]


def test_enumerations_name_what_they_replace(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1", Enumeration(()))
    lab.multicast("p", b"m2", Enumeration(()))
    lab.multicast("p", b"m3", Enumeration((MessageId(lab.ids["p"], 1),)))
    lab.carry()
    assert lab.read("q") == [b"m2", b"m3"]


def test_a_sender_stays_within_its_window(make_lab: Any) -> None:
    """Purged messages take no buffer, but the distance to what is stable is bounded all the same."""
    lab = make_lab("pqr", Settings(buffer_messages=8, window=8, senders=(0,)))
    sent = 0
    for number in range(20):
        sent += lab.multicast("p", b"%d" % number, Item("x"))
        lab.carry(not_to("r"))
        make_safe(lab, "p", "q")
    assert sent == 8


def test_requests_are_not_repeated_before_their_time(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast("p", b"m1")
    lab.multicast("p", b"m2")
    lab.carry(lambda _s, dest, frame: dest == "q" and frame.first == 2)
    lab.request("q")
    assert len(lab.wire) == 1
    lab.drop()
    lab.request("q", after=1)
    assert lab.wire == []
    lab.request("q", after=60 * MILLISECOND)
    assert [type(frame) for *_, frame in lab.wire] == [Request]
    assert lab.members["q"].stats.request_timeouts == 1


def test_gossip_is_linear_in_the_group_whatever_was_sent(make_lab: Any) -> None:
    lab = make_lab("pqrstuv", Settings(buffer_messages=100))
    for number in range(50):
        lab.multicast("p", b"%d" % number, Item("x"))
    lab.drop()
    lab.gossip("p", *"qrstuv")
    frames = [frame for *_, frame in lab.wire]
    assert len(frames) == 3, "the fanout"
    assert isinstance(frames[0], Gossip)
    assert len(frames[0].received) == len(frames[0].stability.minimum) == 7


# What a sceptic found, each once a defect


def test_room_freed_by_purging_wakes_the_sender(make_lab: Any) -> None:
    lab = make_lab("pqr", Settings(buffer_messages=4, senders=(0,)))
    while lab.multicast("p", b"x", Item("a")):
        pass
    assert [type(event) for event in lab.events["p"]][-1] is Blocked
    for _ in range(3):
        lab.carry(not_to("r"))
        lab.read("p")
        lab.read("q")
        lab.request("q")
        make_safe(lab, "p", "q")
    assert [type(event) for event in lab.events["p"]][-1] is Unblocked, "r is asleep, but q is enough"


def test_two_members_full_of_their_own_bytes_do_not_deadlock(make_lab: Any) -> None:
    settings = Settings(buffer_messages=20, max_message=1000, buffer_bytes=2000, purging=Purging.OFF)
    lab = make_lab("pq", settings)
    for name in "pq":
        lab.multicast(name, b"s")
    exchange(lab, 5)
    lab.drop()
    for name in "pq":
        lab.multicast(name, b"x" * 998)
        lab.multicast(name, b"x" * 1000)
    lab.drop()
    for _ in range(40):
        exchange(lab, 2)
        for name in "pq":
            lab.read(name)
    assert lab.members["p"].buffers.queued == lab.members["q"].buffers.queued


def test_a_large_message_does_not_slip_in_for_a_small_victim(make_lab: Any) -> None:
    lab = make_lab("pq", Settings(buffer_messages=20, max_message=1000, buffer_bytes=4000))
    for number in range(8):
        lab.multicast("p", b"v", Item(f"i{number}"))
    exchange(lab, 6)
    for number in range(8):
        lab.multicast("p", b"W" * 1000, Item(f"i{number}"))
    assert lab.members["p"].buffers.occupancy.bytes <= 4000


def test_messages_of_a_crashed_sender_still_have_a_slot(make_lab: Any) -> None:
    lab = make_lab("pqr", Settings(buffer_messages=4, purging=Purging.OFF))
    lab.multicast("p", b"last words")
    lab.carry(not_to("q"))
    lab.crash("p")
    while lab.multicast("q", b"busy"):
        pass
    lab.drop()
    lab.gossip("r", "q")
    lab.carry()
    for _ in range(3):
        lab.request("q", after=2000 * MILLISECOND)
        lab.carry()
        lab.carry()
    assert b"last words" in lab.read("q")


def test_what_waits_for_a_predecessor_is_bounded_in_bytes(make_lab: Any) -> None:
    lab = make_lab("pq", Settings(buffer_messages=1000, max_message=1000, buffer_bytes=4000))
    q = lab.members["q"]
    for seq in range(2, 900):
        lab.hear("q", "p", Data(0, seq, [bytes(1000)]))
    assert sum(batch.size for batch in q.buffers.pending[0].values()) <= 4000


def test_beyond_f_crashes_memory_stays_bounded_and_survivors_go_on(make_lab: Any) -> None:
    """More crashed than the model allows; what is stable is safe all the same."""
    lab = make_lab("pqr", Settings(buffer_messages=10, uniform=True))
    lab.crash("q")
    lab.crash("r")
    got = 0
    for number in range(200):
        lab.multicast("p", b"%d" % number, Item(f"i{number % 3}"))
        lab.gossip("p")
        lab.gossip("p")
        got += len(lab.read("p"))
    assert got > 100
    assert len(lab.members["p"].buffers.retained[0]._buffer._index_of(lab.ids["p"]).condemned) < 10


def exchange(lab: Any, times: int) -> None:
    """Everybody gossips, asks, and hears each other."""
    for _ in range(times):
        for name in lab.members:
            lab.gossip(name, *lab.members)
            lab.request(name, after=100 * MILLISECOND)
        lab.carry()
        lab.carry()
