"""The ring against frames that no correct member sends: dropped, counted, bounded."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semcast.core import Batch, Frame, MemberId, Nanos, Outbox
from semcast.core.events import Delivery, ViewChange
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.lab import Keeper, Lab
from semcast.protocols.ring import Ring, RingSettings, State
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    ConfRecord,
    FormToken,
    Join,
    Leave,
    Packet,
    Part,
    Presence,
    RecoveryToken,
    Token,
    TokenAck,
    TokenWanted,
)
from semcast.protocols.ring.passing import RingTimer
from semcast.protocols.ring.settings import REACH
from semcast.protocols.semantic.frames import FRAMES as SEMANTIC_FRAMES
from semcast.protocols.semantic.frames import ChannelAck
from semcast.wire import Codec, Datagram
from semcast.wire.annotations import WireItem
from semcast.wire.limits import MAX_HOLES, MAX_MEMBERS, MAX_SEQ

SMALL = RingSettings(
    window=16, visit=8, visit_least=2, packet_bytes=100, queue_messages=50, send_messages=50, max_message=1000
)
TERMS = SMALL.terms()
STRANGER = MemberId("stranger")
CODEC = Codec("bench", [], 1400, (*RING_FRAMES, *SEMANTIC_FRAMES))


class Listener(Keeper):
    """Keeps the messages, and who sent them, and the views."""

    def __init__(self, got: list[tuple[MemberId, int, bytes]], views: list[ViewChange]) -> None:
        super().__init__()
        self._got = got
        self._views = views

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self._got += [(each.sender, message.id.seq, message.payload) for message in each.messages()]
        elif isinstance(each, ViewChange):
            self._views.append(each)


class Bench:
    """Members of a ring in virtual time on a perfect network, whose frames can be kept, lost or made up."""

    def __init__(self, names: str, limits: RingSettings = SMALL) -> None:
        self.ids = {name: MemberId(name) for name in names}
        self.rings = {name: Ring(member, limits, Random(name), Outbox()) for name, member in self.ids.items()}
        self.passes: Callable[[str, str, Frame], bool] = lambda *_: True
        self.seen: list[tuple[str, str, Frame]] = []
        """What has arrived."""
        self.got: dict[str, list[tuple[MemberId, int, bytes]]] = {name: [] for name in names}
        self.views: dict[str, list[ViewChange]] = {name: [] for name in names}
        self.lab = Lab(latency=50 * MICROSECOND)
        self.lab.carries = self._carries
        for name, ring in self.rings.items():
            self.lab.add(self.ids[name], ring, Listener(self.got[name], self.views[name]))

    @property
    def now(self) -> Nanos:
        return self.lab.now

    def start(self) -> "Bench":
        self.lab.start()
        return self

    def run(self, duration: Nanos) -> "Bench":
        self.lab.run(duration)
        return self

    def inject(self, name: str, source: MemberId, frame: Frame) -> None:
        self.lab.seats[name].hear(source, frame)

    def multicast(self, name: str, *payloads: bytes, safe: bool = False) -> int:
        return self.lab.seats[name].multicast(*payloads, safe=safe)

    def leave(self, name: str) -> None:
        self.lab.seats[name].call(lambda stack, now: stack.leave(now))

    def sent(self) -> list[Frame]:
        """What is under way."""
        return [frame for letter in self.lab.wire for frame in letter.frames]

    def _carries(self, source: str, dest: str, frame: Frame) -> bool:
        if not self.passes(source, dest, frame):
            return False
        self.seen.append((source, dest, frame))
        return True

    def together(self) -> bool:
        confs = {ring.order.conf for ring in self.rings.values()}
        whole = all(len(ring.order.members) == len(self.rings) for ring in self.rings.values())
        return len(confs) == 1 and whole and all(r.state is State.OPERATIONAL for r in self.rings.values())

    def dropped(self, name: str) -> int:
        stats = self.rings[name].stats
        return stats.malformed + stats.stale


def until(bench: Bench, name: str, state: State) -> None:
    for _ in range(1000):
        if bench.rings[name].state is state:
            return
        bench.run(MILLISECOND)
    raise AssertionError(f"{name} never came to {state}")


def works(bench: Bench) -> None:
    """Everybody still gets what anybody sends, in one order, in one view."""
    bench.run(3 * SECOND)
    assert bench.together()
    before = {name: len(got) for name, got in bench.got.items()}
    for name in bench.rings:
        bench.multicast(name, b"still works " + name.encode())
    bench.run(SECOND)
    news = [got[before[name] :] for name, got in bench.got.items()]
    assert len(news[0]) == len(bench.rings), news
    assert all(new == news[0] for new in news)


@pytest.fixture
def bench() -> Bench:
    """p, q and r in one ring; everybody has sent something."""
    found = Bench("pqr").start().run(SECOND)
    assert found.together()
    for name in "pqr":
        found.multicast(name, b"hello", b"from " + name.encode())
    found.run(200 * MILLISECOND)
    assert len(found.got["q"]) == 6
    return found


# Tokens


def token_for(ring: Ring, **changes: Any) -> Token:
    """A token that `ring` would accept from its predecessor, but for the changes."""
    order = ring.order
    good = Token(order.conf, ring.passing.number + 1, order.highest_seq, order.my_aru, -1, [], 0)
    return msgspec.structs.replace(good, **changes)


TOKENS: dict[str, Callable[[Ring], Token]] = {
    "absurd seq": lambda ring: token_for(ring, seq=MAX_SEQ),
    "seq just beyond what can be under way": lambda ring: token_for(
        ring, seq=ring.order.my_aru + REACH * SMALL.window + 1
    ),
    "aru above seq": lambda ring: token_for(ring, aru=ring.order.highest_seq + 1),
    "seq that went back": lambda ring: token_for(ring, seq=ring.order.highest_seq - 1, aru=0),
    "lowered by somebody beyond the ring": lambda ring: token_for(ring, lowered_by=3, aru=0),
    "a request for number 0": lambda ring: token_for(ring, rtr=[(0, 1)]),
    "a request beyond seq": lambda ring: token_for(ring, rtr=[(1, MAX_SEQ)]),
    "a request that ends before it begins": lambda ring: token_for(ring, rtr=[(3, 1)]),
    "another configuration": lambda ring: token_for(ring, conf=ConfId(99, ring.me)),
    "an old configuration": lambda ring: token_for(ring, conf=ConfId(1, ring.me)),
    "a number from before": lambda ring: token_for(ring, number=ring.passing.number),
    "number 0": lambda ring: token_for(ring, number=0),
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_that_cannot_be_are_dropped_and_counted(bench: Bench, name: str) -> None:
    ring = bench.rings["q"]
    before = (bench.dropped("q"), ring.passing.number, ring.order.highest_seq, ring.order.my_aru)
    ring.on_frame(bench.now, ring.order.predecessor, TOKENS[name](ring))
    assert (bench.dropped("q") - 1, ring.passing.number, ring.order.highest_seq, ring.order.my_aru) == before
    assert all(isinstance(frame, TokenAck) for _, frame in ring.out.sends), "it is not passed on"
    ring.out.sends.clear()
    works(bench)


def test_a_token_from_somebody_else_than_the_predecessor_is_dropped(bench: Bench) -> None:
    ring = bench.rings["q"]
    for source in (ring.order.successor, STRANGER, MemberId(ring.order.predecessor.name, 1)):
        before = ring.stats.malformed
        bench.inject("q", source, token_for(ring))
        assert ring.stats.malformed == before + 1
    works(bench)


def test_a_token_that_lies_about_aru_does_not_make_anything_safe_here() -> None:
    """Somebody says that everybody has everything: this member knows better about itself."""
    bench = Bench("pqr").start().run(SECOND)
    ring = bench.rings["q"]
    rank = {member.name: place for place, member in enumerate(ring.order.members)}
    bench.inject("q", bench.ids["p"], Packet(ring.order.conf, 2, rank["p"], True, [Part(9, [b"late"])]))
    for _ in range(4):
        bench.inject("q", ring.order.predecessor, token_for(ring, seq=2, aru=2))
    assert ring.order.confirmed_aru == 0
    assert not bench.got["q"]


def test_an_absurd_fcc_does_not_silence_the_ring(bench: Bench) -> None:
    ring = bench.rings["q"]
    bench.inject("q", ring.order.predecessor, token_for(ring, fcc=MAX_SEQ))
    works(bench)


def test_an_absurd_token_number_costs_the_ring_one_token_at_most(bench: Bench) -> None:
    ring = bench.rings["q"]
    bench.inject("q", ring.order.predecessor, token_for(ring, number=MAX_SEQ))
    # What follows cannot be sent: it would not be a frame.
    bench.passes = lambda _s, _d, frame: isinstance(decoded(frame), Datagram)
    works(bench)


def decoded(frame: Frame) -> object:
    [data] = CODEC.encode(STRANGER, [frame])
    return CODEC.decode(data)


def test_requests_that_overlap_cost_no_more_than_what_is_kept() -> None:
    """256 times everything ever sent, on one token."""
    bench = Bench("pq").start().run(SECOND)
    ring = bench.rings["q"]
    order = ring.order
    top = 20_000
    order.my_aru = order.highest_seq = order.delivered = order.confirmed_aru = order._asked_upto = top
    bench.inject("q", order.predecessor, token_for(ring, seq=top, aru=top, rtr=[(1, top)] * 256))
    passed = [frame for frame in bench.sent() if isinstance(frame, Token) and frame.seq == top]
    assert all(last - first < REACH * SMALL.window for each in passed for first, last in each.rtr)


# Packets


def packet_for(ring: Ring, **changes: Any) -> Packet:
    order = ring.order
    sender = (order.rank + 1) % len(order.members)
    good = Packet(order.conf, order.highest_seq + 1, sender, False, [Part(100, [b"forged"])])
    return msgspec.structs.replace(good, **changes)


PACKETS: dict[str, Callable[[Ring], Packet]] = {
    "a rank beyond the ring": lambda ring: packet_for(ring, sender=3),
    "the highest rank": lambda ring: packet_for(ring, sender=MAX_MEMBERS - 1),
    "an absurd number": lambda ring: packet_for(ring, seq=MAX_SEQ),
    "just beyond what can be under way": lambda ring: packet_for(
        ring, seq=ring.order.my_aru + REACH * SMALL.window + 1
    ),
    "an old configuration": lambda ring: packet_for(ring, conf=ConfId(1, ring.me)),
    "a configuration of the far future": lambda ring: packet_for(ring, conf=ConfId(MAX_SEQ, ring.me)),
    "an annotation on several": lambda ring: packet_for(ring, parts=[Part(100, [b"a", b"b"], WireItem("x"))]),
    "several payloads in a fragment": lambda ring: packet_for(ring, parts=[Part(100, [b"a", b"b"], left=1)]),
    "a fragment that does not fit": lambda ring: packet_for(
        ring, parts=[Part(100, [b"a"], left=1), Part(101, [b"b"])]
    ),
    "a message above the limit": lambda ring: packet_for(
        ring, parts=[Part(100, [bytes(900)], left=1), Part(100, [bytes(900)])]
    ),
    "a number from before": lambda ring: packet_for(ring, parts=[Part(1, [b"again"])]),
}


@pytest.mark.parametrize("name", PACKETS)
def test_packets_that_cannot_be_deliver_nothing_and_are_counted(bench: Bench, name: str) -> None:
    ring = bench.rings["q"]
    before, got = bench.dropped("q"), list(bench.got["q"])
    bench.inject("q", bench.ids["r"], PACKETS[name](ring))
    assert bench.dropped("q") == before + 1
    assert bench.got["q"] == got
    if ring.order.highest_seq == 3:
        works(bench)  # otherwise a number of the ring is taken: see the next test


def test_a_packet_ahead_of_the_token_does_not_take_the_place_of_a_real_one(bench: Bench) -> None:
    """The token comes by with a lower seq: q begins anew, and all are together again in the end."""
    bench.inject("q", bench.ids["r"], packet_for(bench.rings["q"]))
    bench.run(10 * SECOND)
    assert bench.together()
    bench.multicast("p", b"the real one")
    bench.run(SECOND)
    assert b"the real one" in [payload for _, _, payload in bench.got["q"]]


def test_old_packets_are_duplicates(bench: Bench) -> None:
    ring = bench.rings["q"]
    got, before = list(bench.got["q"]), ring.stats.duplicates
    bench.inject("q", bench.ids["r"], packet_for(ring, seq=1))
    assert (bench.got["q"], ring.stats.duplicates) == (got, before + 1)


def test_a_packet_from_outside_the_configuration_is_not_of_it(bench: Bench) -> None:
    got = list(bench.got["q"])
    bench.inject("q", STRANGER, packet_for(bench.rings["q"]))
    assert bench.got["q"] == got


def test_a_packet_of_mine_that_i_never_sent_is_dropped(bench: Bench) -> None:
    ring, got = bench.rings["q"], list(bench.got["q"])
    bench.inject("q", bench.ids["r"], packet_for(ring, sender=ring.order.rank))
    assert bench.got["q"] == got


def test_a_flood_of_packets_in_order_is_bounded(bench: Bench) -> None:
    """No ring has so many under way: the sender did not wait for the token."""
    ring = bench.rings["q"]
    for seq in range(ring.order.my_aru + 1, 3000):
        bench.inject("q", bench.ids["r"], packet_for(ring, seq=seq, parts=[Part(100 + seq, [b"x"])]))
    assert len(ring.order.store) <= 2 * REACH * SMALL.window
    assert ring.buffered() <= SMALL.bound()


def test_a_flood_of_packets_with_gaps_is_bounded(bench: Bench) -> None:
    ring = bench.rings["q"]
    for seq in [*range(ring.order.my_aru + 2, 3000), *range(1 << 20, (1 << 20) + 1000)]:
        bench.inject("q", bench.ids["r"], packet_for(ring, seq=seq))
    assert len(ring.order.store) <= REACH * SMALL.window
    assert ring.buffered() <= SMALL.bound()


# Joins


JOINS: dict[str, Callable[[Bench, Ring], Frame]] = {
    "a Join without its source": lambda b, ring: Join(ring.order.conf, 1, False, [b.ids["p"]], [], TERMS),
    "failed outside of the representatives": lambda b, ring: Join(
        ring.order.conf, 1, False, [b.ids["r"], b.ids["p"]], [STRANGER], TERMS
    ),
    "all of the representatives failed": lambda b, ring: Join(
        ring.order.conf, 1, False, [b.ids["r"]], [b.ids["r"]], TERMS
    ),
    "the source failed": lambda b, ring: Join(
        ring.order.conf, 1, False, [b.ids["r"], b.ids["p"]], [b.ids["r"]], TERMS
    ),
    "nobody at all": lambda _b, ring: Join(ring.order.conf, 1, False, [], [], TERMS),
    "an absurd highest in a Join": lambda b, ring: Join(
        ring.order.conf, MAX_SEQ, False, [b.ids["r"]], [], TERMS
    ),
    "an absurd highest in an Attempt Join": lambda _b, ring: AttemptJoin(
        ring.order.conf, MAX_SEQ, False, TERMS
    ),
    "an absurd configuration in a Join": lambda b, _r: Join(
        ConfId(MAX_SEQ, STRANGER), 1, False, [b.ids["r"]], [], TERMS
    ),
    "an absurd configuration in an Attempt Join": lambda _b, _r: AttemptJoin(
        ConfId(MAX_SEQ, STRANGER), 1, False, TERMS
    ),
    "an absurd configuration in a Presence": lambda _b, _r: Presence(ConfId(MAX_SEQ, STRANGER), TERMS),
    "an absurd configuration in a Leave": lambda _b, _r: Leave(ConfId(MAX_SEQ, STRANGER)),
    "a frame of another protocol": lambda _b, _r: ChannelAck(1, 1),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("victim", ["p", "q"])
def test_membership_frames_that_cannot_be_are_malformed(bench: Bench, name: str, victim: str) -> None:
    ring = bench.rings[victim]
    before = (ring.stats.malformed + 1, ring.formation.forming.highest, ring.order.conf)
    bench.inject(victim, bench.ids["r"], JOINS[name](bench, ring))
    assert (ring.stats.malformed, ring.formation.forming.highest, ring.order.conf) == before
    assert ring.state is State.OPERATIONAL
    works(bench)


@pytest.mark.parametrize(
    "frame",
    [
        Presence(ConfId(1, MemberId("r")), TERMS),
        AttemptJoin(ConfId(1, MemberId("r")), 1, True, TERMS),
        Join(ConfId(1, MemberId("r")), 1, True, [MemberId("r")], [], TERMS),
        Leave(ConfId(1, MemberId("r"))),
        TokenWanted(ConfId(1, MemberId("r"))),
        RecoveryToken(ConfId(1, MemberId("r")), 99, b"\7", []),
    ],
)
def test_stories_of_an_old_configuration_are_stale(bench: Bench, frame: Frame) -> None:
    for victim in "pq":
        ring = bench.rings[victim]
        before = ring.stats.stale
        bench.inject(victim, bench.ids["r"], frame)
        assert ring.stats.stale == before + 1
        assert ring.state is State.OPERATIONAL
    works(bench)


def test_frames_from_oneself_are_stale(bench: Bench) -> None:
    ring = bench.rings["q"]
    before = ring.stats.stale
    for frame in (
        token_for(ring),
        packet_for(ring),
        Leave(ring.order.conf),
        Presence(ConfId(50, ring.me), TERMS),
    ):
        bench.inject("q", ring.me, frame)
    assert ring.stats.stale == before + 4
    works(bench)


def test_a_leave_of_somebody_unknown_is_stale(bench: Bench) -> None:
    ring = bench.rings["q"]
    before = ring.stats.stale
    bench.inject("q", STRANGER, Leave(ring.order.conf))
    assert ring.stats.stale == before + 1
    works(bench)


def test_whoever_left_ignores_everything(bench: Bench) -> None:
    ring = bench.rings["q"]
    bench.leave("q")
    bench.run(SECOND)
    assert ring.state is State.LEFT
    before = ring.stats.stale
    for frame in (
        token_for(ring),
        packet_for(ring),
        AttemptJoin(ConfId(9, STRANGER), 9, True, TERMS),
    ):
        bench.inject("q", bench.ids["p"], frame)
    for timer in RingTimer:
        ring.on_timer(bench.now, timer)
    assert ring.stats.stale == before + 3
    assert not ring.out.sends


def test_a_leave_while_its_form_token_is_awaited() -> None:
    """q agreed with p, who was to form the ring, and p says goodbye instead."""
    bench = Bench("pq").start().run(SECOND)
    assert bench.together()
    ring, conf = bench.rings["q"], bench.rings["q"].order.conf
    bench.passes = lambda *_: False
    until(bench, "q", State.GATHER)
    bench.inject("q", bench.ids["p"], AttemptJoin(conf, 1, True, TERMS))
    until(bench, "q", State.COMMIT)
    bench.inject("q", bench.ids["p"], Join(conf, 1, True, [bench.ids["p"], bench.ids["q"]], [], TERMS))
    assert ring.formation.agreement.awaits_form
    bench.inject("q", bench.ids["p"], Leave(conf))
    bench.run(2 * SECOND)
    assert [change.view.members for change in bench.views["q"]][-1] == (bench.ids["q"],)


def crowd(size: int) -> list[MemberId]:
    return [MemberId(f"x{number}") for number in range(size)]


def sizes(ring: Ring) -> dict[str, int]:
    """Everything in a member that others can make grow."""
    agreement, operation = ring.formation.agreement, ring.operation
    return {
        "reps": len(agreement.reps),
        "failed": len(agreement.failed),
        "proposals": len(agreement.proposals),
        "proposed": sum(len(reps) + len(failed) for reps, failed in agreement.proposals.values()),
        "left": len(operation.left),
        "candidates": len(ring.formation.forming.candidates),
        "store": len(ring.order.store),
        "rest": len(operation.outlet.rest),
    }


@pytest.mark.parametrize("victim", ["p", "q"])
def test_a_flood_of_attempt_joins_is_bounded(bench: Bench, victim: str) -> None:
    ring = bench.rings[victim]
    for number, member in enumerate(crowd(3 * MAX_MEMBERS)):
        bench.inject(victim, member, AttemptJoin(ConfId(5, member), 5, number % 2 == 0, TERMS))
        bench.inject(victim, member, Presence(ConfId(5, member), TERMS))
        bench.inject(victim, member, Leave(ConfId(5, member)))
    assert all(size <= MAX_MEMBERS for size in sizes(ring).values()), sizes(ring)
    bench.run(2 * SECOND)
    works(bench)


@pytest.mark.parametrize("number", [1, 2])
def test_a_flood_of_joins_is_bounded(bench: Bench, number: int) -> None:
    """While p agrees with others, thousands of made-up members propose, too."""
    ring = bench.rings["p"]
    bench.inject("p", STRANGER, AttemptJoin(ConfId(5, STRANGER), 5, True, TERMS))
    until(bench, "p", State.COMMIT)
    many = crowd(2 * MAX_MEMBERS)
    for place, member in enumerate(many):
        reps = [member] if number == 1 else [member, *many[place : place + 2]]
        bench.inject("p", member, Join(ConfId(5, member), 5, True, sorted({*reps}), [], TERMS))
    found = sizes(ring)
    said = [frame for frame in bench.sent() if isinstance(frame, Join)]
    assert isinstance(decoded(said[-1]), Datagram), "what p says itself can still be read"
    assert all(size <= 2 * MAX_MEMBERS for size in found.values()), found


def test_after_a_flood_of_joins_the_group_finds_itself_again(bench: Bench) -> None:
    bench.inject("p", STRANGER, AttemptJoin(ConfId(5, STRANGER), 5, True, TERMS))
    until(bench, "p", State.COMMIT)
    bench.passes = lambda _s, _d, frame: isinstance(decoded(frame), Datagram)
    for member in crowd(300):
        bench.inject("p", member, Join(ConfId(5, member), 5, True, [member], [], TERMS))
    works(bench)


# Form tokens


def form_for(bench: Bench, **changes: Any) -> FormToken:
    """A Form token of r that q would follow, but for the changes."""
    r, q = bench.ids["r"], bench.ids["q"]
    conf = bench.rings["q"].order.conf
    record = ConfRecord(conf, [r], bench.rings["q"].order.highest_seq, 0, b"")
    good = FormToken(ConfId(50, r), 7, 1, [q, r], [(r, conf)], [record])
    return msgspec.structs.replace(good, **changes)


def old_conf(bench: Bench) -> ConfId:
    return bench.rings["q"].order.conf


FORMS: dict[str, Callable[[Bench], FormToken]] = {
    "without me": lambda b: form_for(b, join_list=[b.ids["r"]]),
    "without anybody": lambda b: form_for(b, join_list=[], memb_list=[]),
    "not from whom it should come": lambda b: form_for(b, memb_list=[(STRANGER, old_conf(b))]),
    "me as who made it": lambda b: form_for(
        b, memb_list=[(b.ids["q"], old_conf(b)), (b.ids["r"], old_conf(b))]
    ),
    "an old number": lambda b: form_for(b, form_id=ConfId(1, b.ids["r"])),
    "the number of now": lambda b: form_for(b, form_id=ConfId(old_conf(b).number, b.ids["r"])),
    "the second rotation of one never seen": lambda b: form_for(b, rotation=2),
    "holes beyond what was sent": lambda b: form_for(
        b, confs_list=[ConfRecord(old_conf(b), [b.ids["r"]], 3, 2, b"\xff")]
    ),
    "aru beyond what was sent": lambda b: form_for(
        b, confs_list=[ConfRecord(old_conf(b), [b.ids["r"]], 3, 9, b"")]
    ),
    "more holes than there can be": lambda b: form_for(
        b, confs_list=[ConfRecord(old_conf(b), [b.ids["r"]], MAX_HOLES + 1, 0, b"")]
    ),
    "an incredible record of another configuration": lambda b: form_for(
        b, confs_list=[ConfRecord(ConfId(7, STRANGER), [], 1, MAX_SEQ, b"")]
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_form_tokens_that_cannot_be_are_dropped_and_counted(bench: Bench, name: str) -> None:
    ring = bench.rings["q"]
    before = bench.dropped("q")
    bench.inject("q", bench.ids["r"], FORMS[name](bench))
    assert bench.dropped("q") == before + 1
    assert ring.state is State.OPERATIONAL
    assert ring.formation.forming.form_id == ring.order.conf
    works(bench)


def test_a_form_token_that_leads_nowhere_is_given_up(bench: Bench) -> None:
    bench.inject("q", bench.ids["r"], form_for(bench))
    assert bench.rings["q"].state is State.FORM
    works(bench)


def test_a_form_token_with_members_twice_is_given_up(bench: Bench) -> None:
    q, r, conf = bench.ids["q"], bench.ids["r"], old_conf(bench)
    ring = bench.rings["q"]
    bench.inject("q", r, form_for(bench, memb_list=[(r, conf), (r, conf)], join_list=[q, q, r, r]))
    again = form_for(bench, number=20, rotation=2, memb_list=[(r, conf), (r, conf), (q, conf)])
    before = ring.stats.malformed
    bench.inject("q", r, again)
    assert ring.state is State.FORM
    assert ring.stats.malformed == before + 1
    works(bench)


AGAIN: dict[str, Callable[[Bench], FormToken]] = {
    "without me": lambda b: form_for(b, number=20, rotation=2),
    "without members": lambda b: form_for(b, number=20, rotation=2, memb_list=[]),
    "in the first rotation": lambda b: form_for(b, number=20, rotation=1, memb_list=both(b)),
    "without a record for me": lambda b: form_for(b, number=20, rotation=2, memb_list=both(b), confs_list=[]),
    "with two records for me": lambda b: form_for(
        b, number=20, rotation=2, memb_list=both(b), confs_list=form_for(b).confs_list * 2
    ),
    "with an incredible record": lambda b: form_for(
        b,
        number=20,
        rotation=2,
        memb_list=both(b),
        confs_list=[ConfRecord(old_conf(b), [], 3, 2, b"\xff")],
    ),
    "with the number it had": lambda b: form_for(b, number=7, rotation=2, memb_list=both(b)),
}


def both(bench: Bench) -> list[tuple[MemberId, ConfId]]:
    return [(bench.ids["r"], old_conf(bench)), (bench.ids["q"], old_conf(bench))]


@pytest.mark.parametrize("name", AGAIN)
def test_second_rounds_that_do_not_fit_the_first_are_dropped(bench: Bench, name: str) -> None:
    ring = bench.rings["q"]
    bench.inject("q", bench.ids["r"], form_for(bench))
    before = bench.dropped("q")
    bench.inject("q", bench.ids["r"], AGAIN[name](bench))
    assert bench.dropped("q") == before + 1
    assert ring.state is State.FORM
    works(bench)


def test_a_repeated_form_token_is_acknowledged_and_does_nothing(bench: Bench) -> None:
    ring = bench.rings["q"]
    bench.inject("q", bench.ids["r"], form_for(bench))
    before, moves = ring.stats.stale, dict(ring.standing.moves)
    bench.lab.drop()
    for _ in range(5):
        bench.inject("q", bench.ids["r"], form_for(bench, memb_list=both(bench)))
    assert ring.stats.stale == before + 5
    assert dict(ring.standing.moves) == moves
    assert [type(frame) for frame in bench.sent()] == [TokenAck] * 5


def test_a_copy_of_the_first_form_token_is_acknowledged_and_stale(bench: Bench) -> None:
    """Exactly what a predecessor sends again whose token, or the answer to it, was lost."""
    ring = bench.rings["q"]
    bench.inject("q", bench.ids["r"], form_for(bench))
    before = (ring.stats.malformed, ring.stats.stale + 1)
    bench.lab.drop()
    bench.inject("q", bench.ids["r"], form_for(bench))
    assert (ring.stats.malformed, ring.stats.stale) == before
    assert [type(frame) for frame in bench.sent()] == [TokenAck]


def test_a_form_token_with_an_absurd_number_of_a_foreign_configuration_harms_nobody(bench: Bench) -> None:
    record = ConfRecord(ConfId(7, STRANGER), [STRANGER], MAX_SEQ, MAX_SEQ - 5, b"\x1f")
    bench.inject("q", bench.ids["r"], form_for(bench, confs_list=[record]))
    works(bench)


def test_a_form_token_with_an_absurd_number_is_dropped(bench: Bench) -> None:
    bench.passes = lambda _s, _d, frame: isinstance(decoded(frame), Datagram)
    bench.inject("q", bench.ids["r"], form_for(bench, form_id=ConfId(MAX_SEQ, bench.ids["r"])))
    works(bench)


def test_a_record_of_numbers_far_from_mine_is_dropped(bench: Bench) -> None:
    record = ConfRecord(old_conf(bench), [bench.ids["r"]], MAX_SEQ, MAX_SEQ - 5, b"")
    bench.inject("q", bench.ids["r"], form_for(bench, confs_list=[record]))
    works(bench)


def test_a_second_round_with_numbers_far_from_mine_is_dropped(bench: Bench) -> None:
    """A million would be fast enough to notice; MAX_SEQ would never end."""
    bench.inject("q", bench.ids["r"], form_for(bench))
    top = 1_000_000
    record = ConfRecord(old_conf(bench), [bench.ids["r"]], top, top - 5, b"")
    form = form_for(bench, number=20, rotation=2, memb_list=both(bench), confs_list=[record])
    bench.inject("q", bench.ids["r"], form)
    assert bench.rings["q"].state is State.FORM


# Recovery tokens


def recovering(bench: Bench) -> Ring:
    """q in the EVS state of a ring with r, lacking one packet that r has."""
    ring = bench.rings["q"]
    highest = ring.order.highest_seq + 1
    record = ConfRecord(old_conf(bench), [bench.ids["r"]], highest, 0, b"")
    bench.inject("q", bench.ids["r"], form_for(bench, confs_list=[record]))
    form = form_for(bench, number=20, rotation=2, memb_list=both(bench), confs_list=[record])
    bench.inject("q", bench.ids["r"], form)
    assert ring.state is State.EVS
    recovery = ring.formation.forming.recovery
    assert recovery is not None
    assert recovery.missing() == [highest]
    return ring


def test_a_recovery_token_that_speaks_for_me_is_dropped(bench: Bench) -> None:
    ring = recovering(bench)
    bench.inject("q", bench.ids["r"], RecoveryToken(ConfId(50, bench.ids["r"]), 30, b"\3", []))
    assert ring.state is State.EVS
    works(bench)


def test_recovery_tokens_that_cannot_be_do_no_harm(bench: Bench) -> None:
    ring = recovering(bench)
    conf = ConfId(50, bench.ids["r"])
    wild = [(old_conf(bench), [(0, 5), (5, 1), (1, MAX_SEQ)]), (ConfId(9, STRANGER), [(1, MAX_SEQ)])]
    dropped = bench.dropped("q")
    for source, token in (
        (bench.ids["r"], RecoveryToken(ConfId(49, bench.ids["r"]), 30, b"", [])),
        (bench.ids["p"], RecoveryToken(conf, 30, b"", [])),
        (STRANGER, RecoveryToken(conf, 30, b"", [])),
        (bench.ids["r"], RecoveryToken(conf, 3, b"", [])),
    ):
        bench.inject("q", source, token)
    assert bench.dropped("q") == dropped + 4
    bench.inject("q", bench.ids["r"], RecoveryToken(conf, 30, b"\1", wild))
    assert ring.state is State.EVS
    works(bench)


def test_a_recovery_token_with_bits_beyond_the_ring_is_dropped(bench: Bench) -> None:
    recovering(bench)
    before = bench.dropped("q")
    bench.inject("q", bench.ids["r"], RecoveryToken(ConfId(50, bench.ids["r"]), 30, b"\xf0", []))
    assert bench.dropped("q") == before + 1


def test_a_regular_token_before_the_promise_is_not_followed(bench: Bench) -> None:
    ring = recovering(bench)
    bench.inject("q", bench.ids["r"], Token(ConfId(50, bench.ids["r"]), 30, 0, 0, -1, [], 0))
    assert ring.state is State.EVS
    works(bench)


# Mutations of real frames


def captured() -> list[tuple[str, str, Frame]]:
    """Frames of every kind that a small run sends."""
    bench = Bench("pqr").start().run(SECOND)
    for number in range(6):
        for name in "pqr":
            bench.multicast(name, f"{name}{number}".encode(), safe=number % 2 == 1)
    bench.multicast("q", b"q" * 350)
    bench.run(100 * MILLISECOND)
    bench.passes = lambda source, dest, _f: "r" not in (source, dest)
    bench.run(SECOND)
    bench.passes = lambda *_: True
    bench.run(SECOND)
    bench.leave("r")
    bench.run(SECOND)
    chosen: dict[str, list[tuple[str, str, Frame]]] = {}
    for seen in bench.seen:
        chosen.setdefault(type(seen[2]).__name__, []).append(seen)
    return [each for kind in chosen.values() for each in kind[:: max(1, len(kind) // 12)]]


FRAMES = captured()


def test_every_kind_of_frame_was_captured() -> None:
    kinds = {type(frame) for _, _, frame in FRAMES}
    assert kinds >= {Packet, Token, RecoveryToken, FormToken, AttemptJoin, Join, Presence, TokenAck, Leave}


NUMBERS = st.one_of(st.integers(0, 40), st.sampled_from([1 << 10, 1 << 20]))


class Strike(msgspec.Struct, frozen=True):
    """A frame to inject, and how long to wait after it."""

    victim: str
    source: MemberId
    frame: Frame
    current: bool
    """Put the victim's configuration of the moment in."""
    pause: int


