"""Simulated programs that read a log by position, batch by batch, as a streaming query of Spark does.

A program first has on its own disk which positions a batch has. Then tasks read them, page by page, and some
fail half-way and are run again. When all are there, the batch is handed on, and then the program has on its
disk that it was. Who crashes before that does the batch again, with the same positions.
"""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import msgspec

from semcast.core.events import Note
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.protocols.gossip.client import LogClient, Page, Result
from semcast.protocols.gossip.queries import PAGE_BYTES, Ask, Denied, Lines, Read, Told
from semcast.sim.gossip_scenario import Strangers
from semcast.specs.gossip.reading import crc_text

_PAGE = 16
"""Messages of a page, at most."""


class Querying(Strangers, frozen=True, kw_only=True):
    """Settings of a group in which some programs are no members, and read the log."""

    readers: tuple[int, ...] = (0,)
    source: str = ""
    """The logger whose log they read."""
    most: int = 20
    """Positions of one batch."""
    tasks: int = 2
    pause: Nanos = 20 * MILLISECOND
    """Between two batches, and between two looks for more."""
    failing: float = 0.2
    """How often a task fails after a page, and is run again."""
    repeated: float = 0.2
    """How often a batch that is done is done again, as by a program that has forgotten that it was done."""
    strict: bool = False
    """Whether a reader stops where messages were trimmed before it read them."""
    prefix: str = ""
    """Of messages about items, those whose item begins so."""


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """The positions of a batch, as they are on the disk of a reader; `done` if it was handed on."""

    number: int
    log: int
    lo: int
    hi: int
    done: bool = False


class ReaderTimer(Timer):
    """When it is time for the next batch."""

    NEXT = "next"


class ReadTask:
    """Some positions of a batch, and what came of them."""

    def __init__(self, lo: int, hi: int) -> None:
        self.lo = lo
        self.hi = hi
        self.lines: list[Lines] = []
        self.skipped: list[Note] = []

    def told(self, lo: int, hi: int, trimmed: int) -> None:
        """Some were trimmed."""
        self.skipped.append(Note("skipped", seq=lo, count=hi - lo, order=trimmed))


