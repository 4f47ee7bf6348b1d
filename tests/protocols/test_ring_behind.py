"""Programs that answer from their handlers: who waits in `send` takes nothing, and must not stop the ring."""

from collections import deque

import msgspec
import pytest
from tests.protocols.ringlab import RingLab

from semcast.core import Batch, ViewChange
from semcast.core.events import Delivery
from semcast.core.handover import Handover, Outgoing
from semcast.core.mailbox import Mailbox
from semcast.protocols.ring import Cause, Ring, RingSettings, State
from semcast.testing import Keeper

QUESTIONS = 60
ROOM = 2
"""Messages that a driver keeps ready for a program."""


class NeverBehind(Ring):
    """As it was: a driver never learns that only the application can help."""

    def behind(self) -> bool:
        return False


class Program(Keeper):
    """Asks so many questions in a task of its own, and answers those of others from its handler."""

    def __init__(self, lab: RingLab, name: str, questions: int) -> None:
        super().__init__()
        self.questions = deque(b"?%d" % number for number in range(questions))
        self.heard: list[tuple[str, bytes]] = []
        self._lab, self._name = lab, name
        self._together = False

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, ViewChange):
            self._together = len(each.view.members) > 1
        elif isinstance(each, Batch):
            for payload in each.payloads:
                self._hear(each.sender.name, payload)

    def _hear(self, sender: str, payload: bytes) -> None:
        self.heard.append((sender, payload))
        if sender != self._name and payload.startswith(b"?"):
            self._lab.seats[self._name].send_or_wait(Outgoing([b"!" + payload[1:]]))

    def waiting(self) -> tuple[bytes, None] | None:
        return (self.questions[0], None) if self.questions and self._together else None

    def sent(self) -> None:
        self.questions.popleft()


class AnsweringLab(RingLab):
    """Drives programs as live groups do: it delivers to one that waits only where it is behind."""

    def __init__(
        self, names: str, settings: RingSettings, kind: type[Ring], questions: int = QUESTIONS
    ) -> None:
        self.programs = {name: Program(self, name, questions) for name in names}
        super().__init__(names, settings, kind)

    def application(self, name: str) -> Program:
        return self.programs[name]

    def handover(self) -> Handover:
        mailbox = Mailbox(ROOM)
        mailbox.want = 1
        return Handover(1, mailbox)

    def waiting(self) -> list[str]:
        """Whose handlers wait."""
        return [name for name, seat in self.seats.items() if seat.waits]


TIGHT = RingSettings(queue_messages=1, send_messages=1, visit=1, visit_least=1, window=1, packet_bytes=10)
STALLS = [("pq", 1, 1, 1), ("pqr", 1, 3, 2), ("pqr", 2, 1, 1), ("pqr", 8, 1, 3)]
"""Members, window, delivery queue and send queue with which these programs stop a ring."""