@st.composite
def strikes(draw: st.DrawFn, kinds: tuple[type[Frame], ...]) -> Strike:
    """A real frame with fields from others of its kind, or with other numbers in it."""
    source, dest, frame = draw(st.sampled_from([each for each in FRAMES if isinstance(each[2], kinds)]))
    changes: dict[str, object] = {}
    for field in draw(st.lists(st.sampled_from(frame.__struct_fields__), max_size=2, unique=True)):
        value = getattr(frame, field)
        if isinstance(value, bool):
            changes[field] = not value
        elif isinstance(value, int):
            changes[field] = draw(NUMBERS)
        else:
            others = [other for _, _, other in FRAMES if type(other) is type(frame)]
            changes[field] = getattr(draw(st.sampled_from(others)), field)
    who = draw(st.sampled_from([*(MemberId(name) for name in "pqr"), MemberId("p", 1), STRANGER]))
    return Strike(
        draw(st.sampled_from([dest, dest, "p", "q", "r"])),
        draw(st.sampled_from([MemberId(source), who])),
        msgspec.structs.replace(frame, **changes),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 1, 5, 35, 120])),
    )


def struck(hits: list[Strike], formed: bool) -> tuple[Bench, set[bytes]]:
    """A group under attack, and what its members really sent."""
    bench = Bench("pqr")
    bench.passes = lambda _s, _d, frame: isinstance(decoded(frame), Datagram)
    for ring in bench.rings.values():
        ring.formation.forming.highest = 1000  # no configuration has the name of one in the captured frames
        ring.operation.rotation.order = ring.operation.order_of(ring.operation.conf_id(1000), (ring.me,))
    bench.start().run(SECOND if formed else 40 * MILLISECOND)
    sent = set()
    for number, hit in enumerate(hits):
        frame, ring = hit.frame, bench.rings[hit.victim]
        if hit.current:
            new = ring.formation.forming.ring
            conf = ring.order.conf if new is None else new.conf
            field = "form_id" if isinstance(frame, FormToken) else "conf"
            frame = msgspec.structs.replace(frame, **{field: conf})
        if isinstance(decoded(frame), Datagram):
            payload = b"ours %d" % number
            sent.add(payload)
            bench.multicast("pqr"[number % 3], payload)
            bench.inject(hit.victim, hit.source, frame)
            bench.run(hit.pause * MILLISECOND)
    bench.run(SECOND)
    return bench, sent


