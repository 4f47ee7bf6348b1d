"""Positions: one number for each message of a log, in the order in which nothing was missing before them.

Deviation: the paper's log has no order of its own. Here every log gives dense positions, from 0 on, so that
a program can read a log from one to another, whoever sent what. Messages of one stream have growing
positions. A position never changes: not when the log starts again, is compacted or written anew; what left
the log leaves its position empty. Positions belong to one log: its identity is `Books.log`.

Messages that come in one turn are placed together, stream by stream, so that what is kept is a few numbers
for each *run*, not for each message. A run has the time at which it was placed: that is the index by time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.spans import Span, Spans, spans_of

_TORN = 512
"""Spans of trimmed positions that are told apart; beyond that, what is between the oldest counts, too."""
_SPARE = 1024
"""Messages that may have left before runs are looked through."""


class Run(NamedTuple):
    """Messages of one stream with positions in a row."""

    position: int
    sender: MemberId
    first: int
    size: int
    at: Nanos

    @property
    def end(self) -> int:
        """The position after its last."""
        return self.position + self.size

    @property
    def last(self) -> int:
        """The number of its last message."""
        return self.first + self.size - 1


Present = Callable[[MemberId, int], bool]
"""Whether a message is in the log."""


class Positions:
    """All runs of a log.

    >>> positions, p = Positions(), MemberId("p")
    >>> runs = positions.place(p, [(1, 3)], 100), positions.place(p, [(4, 4)], 200)
    >>> positions.next, positions.at_time(150)
    (4, 3)
    """

    def __init__(self) -> None:
        self.next = 0
        """The position of the next message."""
        self.synced = 0
        """Everything before it is on disk."""
        self.trimmed = Spans()
        """Positions of what left though nothing replaced it."""
        self._runs: list[Run] = []
        self._of: dict[MemberId, list[Run]] = {}
        self._left = 0  # messages that left since runs were looked through

    def place(self, sender: MemberId, spans: Iterable[Span], at: Nanos) -> list[Run]:
        """Messages of a stream come next. Time does not go back, whatever the clock says."""
        at = max(at, self._runs[-1].at) if self._runs else at
        found = []
        for first, last in spans:
            run = Run(self.next, sender, first, last - first + 1, at)
            found.append(run)
            self.restore(run)
        return found

    def restore(self, run: Run) -> None:
        """A run that is on disk, in the order of positions; one that is known already is ignored."""
        if not self._runs or run.position >= self._runs[-1].end:
            self._runs.append(run)
            self._of.setdefault(run.sender, []).append(run)
            self.next = max(self.next, run.end)

    def count_from(self, position: int) -> None:
        """Positions before this one were given, also if nothing is left of them."""
        self.next = max(self.next, position)

    # How positions become empty

    def trim(self, sender: MemberId, seqs: Iterable[int]) -> None:
        """Messages left, though nothing replaced them."""
        for first, last in spans_of(sorted(seqs)):
            for run in self.within(sender, first, last):
                begin, end = max(first, run.first), min(last, run.last)
                self.trim_positions(run.position + begin - run.first, run.position + end - run.first)
            self.left(last - first + 1)

    def trim_positions(self, first: int, last: int) -> None:
        """The same, of positions."""
        self.trimmed.add(first, last)
        if len(self.trimmed) > _TORN:
            spans = list(self.trimmed)
            self.trimmed.add(spans[0][0], spans[len(spans) // 2][1])

    def left(self, count: int) -> None:
        """So many messages are not in the log any more."""
        self._left += count

    def tidy(self, present: Present, stored: int) -> None:
        """Forget runs of which nothing is left, now and then: what is kept follows what is in the log."""
        if self._left > stored + _SPARE:
            self._left = 0
            runs, self._runs, self._of = list(self.present(present)), [], {}
            for run in runs:
                self.restore(run)

    def present(self, present: Present) -> Iterator[Run]:
        """Runs of what is there, by position."""
        for run in self._runs:
            there = [seq for seq in range(run.first, run.last + 1) if present(run.sender, seq)]
            for first, last in spans_of(there):
                yield Run(run.position + first - run.first, run.sender, first, last - first + 1, run.at)

    # Looking

    @property
    def first(self) -> int:
        """Everything before it was trimmed."""
        return self.trimmed.end(0) + 1

    def from_(self, position: int) -> Iterator[Run]:
        """Runs from a position on; the first may begin before it."""
        begin = max(0, bisect_right(self._runs, position, key=_position) - 1)
        for place in range(begin, len(self._runs)):
            if self._runs[place].end > position:
                yield self._runs[place]

    def after(self, position: int, sender: MemberId) -> int | None:
        """The number of the first message of a stream at a position or after it; None if there is none."""
        runs = self._of.get(sender, [])
        place = bisect_right(runs, position, key=_position) - 1
        if place >= 0 and runs[place].end > position:
            return runs[place].first + position - runs[place].position
        return runs[place + 1].first if place + 1 < len(runs) else None

    def at_time(self, at: Nanos) -> int:
        """The first position that was placed at a time or after it."""
        place = bisect_left(self._runs, at, key=_at)
        return self._runs[place].position if place < len(self._runs) else self.next

    def times(self) -> tuple[Nanos, Nanos]:
        """When the oldest and the newest messages that are there were placed; 0 if there are none."""
        return (self._runs[0].at, self._runs[-1].at) if self._runs else (0, 0)

    def runs(self) -> Iterator[Run]:
        """All of them, by position."""
        return iter(self._runs)

    def within(self, sender: MemberId, first: int, last: int) -> Iterator[Run]:
        """Runs of a stream with any of these numbers."""
        runs = self._of.get(sender, [])
        place = max(0, bisect_right(runs, first, key=_first) - 1)
        while place < len(runs) and runs[place].first <= last:
            if runs[place].last >= first:
                yield runs[place]
            place += 1


def _position(run: Run) -> int:
    return run.position


def _first(run: Run) -> int:
    return run.first


def _at(run: Run) -> Nanos:
    return run.at
