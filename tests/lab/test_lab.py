"""The lab itself: any stack runs in it, frame by frame or in bursts, and applications do as they are told."""

from collections.abc import Sequence
from random import Random

import pytest
from tests.toy.frames import Heard, Said
from tests.toy.stack import Toy, ToySettings

from semcast.core import Batch, Frame, MemberId, Nanos, Outbox, Stack
from semcast.core.events import Delivery
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.mailbox import Mailbox
from semcast.core.outgoing import Outgoing
from semcast.lab import Keeper, Lab, Seat
from semcast.patterns import ReplicatedState
from semcast.protocols.families import FAMILIES
from semcast.protocols.ring import RingSettings
from semcast.protocols.semantic import ChannelSettings, Settings
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings
from semcast.sim.stacks import StackFactory, ring, s_rm, s_srm, vsync
from semcast.wire import Codec

MEMBERS = [MemberId(name) for name in "pqr"]


def toy(me: MemberId, members: Sequence[MemberId], _rng: Random, out: Outbox) -> Stack:
    return Toy(me, members, ToySettings(), out)


STACKS: dict[str, StackFactory] = {
    "s-rm": s_rm(Settings()),
    "s-srm": s_srm(ChannelSettings()),
    "ring": ring(RingSettings()),
    "vsync": vsync(VsyncSettings(minimum=3)),
    "toy": toy,
}


def payloads(seat: Seat) -> list[bytes]:
    assert isinstance(seat.application, Keeper)
    batches = [each for each in seat.application.taken if isinstance(each, Batch)]
    return [payload for batch in batches for payload in batch.payloads]


@pytest.mark.parametrize("latency", [0, MILLISECOND])
@pytest.mark.parametrize("bursts", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_every_stack_runs_in_it(name: str, bursts: bool, latency: Nanos) -> None:
    codec = Codec("lab", MEMBERS, 60_000, [*FAMILIES.frames(), Said, Heard])
    lab = Lab(latency=latency, codec=codec, bursts=bursts)
    for me in MEMBERS:
        lab.add(me, STACKS[name](me, MEMBERS, Random(me.name), Outbox()))
    lab.start()
    lab.run(SECOND)
    sent = []
    for number in range(10):
        for seat in lab.seats.values():
            sent.append(b"%s %d" % (seat.member.name.encode(), number))
            assert seat.multicast(sent[-1]) == 1
    lab.run(SECOND)
    for seat in lab.seats.values():
        assert sorted(payloads(seat)) == sorted(sent)


class Telling(Toy):
    """Tells how its frames came."""

    runs: list[tuple[str, int]]

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        self.runs.append((source.name, len(frames)))
        super().on_frames(now, source, frames)


@pytest.mark.parametrize(
    ("bursts", "expected"), [(False, [("p", 1)] * 3 + [("q", 1)] * 2), (True, [("p", 3), ("q", 2)])]
)
def test_bursts_bring_what_arrives_at_one_moment_in_one_turn(
    bursts: bool, expected: list[tuple[str, int]]
) -> None:
    lab = Lab(bursts=bursts)
    p, q, _ = (lab.add(me, Telling(me, MEMBERS, ToySettings(), Outbox())) for me in MEMBERS)
    lab.start()
    for sender, times in ((p, 3), (q, 2)):
        for _ in range(times):
            assert sender.multicast(b"x") == 1
    stack = lab.seats["r"].stack
    assert isinstance(stack, Telling)
    stack.runs = []
    for each in (p, q):
        assert isinstance(each.stack, Telling)
        each.stack.runs = []
    lab.carry()
    assert stack.runs == expected


def group(most: int = 64) -> tuple[Lab, Seat, Seat]:
    lab = Lab()
    p, q, _ = (lab.add(me, Toy(me, MEMBERS, ToySettings(most), Outbox())) for me in MEMBERS)
    lab.start()
    return lab, p, q


def test_who_reads_when_told_takes_one_list_at_a_time() -> None:
    lab, p, q = group()
    q.reads = False
    for number in range(5):
        p.multicast(b"%d" % number)
    lab.flow()
    assert payloads(q) == []
    q.read(2)
    assert payloads(q) == [b"0", b"1"]
    q.read()
    assert payloads(q) == [b"0", b"1", b"2", b"3", b"4"]


def test_what_the_stack_refuses_is_taken_back() -> None:
    lab, p, q = group(most=2)
    assert p.multicast(b"1", b"2", b"3") == 2
    assert p.handover.unsent == 0
    lab.flow()
    assert p.multicast(b"4") == 1
    lab.flow()
    assert payloads(q) == [b"1", b"2", b"4"]


class Echo(Keeper):
    """Says everything again from its handler, and waits where there is no room."""

    seat: Seat

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if isinstance(each, Batch) and each.sender != self.seat.member:
            self.seat.send_or_wait(Outgoing([b"again " + payload for payload in each.payloads]))


def test_who_waits_in_send_reads_nothing_and_goes_on_when_there_is_room() -> None:
    lab, p, q = Lab(), Keeper(), Echo()
    mailbox = Mailbox(1)
    mailbox.want = 1
    for me, each, handover in ((MEMBERS[0], p, None), (MEMBERS[1], q, Handover(1, mailbox))):
        lab.add(me, Toy(me, MEMBERS[:2], ToySettings(most=8 if each is p else 1), Outbox()), each, handover)
    q.seat = lab.seats["q"]
    lab.start()
    lab.seats["p"].multicast(*[b"%d" % number for number in range(5)])
    lab.carries = lambda source, _dest, _frame: source == "p"
    lab.run(SECOND)
    assert q.seat.waits
    assert len(payloads(q.seat)) < 5
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert not lab.seats["q"].waits
    again = [payload for payload in payloads(lab.seats["p"]) if payload.startswith(b"again")]
    assert again == [b"again %d" % number for number in range(5)]


def test_a_joiner_is_given_the_state_of_a_pattern() -> None:
    lab = Lab()
    patterns = {}
    for me in MEMBERS:
        settings = VsyncSettings(minimum=2 if me.name < "r" else 0, state=True)
        patterns[me.name] = ReplicatedState(me)
        lab.add(me, VirtualSynchrony(me, settings, Random(me.name), Outbox()), patterns[me.name])
        if me.name == "r":
            patterns["p"].update("x", b"1")
            lab.run(SECOND)
        lab.seats[me.name].start()
        lab.run(0)
    lab.run(2 * SECOND)
    assert len(lab.seats["r"].stack.view().members) == 3
    assert patterns["r"].of("p") == {"x": b"1"}


def test_a_member_that_is_not_alive_does_nothing() -> None:
    lab, p, q = group()
    q.alive = False
    p.multicast(b"1")
    lab.run(SECOND)
    assert payloads(q) == []
    assert p.multicast(b"2") == 1