class Reader(LogClient):
    """One program.

    Args:
        me: who it is.
        settings: what it does.
        rng: which tasks fail.
        out: where everything goes.
    """

    def __init__(self, me: MemberId, settings: Querying, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings.source, rng, out)
        self.settings = settings
        self._rng = rng
        self._last: Extent | None = None
        """The batch that is under way, or was done last."""
        self._tasks: list[ReadTask] = []
        self._waiting = 0  # tasks that are not done
        self._synced = 0
        self._now: Nanos = 0

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """Go on with the batch that was under way, in the log that it is of."""
        self._now = now
        if records:
            self._last = msgspec.msgpack.decode(records[-1], type=Extent)
            self.log = self._last.log

    def start(self, now: Nanos) -> None:
        """Look for the logger, and begin."""
        super().start(now)
        self.out.deliver(Note("reader", digest=self.settings.prefix))
        self._begin(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """The next batch, or what was asked in vain."""
        self._now = now
        if timer is ReaderTimer.NEXT:
            self._begin(now)
        else:
            super().on_timer(now, timer)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """An answer."""
        self._now = now
        super().on_frame(now, source, frame)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """The positions of a batch are on disk, or that it is done."""
        self._now = now
        if ticket != self._synced:
            return
        assert self._last is not None
        if not self._last.done:
            self._read(self._last)
            return
        if self._rng.random() < self.settings.repeated:
            self._last = msgspec.structs.replace(self._last, done=False)
        self._later()

    # Batches

    def _begin(self, now: Nanos) -> None:
        """A batch whose positions are known already, or one of what there is now."""
        self._now = now
        if self._last is not None and not self._last.done:
            self._read(self._last)
        else:
            self.ask(now, Ask(0, 0, "ends"), self._plan)

    def _plan(self, ends: Result) -> None:
        if isinstance(ends, Denied):
            self._refused(ends)
            return
        assert isinstance(ends, Told)
        number, lo = (0, ends.first) if self._last is None else (self._last.number + 1, self._last.hi)
        hi = min(ends.next, lo + self.settings.most)
        if hi <= lo:
            self._later()
            return
        self.stats.sent += 1  # the run is not over while there are batches
        self._note_down(Extent(number, self.log, lo, hi))

    def _note_down(self, extent: Extent) -> None:
        self._last = extent
        self._synced += 1
        self.out.append(msgspec.msgpack.encode(extent))
        self.out.sync(self._synced)

    def _read(self, extent: Extent) -> None:
        """By some tasks at a time."""
        self._tasks = self.cut(extent)
        self._waiting = len(self._tasks)
        for task in self._tasks:
            self._page(task, task.lo)

    def cut(self, extent: Extent) -> list[ReadTask]:
        """The positions of a batch, for several tasks."""
        size = extent.hi - extent.lo
        tasks = min(self.settings.tasks, size)
        edges = [extent.lo + size * number // tasks for number in range(tasks + 1)]
        return [ReadTask(lo, hi) for lo, hi in pairwise(edges)]

    def _page(self, task: ReadTask, lo: int) -> None:
        def done(result: Result) -> None:
            if task not in self._tasks:
                return
            if isinstance(result, Denied) and result.trouble == "offset":
                self.ask(self._now, Ask(0, 0, "ends"), lambda ends: self._jump(task, lo, ends))
            elif isinstance(result, Denied):
                self._refused(result)
            else:
                assert isinstance(result, Page)
                self._took(task, lo, result)

        most = self._rng.randint(1, _PAGE)
        self.ask(self._now, Read(0, 0, lo, task.hi, most, PAGE_BYTES, self.settings.prefix), done)

    def _took(self, task: ReadTask, lo: int, page: Page) -> None:
        """One page of a task came."""
        task.lines += page.lines
        if self._rng.random() < self.settings.failing:
            self.fail(task)
        elif not page.trimmed or self.lost(task, lo, page.next, page.trimmed):
            self._go_on(task, page.next)

    def fail(self, task: ReadTask) -> None:
        """It is run again, from the beginning."""
        task.lines, task.skipped = [], []
        self._page(task, task.lo)

    def _jump(self, task: ReadTask, lo: int, ends: Result) -> None:
        """What the log begins with is beyond where a task is."""
        if task not in self._tasks:
            return
        if isinstance(ends, Denied):
            self._refused(ends)
            return
        assert isinstance(ends, Told)
        first = min(ends.first, task.hi)
        assert first > lo, f"positions from {lo} on were refused, and the log begins at {ends.first}"
        if self.lost(task, lo, first, first - lo):
            self._go_on(task, first)

    def lost(self, task: ReadTask, lo: int, hi: int, trimmed: int) -> bool:
        """Messages were trimmed; whether to go on without them."""
        task.told(lo, hi, trimmed)
        if self.settings.strict:
            self._stop("trimmed")
        return not self.settings.strict

    def _go_on(self, task: ReadTask, lo: int) -> None:
        if lo < task.hi:
            self._page(task, lo)
            return
        self._waiting -= 1
        if not self._waiting:
            self._hand_on()

    def _hand_on(self) -> None:
        """All of a batch is there."""
        extent, logger = self._last, self.logger
        assert extent is not None
        for task in self._tasks:
            for line in task.lines:
                self._give(line)
            for told in task.skipped:
                self.out.deliver(told)
        self._tasks = []
        self.out.deliver(
            Note(
                "counted",
                sender=logger,
                seq=extent.lo,
                count=extent.hi - extent.lo,
                order=extent.log,
                digest=str(extent.number),
            )
        )
        self._note_down(msgspec.structs.replace(extent, done=True))

    def _give(self, line: Lines) -> None:
        for place, payload in enumerate(line.payloads):
            offset = place if line.offsets is None else line.offsets[place]
            self.stats.delivered += 1
            self.out.deliver(
                Note(
                    "given",
                    sender=line.sender,
                    seq=line.first + offset,
                    count=1,
                    order=line.position + offset,
                    digest=crc_text(payload),
                )
            )

    def _later(self) -> None:
        self.out.set_timer(ReaderTimer.NEXT, self._now + self.settings.pause)

    def _refused(self, denied: Denied) -> None:
        """It is another log: what it was for is not there any more."""
        assert denied.trouble == "log", denied.why
        self._stop("log")

    def _stop(self, why: str) -> None:
        self._tasks = []
        self.out.deliver(Note("stopped", level=why))
