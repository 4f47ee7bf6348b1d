"""Programs that answer from their handlers: who waits in `send` takes nothing, and must not stop the ring."""

from collections import deque

import msgspec
import pytest
from tests.protocols.ringlab import RingLab

from semcast.core import Batch, Nanos
from semcast.protocols.ring import Cause, Ring, RingSettings, State

QUESTIONS = 60
ROOM = 2
"""Messages that a driver keeps ready for a program."""


class NeverBehind(Ring):
    """As it was: a driver never learns that only the application can help."""

    def behind(self) -> bool:
        return False


class Program:
    """Asks so many questions in a task of its own, and answers those of others from its handler."""

    def __init__(self, name: str, questions: int) -> None:
        self.name = name
        self.questions = deque(b"?%d" % number for number in range(questions))
        self.answer: bytes | None = None  # waits in `send`, and takes nothing meanwhile
        self.mailbox: deque[tuple[str, bytes]] = deque()
        self.heard: list[tuple[str, bytes]] = []

    def act(self, ring: Ring, now: Nanos) -> bool:
        """Go on as far as `send` allows; whether anything was done."""
        moved = False
        if self.answer is not None and ring.multicast(now, [self.answer]):
            self.answer, moved = None, True
        while self.mailbox and self.answer is None:
            sender, payload = self.mailbox.popleft()
            self.heard.append((sender, payload))
            moved = True
            if sender != self.name and payload.startswith(b"?"):
                answer = b"!" + payload[1:]
                self.answer = None if ring.multicast(now, [answer]) else answer
        if self.questions and ring.multicast(now, [self.questions[0]]):
            self.questions.popleft()
            moved = True
        return moved


class AnsweringLab(RingLab):
    """Drives programs as the live driver does: it delivers to one that waits only where it is behind."""

    def __init__(
        self, names: str, settings: RingSettings, kind: type[Ring], questions: int = QUESTIONS
    ) -> None:
        super().__init__(names, settings, kind)
        self.programs = {name: Program(name, questions) for name in names}

    def drain(self, name: str) -> None:
        self.perform(name)
        while self._go_on(name):
            self.perform(name)

    def _go_on(self, name: str) -> bool:
        """Let the program act, and give it what it has room for; whether anything was done."""
        ring, program = self.rings[name], self.programs[name]
        moved = len(ring.order.members) > 1 and program.act(ring, self.now)
        while ring.deliverable() and self._takes(ring, program):
            moved = True
            for each in ring.deliver(self.now, 1):
                if isinstance(each, Batch):
                    program.mailbox.extend((each.sender.name, payload) for payload in each.payloads)
        return moved

    def _takes(self, ring: Ring, program: Program) -> bool:
        return len(program.mailbox) < ROOM or (program.answer is not None and ring.behind())


TIGHT = RingSettings(queue_messages=1, send_messages=1, visit=1, visit_least=1, window=1, packet_bytes=10)
STALLS = [("pq", 1, 1, 1), ("pqr", 1, 3, 2), ("pqr", 2, 1, 1), ("pqr", 8, 3, 2)]
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
    assert all(program.answer is None for program in lab.programs.values())


@pytest.mark.parametrize(("names", "window", "queue", "send"), STALLS)
def test_without_behind_they_do(names: str, window: int, queue: int, send: int) -> None:
    """The same programs and the same queues: so the test above is about something."""
    lab = AnsweringLab(names, tight(window, queue, send), NeverBehind)
    lab.start()
    lab.run_for(4000)
    before = {name: len(program.heard) for name, program in lab.programs.items()}
    lab.run_for(1000)
    assert before == {name: len(program.heard) for name, program in lab.programs.items()}
    assert any(program.answer is not None for program in lab.programs.values())


@pytest.mark.parametrize("names", ["pq", "pqr"])
def test_nor_do_they_when_the_ring_breaks_again_and_again(names: str) -> None:
    """What a change of configuration hands over exceeds the queue; nobody may wait for it for ever."""
    lab = AnsweringLab(names, tight(2, 1, 1), Ring, questions=400)
    lab.start()
    for turn in range(12):
        lab.carries = lambda *_: True
        lab.run_for(25 + 7 * turn)
        lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
        lab.run_for(345)
    lab.carries = lambda *_: True
    lab.run_for(20_000)
    for name, program in lab.programs.items():
        assert program.answer is None
        assert not program.questions
        assert len(lab.rings[name].order.members) == len(names)
        assert lab.rings[name].standing.moves[State.EVS, Cause.RECOVERED] > 2


# When a member is behind


class HeapingLab(RingLab):
    """The application of p takes only what the test takes for it."""

    def drain(self, name: str) -> None:
        if name == "p":
            self.perform(name)
        else:
            super().drain(name)


def test_an_application_that_has_not_seen_the_configuration_is_behind() -> None:
    lab = HeapingLab("pq", TIGHT)
    ring = lab.rings["p"]
    assert not ring.behind(), "nothing to take"
    lab.start()
    lab.run_for(1000)
    assert [len(each.order.members) for each in lab.rings.values()] == [2, 2]
    assert ring.behind()
    ring.deliver(lab.now, 1)
    assert not ring.behind(), "it has seen it, and nothing else waits"


def test_a_full_queue_is_behind_only_where_it_stops_the_ring() -> None:
    """Half a window goes on beyond what a member has no room for."""
    lab = HeapingLab("pq", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    ring.deliver(lab.now, 1)
    told = []
    for number in range(20):
        lab.multicast("q", b"message %d" % number)
        lab.run_for(100)
        told.append((ring.order.highest_seq, ring.behind()))
    assert told == [(min(seq, 15), seq >= 15) for seq in range(1, 21)], "2 in the queue, 1 rests, 4 + 8"
    assert not lab.rings["q"].behind()
    ring.deliver(lab.now, 1)
    assert not ring.behind(), "room for one more in the window"
    lab.run_for(100)
    assert ring.order.highest_seq == 16
    assert ring.behind()


def test_who_is_alone_is_behind_as_soon_as_its_queue_is_full() -> None:
    lab = HeapingLab("p", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    ring.deliver(lab.now, 1)
    for _ in range(2):
        lab.multicast("p", b"message")
    assert not ring.behind()
    lab.multicast("p", b"message")
    assert ring.behind()
    ring.deliver(lab.now, 1)
    assert not ring.behind()


def test_who_has_more_than_its_queue_holds_is_behind() -> None:
    """It keeps out of the next change of configuration; its driver must know why nothing is sent."""
    lab = HeapingLab("pq", tight(window=8, queue=2, send=20))
    ring = lab.rings["p"]
    lab.start()
    lab.run_for(1000)
    ring.deliver(lab.now, 1)
    for number in range(10):
        lab.multicast("q", b"message %d" % number)
    lab.run_for(1000)
    assert not ring.behind()
    lab.carries = lambda *_: False
    lab.run_for(1000)
    assert ring.operation.overfull
    while ring.operation.overfull:
        assert ring.behind()
        ring.deliver(lab.now, 1)


def test_who_has_left_is_not_behind() -> None:
    lab = HeapingLab("p", TIGHT)
    lab.start()
    lab.rings["p"].leave(lab.now)
    assert lab.rings["p"].state is State.LEFT
    assert lab.rings["p"].deliverable()
    assert not lab.rings["p"].behind()