CALM = settings(
    deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
CONTROL = (Token, RecoveryToken, FormToken, AttemptJoin, Join, Presence, TokenAck, TokenWanted, Leave)


@CALM
@given(st.lists(strikes(CONTROL), max_size=10), st.booleans())
def test_mutated_control_frames_never_raise_and_deliver_nothing_that_nobody_sent(
    hits: list[Strike], formed: bool
) -> None:
    """Sources, numbers, sets and flags changed at will."""
    bench, sent = struck(hits, formed)
    for name, got in bench.got.items():
        assert {payload for _, _, payload in got} <= sent, name
        assert len({(sender, seq) for sender, seq, _ in got}) == len(got), "nothing twice"
    assert all(ring.buffered() <= SMALL.bound() for ring in bench.rings.values())


@CALM
@given(st.lists(strikes((Packet,)), max_size=10), st.booleans())
def test_mutated_packets_never_raise(hits: list[Strike], formed: bool) -> None:
    """In the name of a configuration a member can say anything; out of another it says nothing."""
    bench, sent = struck(hits, formed)
    if not any(hit.current for hit in hits):
        assert all({payload for _, _, payload in got} <= sent for got in bench.got.values())
    assert all(ring.buffered() <= SMALL.bound() for ring in bench.rings.values())
