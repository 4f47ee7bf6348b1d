"""The application of a simulated host: what it sends, and what becomes of what it takes.

A reader takes, and answers what it took; a writer hands over what a workload makes. Both may have to wait in
`send`. It uses the same hand-over as a live program: `send` where there is room, and `take`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from random import Random

import msgspec

from semcast.core.annotations import KEnumeration
from semcast.core.events import Delivery, Rejoining, StateLost, ViewChange
from semcast.core.handover import Handover
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.core.views import View
from semcast.sim.bursts import Bursts
from semcast.sim.habits import ANSWER
from semcast.sim.replica import Record, RecordKind, Replicas
from semcast.sim.workloads import Source, placed


class Desk:
    """Where one task of a program sends: what there is no room for waits, and the task with it.

    Args:
        handover: to the stack.
        reading: whether nothing is read here while it waits.
        insists: whether a call that raised is made again, once the program has read something.
        attends: whether it waits for the answers that calls ask for.
    """

    def __init__(self, handover: Handover, *, reading: bool, insists: bool, attends: bool = False) -> None:
        self.raised = 0
        """Calls of `send` that raised, because this program must read first."""
        self._handover = handover
        self._reading = reading
        self._insists = insists
        self._attends = attends
        self._ticket: int | None = None  # of the call whose answer the task waits for
        self._postponed = False  # until the program has read something
        self._waiting: deque[Outgoing] = deque()  # calls, the first of which waits for room
        self._waits = False
        self._overflows = 0  # of the hand-over, when it began to wait

    def __bool__(self) -> bool:
        """Whether there is something to send that has to wait, or an answer to wait for."""
        return bool(self._waiting) or self._ticket is not None

    @property
    def waits(self) -> bool:
        """Whether the task waits in `send`."""
        return self._waits

    def send(self, calls: Sequence[Outgoing]) -> bool:
        """Send these next; returns whether something was handed over. A program that closes sends nothing."""
        if self._handover.reading.closing:
            return False
        self._waiting += calls
        return self.retry()

    def retry(self) -> bool:
        """There may be room, or no hope of any; returns whether something was handed over."""
        handover, waiting, handed = self._handover, self._waiting, False
        if self._ticket is not None and self._waits and handover.overflows != self._overflows:
            self._give_up_on_answer()
        while waiting and not self._postponed and self._ticket is None:
            if handover.room_for(len(waiting[0].payloads), reading=self._reading):
                self._hand_over(waiting.popleft())
                handed = True
            elif self._waits and handover.overflows != self._overflows:
                self._raise()
            else:
                break
            self._wait(False)
        self._wait(bool(self) and not self._postponed)
        return handed

    def answered(self, ticket: int) -> None:
        """The stack says what became of a call."""
        if ticket == self._ticket:
            self._ticket = None
            self._wait(False)

    def has_read(self) -> bool:
        """The program read something; returns whether something was handed over then."""
        self._postponed = False
        return self.retry()

    def _raise(self) -> None:
        """`send` raises: the program goes on without the message, or reads, and sends it then."""
        self.raised += 1
        if not self._insists:
            self._waiting.popleft()
        elif self._reading:
            self._postponed = True

    def _hand_over(self, call: Outgoing) -> None:
        self._handover.send(call)
        if self._attends and call.confirm is not None:
            self._ticket = call.confirm[0]

    def _give_up_on_answer(self) -> None:
        """`send` raises, though the message is sent: the program has to read first."""
        self.raised += 1
        self._ticket = None
        self._postponed = self._reading

    def clear(self) -> None:
        """The program closes its group: what waits to be sent never is."""
        self._waiting.clear()
        self._ticket = None
        self._wait(False)

    def _wait(self, waits: bool) -> None:
        if waits and not self._waits:
            self._overflows = self._handover.overflows
            self._handover.wait(reading=self._reading)
        elif self._waits and not waits:
            self._handover.waited(reading=self._reading)
        self._waits = waits


class Reader:
    """Applies what is delivered, and knows which view it has come to.

    Args:
        handover: where it takes from.
        observe: whether it builds up state from what it takes.
        transfers: whether its state is handed over to who joins.
        answers: messages with which it answers each one of others.
    """

    __slots__ = (
        "_answered",
        "_each",
        "_handover",
        "answers",
        "goes_on",
        "me",
        "position",
        "replicas",
        "view",
    )

    def __init__(self, handover: Handover, *, observe: bool, transfers: bool, answers: int = 0) -> None:
        self.view: View | None = None
        self.position = 0
        """How far it has read in the total order, where there is one."""
        self.replicas = Replicas() if observe else None
        self.answers = Desk(handover, reading=True, insists=False)
        """Where it sends them."""
        self.me: MemberId | None = None
        """Who this is: nobody answers itself."""
        self.goes_on = False
        """Whether it keeps its state where its member comes back as another incarnation."""
        self._each = answers
        self._answered = 0
        self._handover = handover
        self._handover.hooks = self if transfers else None

    def read(self, now: Nanos) -> int:
        """Take a list; returns how many messages there were."""
        taken = 0
        for each in self._handover.take(now):
            if isinstance(each, Batch):
                taken += len(each.payloads)
                if each.order is not None:
                    self.position = each.order + len(each.payloads) - 1
                if self.replicas is not None:
                    self.replicas.apply(each)
                if self._each and each.sender != self.me:
                    self._answer(each)
            else:
                self._hear(each)
        return taken

    def _answer(self, batch: Batch) -> None:
        questions = sum([not payload.endswith(ANSWER) for payload in batch.payloads])
        for _ in range(questions * self._each):
            self._answered += 1
            record = Record(RecordKind.PLAIN, "", self._answered, ANSWER)
            self.answers.send([Outgoing([msgspec.msgpack.encode(record)])])

    def _hear(self, each: Delivery) -> None:
        if isinstance(each, ViewChange):
            self.view = each.view
        elif isinstance(each, Rejoining | StateLost):
            self.view = None
            if not self.goes_on:
                self.replicas = None if self.replicas is None else Replicas()

    def export(self) -> bytes:
        """The state, for who joins."""
        assert self.replicas is not None
        return self.replicas.export()

    def restore(self, state: bytes) -> None:
        """Go on from the state of another."""
        assert self.replicas is not None
        self.replicas.restore(state)


class Writer:
    """Hands over what a source makes, in runs.

    Args:
        handover: where it hands over.
        source: what it sends.
        bursts: how many messages it hands over at once, at most, and whether it is also who reads.
        rng: draws how many.
        position: how far the program has read in the total order.
    """

    def __init__(
        self,
        handover: Handover,
        source: Source | None,
        bursts: Bursts,
        rng: Random | None,
        position: Callable[[], int],
    ) -> None:
        self.desk = Desk(handover, reading=bursts.single, insists=True, attends=bursts.waits)
        """Where it sends."""
        self._handover = handover
        self._source = source
        self._position = position
        self._run = bursts.run
        self._confirms = bursts.confirms
        self._calls = 0
        self._rng = rng
        self._wanted = self._draw()
        self._made: list[Outgoing] = []  # messages that are to leave together

    def blocked(self) -> bool:
        """Whether it waits: there was no room for what it wants to hand over, or it wants an answer."""
        return bool(self.desk)

    @property
    def waiting(self) -> bool:
        """Whether something that was made has not been taken by the stack yet."""
        return bool(self._made) or bool(self.desk) or bool(self._handover.unsent)

    def next_gap(self) -> Nanos | None:
        """Time until the next message; None if there is none."""
        return None if self._source is None else self._source.next_gap()

    def produce(self) -> bool:
        """Make the next message; returns whether what was made is to be handed over."""
        message = None if self._source is None else self._source.next_message()
        if message is not None:
            note = message.annotation
            if isinstance(note, KEnumeration) and note.total:
                message = msgspec.structs.replace(message, annotation=placed(note, self._position()))
            self._made.append(message)
        return bool(self._made) and (message is None or len(self._made) >= self._wanted)

    def stop(self) -> None:
        """Make no more."""
        self._source = None
        self._made.clear()
        self.desk.clear()

    def flush(self) -> bool:
        """Hand over what was made; returns whether there was anything, and room for it."""
        made, self._made = list(map(self._asking, runs(self._made))), []
        self._wanted = self._draw()
        return self.desk.send(made)

    def _asking(self, call: Outgoing) -> Outgoing:
        """Some calls want to know what becomes of what they send; the number of the call is its ticket."""
        self._calls += 1
        if not self._confirms or self._calls % self._confirms:
            return call
        safe = self._calls // self._confirms % 2 == 0
        return msgspec.structs.replace(call, confirm=(self._calls, safe))

    def _draw(self) -> int:
        return 1 if self._rng is None else self._rng.randint(1, self._run)


def runs(messages: Sequence[Outgoing]) -> list[Outgoing]:
    """Single messages as the fewest calls a program could send them with, in order.

    >>> from semcast.core import Item
    >>> made = [Outgoing([b"1"]), Outgoing([b"2"]), Outgoing([b"3"], Item("a")), Outgoing([b"4"], Item("b"))]
    >>> [each.payloads for each in runs(made)]
    [[b'1', b'2'], [b'3', b'4']]
    """
    found = []
    for (safe, plain), group in groupby(messages, key=_kind):
        together = list(group)
        if len(together) == 1:
            found += together
            continue
        payloads = [payload for each in together for payload in each.payloads]
        notes = [each.annotation for each in together if each.annotation is not None]
        found.append(Outgoing(payloads, None, safe, None if plain else notes))
    return found


def _kind(message: Outgoing) -> tuple[bool, bool]:
    return message.safe, message.annotation is None
