"""Messages of one stream, as the runs in which they came: work is done for each run, not each message."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from semcast.core.messages import Batch
from semcast.protocols.gossip.spans import Span, Spans
from semcast.protocols.semantic.answers import LENGTH

_STALE = 64
"""Numbers of runs that left which are not worth to be cleared away."""


class Runs:
    """Disjoint runs, found by any of their numbers; they leave whole, in whatever order.

    >>> from semcast.core import MemberId
    >>> runs, p = Runs(), MemberId("p")
    >>> runs.add(Batch(p, 1, [b"a", b"b", b"c"])); runs.add(Batch(p, 5, [b"e"]))
    >>> [(each.first, each.payloads) for each in runs.between(2, 9)], len(runs), runs.spans()
    ([(2, [b'b', b'c']), (5, [b'e'])], 4, [(1, 3), (5, 5)])
    """

    __slots__ = ("_count", "_firsts", "_runs")

    def __init__(self) -> None:
        self._runs: dict[int, Batch] = {}
        self._firsts: list[int] = []  # sorted, with some of runs that left
        self._count = 0

    def __len__(self) -> int:
        """How many messages there are."""
        return self._count

    def __iter__(self) -> Iterator[Batch]:
        return iter([self._runs[first] for first in self._firsts if first in self._runs])

    def at(self, first: int) -> Batch | None:
        """The run that begins there: what has an annotation is one of its own."""
        return self._runs.get(first)

    def add(self, batch: Batch) -> None:
        """Another run, none of whose messages are here."""
        firsts = self._firsts
        place = bisect_left(firsts, batch.first)
        if place == len(firsts) or firsts[place] != batch.first:
            firsts.insert(place, batch.first)
        self._runs[batch.first] = batch
        self._count += len(batch.payloads)

    def remove(self, first: int) -> Batch | None:
        """Take out the run that begins there."""
        batch = self._runs.pop(first, None)
        if batch is not None:
            self._count -= len(batch.payloads)
            if len(self._firsts) > 2 * len(self._runs) + _STALE:
                self._firsts = sorted(self._runs)
        return batch

    def between(self, first: int, last: int) -> list[Batch]:
        """The messages between two numbers."""
        found: list[Batch] = []
        firsts, runs = self._firsts, self._runs
        place = bisect_right(firsts, first) - 1
        while place > 0 and firsts[place] not in runs:
            place -= 1
        for begin in firsts[max(0, place) : bisect_right(firsts, last)]:
            batch = runs.get(begin)
            if batch is not None and batch.last >= first:
                found.append(batch)
        return [each.cut(max(first, each.first), min(last, each.last)) for each in found]

    def spans(self) -> list[Span]:
        """Their numbers."""
        return list(Spans((batch.first, batch.last) for batch in self))


def runs_of(singles: Sequence[Batch], room: int) -> Iterator[Batch]:
    """Messages of one stream, as runs that fit into a frame each; those with annotations stay alone.

    >>> from semcast.core import MemberId
    >>> p = MemberId("p")
    >>> found = [Batch(p, seq, [b"....."], None, 5) for seq in (1, 2, 3, 5, 6)]
    >>> [(each.first, len(each.payloads)) for each in runs_of(found, 20)]
    [(1, 2), (3, 1), (5, 2)]
    """
    start = 0
    while start < len(singles):
        first = singles[start]
        end, size = start + 1, first.size
        if first.annotation is None:
            left = room - size - LENGTH
            while end < len(singles):
                each = singles[end]
                left -= each.size + LENGTH
                if left < 0 or each.annotation is not None or each.first != first.first + end - start:
                    break
                end += 1
        if end == start + 1:
            yield first
        else:
            payloads = [each.payloads[0] for each in singles[start:end]]
            yield Batch(first.sender, first.first, payloads, None, sum(map(len, payloads)))
        start = end
