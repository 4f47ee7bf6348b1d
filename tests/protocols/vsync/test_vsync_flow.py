"""Flow control and repair inside a view: shares, words by bytes, greetings, departures, a lost window."""

from collections import Counter
from random import Random

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, group

from semcast.core import Item
from semcast.core.events import Blocked, Left, Unblocked
from semcast.core.ids import SECOND
from semcast.core.outbox import Frame
from semcast.protocols.semantic.frames import Data, Request
from semcast.protocols.vsync import Order, VsyncSettings
from semcast.protocols.vsync.flow import Shares
from semcast.protocols.vsync.frames import InView, Received, Superseded, Welcome


def of_kind(frame: Frame, kind: type[Frame]) -> bool:
    return isinstance(frame.frame if isinstance(frame, InView) else frame, kind)


def test_a_share_is_what_all_senders_have_room_for_and_a_word_comes_before_it_is_used_up() -> None:
    shares = Shares(VsyncSettings(fair=True, buffer_messages=64, window_bytes=9000), 3)
    assert [shares.messages(senders) for senders in (1, 2, 3)] == [32, 21, 16]
    assert [shares.bytes(senders) for senders in (1, 2, 3)] == [9000, 4500, 3000]
    assert shares.tell_every <= shares.messages(3) // 2
    assert shares.tell_bytes <= shares.bytes(3) // 2


def test_who_sends_alone_may_use_more_than_who_sends_with_others() -> None:
    lab = group(fair=True)
    a, b, _ = lab.nodes.values()
    assert a.multicast(*[b"x"] * 64) == 32
    lab.run(100 * MS)
    assert b.multicast(b"y") == 1
    lab.run(MS + 1)
    assert a.multicast(*[b"x"] * 64) == 21
    assert [type(event) for event in a.events if isinstance(event, Blocked | Unblocked)][-1] is Blocked
    lab.run(100 * MS)
    assert [type(event) for event in a.events if isinstance(event, Blocked | Unblocked)][-1] is Unblocked


def test_nobody_is_refused_where_all_keep_to_their_shares() -> None:
    lab = group(fair=True, buffer_messages=64)
    for _ in range(200):
        for node in lab.nodes.values():
            node.multicast(*[b"x"] * 10)
        lab.run(MS)
    lab.run(SECOND)
    nodes = list(lab.nodes.values())
    assert nodes[0].stack.stats.delivered > 1000
    assert len({len(node.messages) for node in nodes}) == 1
    assert [node.stack.stats.refused for node in nodes] == [0, 0, 0]


def test_all_send_and_some_is_lost_without_a_collapse() -> None:
    """Without shares, members whose own messages fill their buffers refuse those they asked for.

    A few refusals come in bursts, in one run of ten, and so several runs are counted together.
    """
    refused = 0
    for seed in range(4):
        rng = Random(seed)
        lab = group("abcd", fair=True)
        lab.lost = lambda _source, _dest, frame, rng=rng: (  # type: ignore[misc]
            isinstance(frame, InView | Received) and rng.random() < 0.1
        )
        for _ in range(150):
            for node in lab.nodes.values():
                node.multicast(b"x", b"y")
            lab.run(2 * MS)
        assert min(len(node.messages) for node in lab.nodes.values()) > 600
        refused += sum(node.stack.stats.refused for node in lab.nodes.values())
    assert refused < 4 * 60


def test_large_messages_are_acknowledged_by_their_bytes() -> None:
    """No heartbeat is waited for: it would take a second for each window."""
    lab = group(window_bytes=6000, buffer_messages=512)
    a, b, c = lab.nodes.values()
    start, sent = lab.now, 0
    while sent < 100:
        sent += a.multicast(*[bytes(1000)] * (100 - sent))
        lab.run(MS)
    lab.run(10 * MS)
    assert len(b.messages) == len(c.messages) == 100
    assert lab.now - start < 100 * MS


def test_what_is_obsolete_and_safe_takes_up_nothing_of_a_share() -> None:
    lab = group(fair=True, buffer_messages=8)
    a = lab.nodes["a"]
    lab.lost = lambda _source, dest, frame: dest == "c" and of_kind(frame, Data)
    for _ in range(40):
        assert a.multicast(b"x", annotation=Item("x"))
        lab.run(25 * MS)
    assert len(lab.nodes["b"].messages) == 40


def test_nothing_is_sent_to_who_joined_and_has_not_heard_of_it() -> None:
    """Its welcome is late: what the founder sent at once would be lost on it."""
    lab = Lab()
    a = lab.add("a", minimum=1, greeting=SECOND)
    lab.run(300 * MS)
    b = lab.add("b", minimum=0, greeting=SECOND)
    late: list[Frame] = []

    def lose(_source: str, dest: str, frame: Frame) -> bool:
        if dest == "b" and isinstance(frame, Welcome) and not late:
            late.append(frame)
            return True
        return False

    lab.lost = lose
    while a.stack.view().id < 2:
        lab.run(MS)
    assert a.multicast(b"early") == 0
    lab.run(300 * MS)
    assert late
    assert a.multicast(b"in time") == 1
    lab.run(100 * MS)
    assert [payload for _, _, payload in b.messages] == [b"in time"]
    assert b.stack.stats.requested == 0


