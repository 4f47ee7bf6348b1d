"""A program that reads a log by position, and has batches logged: no member, and no session.

It looks for a logger, by name or any, and stays with its log: positions belong to that. A logger that starts
again on its log is the same; one with another log refuses what is asked of the former. What is not answered
is asked again, with another serial, so that parts of two answers are never mixed.
"""

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.queries import (
    Ask,
    Denied,
    End,
    Find,
    Found,
    Lines,
    Put,
    Read,
    Release,
    Taken,
    Told,
)

_AGAIN = 250 * MILLISECOND
"""How long an answer may take before the question is asked again."""
_MOST = 64
"""Questions at a time."""


class Page(msgspec.Struct, frozen=True):
    """What was read."""

    lines: list[Lines]
    next: int
    trimmed: int


Result = Told | Page | Taken | Denied
Done = Callable[[Result], None]
Question = Ask | Read | Release | list[Put]


class _Pending:
    """A question that is not answered yet."""

    def __init__(self, question: Question, done: Done) -> None:
        self.question = question
        self.done = done
        self.asked_at: Nanos = 0
        self.lines: dict[int, Lines] = {}
        self.end: End | None = None


class ClientTimer(Timer):
    """What it waits for."""

    AGAIN = "again"


class LogClient(Stack):
    """Asks one logger.

    Args:
        me: this program.
        logger: the name of the logger it wants; any, where it is empty.
        rng: not used: nothing is left to chance here.
        out: where questions go.
    """

    def __init__(self, me: MemberId, logger: str, rng: Random, out: Outbox) -> None:  # noqa: ARG002
        self.out = out
        self.stats = Statistics()
        self.log = 0
        """The log that was found first; 0 before."""
        self.logger: MemberId | None = None
        self.heard: set[str] = set()
        """Names of all loggers that answered."""
        self._me = me
        self._name = logger
        self._serial = 0
        self._pending: dict[int, _Pending] = {}

    # Life

    def start(self, now: Nanos) -> None:
        """Look for a logger."""
        self._find()
        self.out.set_timer(ClientTimer.AGAIN, now + _AGAIN // 4)

    def phase(self) -> str:
        """It is no member, and whoever watches the group is told so."""
        return "joining" if self.logger is None else "client"

    def settled(self) -> bool:
        """It works as soon as there is a logger to ask."""
        return self.logger is not None

    def view(self) -> View:
        """It is in none with others."""
        return View(1, (self._me,), representative=self._me)

    def multicast(
        self,
        now: Nanos,  # noqa: ARG002
        payloads: Sequence[bytes],  # noqa: ARG002
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        """Nothing."""
        raise ValueError("this program is no member: it publishes batches")

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Answers go to who asked."""
        return ()

    def deliverable(self) -> bool:
        """Nothing is delivered."""
        return False

    def buffered(self) -> int:
        """Nothing is kept for others."""
        return 0

    # Questions

    def ask(self, now: Nanos, question: Question, done: Done) -> None:
        """Ask the logger; `done` is called once. Raises ValueError if too much is asked at once."""
        if len(self._pending) >= _MOST:
            raise ValueError(f"{_MOST} questions are under way")
        self._ask(now, _Pending(question, done))

    def drop(self, done: Done) -> None:
        """Nobody waits for the answer any more."""
        for serial in [serial for serial, each in self._pending.items() if each.done is done]:
            del self._pending[serial]

    def _ask(self, now: Nanos, pending: _Pending) -> None:
        self._serial += 1
        self._pending[self._serial] = pending
        pending.asked_at, pending.end = now, None
        pending.lines.clear()
        question = pending.question
        if self.logger is not None:
            for each in question if isinstance(question, list) else [question]:
                self.out.send(self.logger, msgspec.structs.replace(each, serial=self._serial, log=self.log))

    def _find(self) -> None:
        self.out.announce(Find(self._serial))

    def on_timer(self, now: Nanos, timer: Timer) -> None:  # noqa: ARG002
        """What is not answered is asked again, perhaps of a logger that has started again."""
        late = [serial for serial, each in self._pending.items() if now - each.asked_at >= _AGAIN]
        if self.logger is None or late:
            self._find()
        for serial in late:
            self._ask(now, self._pending.pop(serial))
        self.out.set_timer(ClientTimer.AGAIN, now + _AGAIN // 4)

    # Answers

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What is not awaited is left alone: this is no member."""
        if isinstance(frame, Found):
            self._on_found(now, source, frame)
        elif isinstance(frame, Lines):
            pending = self._pending.get(frame.serial)
            if pending is not None:
                pending.lines[frame.number] = frame
                pending.asked_at = now  # it comes
                self._look(frame.serial, pending)
        elif isinstance(frame, End):
            pending = self._pending.get(frame.serial)
            if pending is not None:
                pending.end = frame
                self._look(frame.serial, pending)
        elif isinstance(frame, Denied) and frame.trouble == "busy":
            self.stats.refused += 1  # it is asked again
        elif isinstance(frame, Told | Taken | Denied):
            pending = self._pending.pop(frame.serial, None)
            if pending is not None:
                pending.done(frame)

    def _on_found(self, now: Nanos, source: MemberId, frame: Found) -> None:
        if len(self.heard) < _MOST:
            self.heard.add(source.name)
        if self._name and source.name != self._name:
            return
        self._name = source.name
        if self.logger is None or source.incarnation > self.logger.incarnation:
            self.logger = source
            self.log = self.log or frame.log
            for serial in list(self._pending):
                self._ask(now, self._pending.pop(serial))

    def _look(self, serial: int, pending: _Pending) -> None:
        """Whether a page is whole."""
        end = pending.end
        if end is not None and len(pending.lines) >= end.parts:
            del self._pending[serial]
            lines = [pending.lines[number] for number in range(end.parts)]
            pending.done(Page(lines, end.next, end.trimmed))