def tight(window: int, queue: int, send: int) -> RingSettings:
    return msgspec.structs.replace(
        TIGHT, queue_messages=queue, send_messages=send, window=window, visit=max(1, window // 2)
    )


@pytest.mark.parametrize(("names", "window", "queue", "send"), STALLS)
def test_members_that_answer_from_their_handlers_do_not_stop_the_ring(
    names: str, window: int, queue: int, send: int
) -> None:
    lab = AnsweringLab(names, tight(window, queue, send), Ring)
    lab.start()
    lab.run_for(20_000)
    total = QUESTIONS * len(names) ** 2  # each question, and an answer of everybody else
    heard = [program.heard for program in lab.programs.values()]
    assert len(heard[0]) == total
    assert all(each == heard[0] for each in heard)
    assert not lab.waiting()


@pytest.mark.parametrize(("names", "window", "queue", "send"), STALLS)
def test_without_behind_they_do(names: str, window: int, queue: int, send: int) -> None:
    """The same programs and the same queues: so the test above is about something."""
    lab = AnsweringLab(names, tight(window, queue, send), NeverBehind)
    lab.start()
    lab.run_for(4000)
    before = {name: len(program.heard) for name, program in lab.programs.items()}
    lab.run_for(1000)
    assert before == {name: len(program.heard) for name, program in lab.programs.items()}
    assert lab.waiting()


@pytest.mark.parametrize("names", ["pq", "pqr"])
def test_nor_do_they_when_the_ring_breaks_again_and_again(names: str) -> None:
    """What a change of configuration hands over exceeds the queue; nobody may wait for it for ever."""
    lab = AnsweringLab(names, tight(2, 1, 1), Ring, questions=400)
    lab.start()
    for turn in range(12):
        lab.carries = lambda *_: True
        lab.run_for(125 + 7 * turn)
        lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
        lab.run_for(345)
    lab.carries = lambda *_: True
    lab.run_for(20_000)
    for name, program in lab.programs.items():
        assert not lab.seats[name].waits
        assert not program.questions
        assert len(lab.rings[name].order.members) == len(names)
        assert lab.rings[name].standing.moves[State.EVS, Cause.RECOVERED] > 2


# When a member is behind


class HeapingLab(RingLab):
    """The application of p takes only what the test takes for it."""

    def __init__(self, names: str, settings: RingSettings) -> None:
        super().__init__(names, settings)
        self.seats["p"].reads = False


def test_an_application_that_has_not_seen_the_configuration_is_behind() -> None:
    lab = HeapingLab("pq", TIGHT)
    ring = lab.rings["p"]
    assert not ring.behind(), "nothing to take"
    lab.start()
    lab.run_for(1000)
    assert [len(each.order.members) for each in lab.rings.values()] == [2, 2]
    assert ring.behind()
    lab.seats["p"].read(1)
    assert not ring.behind(), "it has seen it, and nothing else waits"


def test_a_full_queue_is_behind_only_where_it_stops_the_ring() -> None:
    """Half a window goes on beyond what a member has no room for."""
    lab = HeapingLab("pq", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    lab.seats["p"].read(1)
    told = []
    for number in range(20):
        lab.multicast("q", b"message %d" % number)
        lab.run_for(100)
        told.append((ring.order.highest_seq, ring.behind()))
    assert told == [(min(seq, 15), seq >= 15) for seq in range(1, 21)], "2 in the queue, 1 rests, 4 + 8"
    assert not lab.rings["q"].behind()
    lab.seats["p"].read(1)
    assert not ring.behind(), "room for one more in the window"
    lab.run_for(100)
    assert ring.order.highest_seq == 16
    assert ring.behind()


def test_who_is_alone_is_behind_as_soon_as_its_queue_is_full() -> None:
    lab = HeapingLab("p", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    lab.seats["p"].read(1)
    for _ in range(2):
        lab.multicast("p", b"message")
    assert not ring.behind()
    lab.multicast("p", b"message")
    assert ring.behind()
    lab.seats["p"].read(1)
    assert not ring.behind()


def test_who_has_more_than_its_queue_holds_is_behind() -> None:
    """It keeps out of the next change of configuration; its driver must know why nothing is sent."""
    lab = HeapingLab("pq", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    lab.seats["p"].read(1)
    for number in range(10):
        lab.multicast("q", b"message %d" % number)
    lab.run_for(1000)
    assert not ring.behind()
    lab.carries = lambda *_: False
    lab.run_for(1000)
    assert ring.operation.overfull
    while ring.operation.overfull:
        assert ring.behind()
        lab.seats["p"].read(1)


def test_who_has_left_is_not_behind() -> None:
    lab = HeapingLab("p", TIGHT)
    lab.start()
    lab.seats["p"].call(lambda stack, now: stack.leave(now))
    assert lab.rings["p"].state is State.LEFT
    assert lab.rings["p"].deliverable()
    assert not lab.rings["p"].behind()