def test_a_newcomer_that_is_never_heard_is_not_waited_for_longer_than_set() -> None:
    lab = Lab()
    a = lab.add("a", minimum=1, greeting=50 * MS)
    lab.run(300 * MS)
    lab.add("b", minimum=0)
    while a.stack.view().id < 2:
        lab.run(MS)
    lab.lost = lambda _source, _dest, _frame: True
    assert a.multicast(b"x") == 0
    lab.run((50 + 20) * MS)  # and the next heartbeat
    assert a.multicast(b"x") == 1


@pytest.mark.parametrize("linger", [0, SECOND])
def test_who_leaves_stays_until_others_have_what_it_has(linger: int) -> None:
    lab = group(linger=linger)
    a, b, c = lab.nodes.values()
    lab.lost = lambda _source, dest, frame: dest == "c" and of_kind(frame, Data)
    a.multicast(*[b"x"] * 10)
    lab.run(2 * MS)
    a.leave()
    assert a.stack.phase() == ("operational" if linger else "flushing")
    lab.run(30 * MS)
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(SECOND)
    assert lab.phases() == {"a": "left", "b": "operational", "c": "operational"}
    assert len(b.messages) == len(c.messages) == 10


def test_who_is_put_out_and_misses_the_decision_still_hears_why() -> None:
    lab = group(expel_after=100 * MS)
    a, _, c = lab.nodes.values()
    lab.lost = lambda _source, dest, frame: dest == "c" and not isinstance(frame, Received | Superseded)
    a.multicast(b"x")
    lab.run(SECOND)
    assert lab.phases() == {"a": "operational", "b": "operational", "c": "left"}
    assert [event.cause for event in c.events if isinstance(event, Left)] == ["put out: too slow"]


def test_who_leaves_does_not_wait_for_ever() -> None:
    lab = group(linger=100 * MS)
    a = lab.nodes["a"]
    lab.lost = lambda _source, dest, frame: dest == "c" and of_kind(frame, Data)
    a.multicast(b"x")
    a.leave()
    lab.run(90 * MS)
    assert a.stack.phase() == "operational"
    lab.run(50 * MS)
    assert a.stack.phase() != "operational"


# Repair


def deaf_member(messages: int, each: int, order: Order) -> tuple[Lab, Counter[str], int]:
    """A member that lost everything another sent; returns what it was sent since, and when that began."""
    lab = group(buffer_messages=1 << 15, order=order)
    a, c = lab.nodes["a"], lab.nodes["c"]
    lab.lost = lambda _source, dest, frame: dest == "c" and isinstance(frame, InView)
    for _ in range(messages // each):
        assert a.multicast(*[bytes(64)] * each) == each
    lab.run(5 * MS)
    frames: Counter[str] = Counter()

    def count(source: str, dest: str, frame: Frame) -> bool:
        if "c" in (source, dest) and isinstance(frame, InView):
            frames[type(frame.frame).__name__] += 1
        return False

    lab.lost = count
    start = lab.now
    while len(c.messages) < messages and lab.now < start + 20 * SECOND:
        lab.run(MS)
    assert len(c.messages) == messages
    return lab, frames, start


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(("messages", "each"), [(4000, 500), (2000, 1)])
def test_a_lost_window_comes_back_in_a_few_round_trips(order: Order, messages: int, each: int) -> None:
    """Slow start in frames: 4, 8, 16, 32, 64, ...; each frame as full as it can be."""
    lab, frames, start = deaf_member(messages, each, order)
    full = messages * (64 + 3) / 1300
    assert frames["Data"] <= 1.3 * full + 8
    assert frames["Request"] <= frames["Data"]
    assert lab.now - start < 150 * MS, "round trips of 2 ms, and what was asked for in vain"


def test_one_request_is_answered_within_bounds() -> None:
    lab = group(buffer_messages=1 << 15, repair_bytes=5000)
    a, b = lab.nodes["a"], lab.nodes["b"]
    assert a.multicast(*[bytes(64)] * 2000) == 2000
    lab.bench.drop()
    a.hear(b.member, InView(1, Request(0, [(1, 500), (400, 2000), (3000, 1 << 61), (7, 5)])))
    again = [frame.frame.payloads for frame in lab.sent() if of_kind(frame, Data)]  # type: ignore[attr-defined]
    assert 5000 <= sum(67 * len(payloads) for payloads in again) <= 5000 + 1300


def test_a_view_ends_soon_though_one_lacks_everything() -> None:
    """What a frozen stream lacks is fetched at the same pace."""
    lab = group(buffer_messages=1 << 15)
    a, b, c = lab.nodes.values()
    lab.lost = lambda source, dest, frame: (source, dest) == ("a", "c") and isinstance(frame, InView)
    assert a.multicast(*[bytes(64)] * 4000) == 4000
    lab.run(2 * MS)
    a.alive = False
    while b.stack.view().id == 1:
        lab.run(MS)
    start = lab.now
    while c.stack.view().id == 1:
        lab.run(MS)
    assert lab.now - start < 200 * MS
    assert len(b.messages) == len(c.messages) == 4000
