"""Programs on S-RM that answer, stop or never read: nobody stands still, with the smallest queues."""

from random import Random
from typing import Any

import pytest

from semcast.core import Annotation, Batch, Item, MemberId, Outbox
from semcast.core.events import Delivery
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.mailbox import Mailbox
from semcast.core.outgoing import Outgoing
from semcast.lab import EVERYTHING, Keeper, Lab, Seat
from semcast.obsolescence import Purging
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.frames import Gossip

MS = MILLISECOND
ANSWER = b"answer"


class Program(Keeper):
    """Answers each message of others."""

    def __init__(self, answers: int = 0) -> None:
        super().__init__()
        self.answers = answers
        self.payloads: list[bytes] = []
        self.seat: Seat

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self.payloads += each.payloads
            if each.sender != self.seat.member and ANSWER not in each.payloads:
                for _ in range(self.answers * len(each.payloads)):
                    self.seat.send_or_wait(Outgoing([ANSWER]))


class Group:
    """Of three, each with a queue of one message."""

    def __init__(
        self, kind: type[SemanticMulticast] = SemanticMulticast, answers: int = 0, **given: Any
    ) -> None:
        self.lab = Lab(latency=MS)
        members = [MemberId(name) for name in "abc"]
        chosen = Settings(**{"buffer_messages": 3, "queue_messages": 1, "gossip_period": 5 * MS, **given})
        self.programs: dict[str, Program] = {}
        for member in members:
            program = Program(0 if member.name == "a" else answers)
            handover = Handover(1, Mailbox(0), program, queue_messages=1)
            handover.mailbox.want = EVERYTHING
            stack = kind(member, members, chosen, Random(member.name), Outbox())
            program.seat = self.lab.add(member, stack, program, handover)
            self.programs[member.name] = program
        self.lab.start()

    def stack(self, name: str) -> SemanticMulticast:
        found = self.lab.seats[name].stack
        assert isinstance(found, SemanticMulticast)
        return found

    def publish(self, count: int, duration: int, annotation: Annotation | None = None) -> int:
        """a publishes, as far as it is let; returns how many were taken."""
        taken = 0
        for _ in range(duration):
            if taken < count:
                taken += self.lab.seats["a"].multicast(b"%d" % taken, annotation=annotation)
            self.lab.run(MS)
        return taken


class _NoReserve(Backlog):
    def waits(self) -> bool:
        return False


class NoReserve(SemanticMulticast):
    """Without rule 3."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        settings = self.settings
        self.backlog = self.buffers.backlog = _NoReserve(settings.queue(), settings.buffer_bytes, 0)
        self.backlog.queues = (self.buffers,)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("answers", [1, 3])
def test_programs_that_answer_from_their_handlers(answers: int, uniform: bool) -> None:
    group = Group(answers=answers, uniform=uniform)
    assert group.publish(20, 2500) == 20
    group.lab.run(SECOND)
    assert not any(seat.waits for seat in group.lab.seats.values())
    assert {len(program.payloads) for program in group.programs.values()} == {20 + 40 * answers}
    assert not any(group.stack(name).backlog.messages for name in "abc")


def test_without_a_reserve_they_stand_still() -> None:
    group = Group(NoReserve, answers=3)
    assert group.publish(20, 2500) < 20


def test_who_uses_its_reserve_says_stop_and_takes_it_back() -> None:
    group = Group(answers=3)
    said: list[bool] = []

    def carries(_source: str, _dest: str, frame: object) -> bool:
        if isinstance(frame, Gossip):
            said.append(frame.stop)
        return True

    group.lab.carries = carries
    group.publish(20, 2500)
    group.lab.run(SECOND)
    assert True in said
    assert not said[-1]


def test_a_stop_that_is_not_repeated_is_void_after_a_second() -> None:
    group = Group()
    a = group.stack("a")
    a.stops.heard(group.lab.now, MemberId("c"), stop=True)
    group.lab.carries = lambda _source, dest, _frame: dest != "a"
    assert group.publish(1, 10) == 0
    held = a.held_back()
    assert held is not None
    assert held.by == MemberId("c")
    group.lab.run(SECOND)
    assert group.publish(1, 10) == 1


def test_a_program_that_never_reads_holds_nobody_back() -> None:
    group = Group()
    seat = group.lab.seats["c"]
    seat.reads = False
    seat.handover.reading.began = False
    assert group.publish(30, 1500) == 30


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY])
def test_a_program_that_stopped_holds_nobody_back_where_all_becomes_obsolete(purging: Purging) -> None:
    group = Group(purging=purging)
    group.lab.seats["c"].reads = False
    assert group.publish(50, 2000, Item("x")) == 50
    assert group.stack("c").backlog.messages == 1


def test_where_nothing_is_purged_it_holds_all_back_and_they_see_it() -> None:
    group = Group(purging=Purging.OFF)
    group.lab.seats["c"].reads = False
    assert group.publish(50, 500, Item("x")) < 10
    held = group.stack("a").held_back()
    assert held is not None
    assert held.by == MemberId("c")
    group.lab.seats["c"].reads = True
    assert group.publish(50, 2000, Item("x")) == 50
