"""What is kept of sends where rows are not: spans of messages, their numbers, and what precedes them."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from semcast.history.events import Event
from semcast.specs.domains.pasts import Vector


class Clock:
    """Of each process, how many of its messages are known to precede."""

    __slots__ = ("_last", "_vector", "counts")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self._last: list[Vector | None] = [None] * size
        self._vector: Vector | None = None

    @property
    def vector(self) -> Vector:
        """The same object as long as it is the same."""
        if self._vector is None:
            self._vector = tuple(self.counts)
        return self._vector

    def merge(self, sender: int, before: Vector, upto: int) -> None:
        """What precedes messages of a process, and so many of its own."""
        if self._last[sender] is not before:
            self._last[sender] = before
            self.counts = list(map(max, self.counts, before))
            self._vector = None
        if upto > self.counts[sender]:
            self.counts[sender] = upto
            self._vector = None


class Sends:
    """What was sent in one stream, as spans in the order of their numbers there."""

    __slots__ = ("befores", "firsts", "indices", "lasts", "numbers", "times", "views")

    def __init__(self) -> None:
        self.firsts, self.lasts = array("q"), array("q")
        self.numbers, self.views = array("q"), array("q")
        self.indices, self.times = array("q"), array("q")
        self.befores: list[Vector] = []

    def add(
        self, first: int, last: int, number: int, event: Event, before: Vector, *, in_view: bool = True
    ) -> None:
        """A span that was not sent before, the number of its first message, and its row.

        What a client sends belongs to no view.
        """
        at = bisect_left(self.firsts, first)
        for column, value in (
            (self.firsts, first),
            (self.lasts, last),
            (self.numbers, number),
            (self.views, (event.view or 0) if in_view else -1),
            (self.indices, event.index),
            (self.times, event.at),
        ):
            column.insert(at, value)
        self.befores.insert(at, before)

    def holding(self, seq: int) -> int | None:
        """The place of the span with this message."""
        at = bisect_right(self.firsts, seq) - 1
        return at if at >= 0 and seq <= self.lasts[at] else None

    def number(self, at: int, seq: int) -> int:
        """Which of all the messages of its sender it is, if it is in this span."""
        return self.numbers[at] + seq - self.firsts[at]

    def unsent(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What of a span was not sent yet."""
        seq = first
        while seq <= last:
            at = self.holding(seq)
            if at is not None:
                seq = self.lasts[at] + 1
                continue
            after = bisect_right(self.firsts, seq)
            end = min(last, self.firsts[after] - 1) if after < len(self.firsts) else last
            yield seq, end
            seq = end + 1
