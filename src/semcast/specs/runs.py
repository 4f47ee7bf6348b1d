"""Sets of sequence numbers as runs, so that no checker sees how a recorder cut its rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge

Span = tuple[int, int]
"""First and last, both inside."""


class Runs:
    """A set of positive integers, kept as disjoint spans in growing order that do not touch.

    >>> runs = Runs([(1, 3), (4, 6), (9, 9)])
    >>> list(runs), runs.total()
    ([(1, 6), (9, 9)], 7)
    >>> runs.add(5, 9)                      # says what was there before
    [(5, 6), (9, 9)]
    >>> list(runs)
    [(1, 9)]
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in spans:
            self.add(first, last)

    def add(self, first: int, last: int) -> list[Span]:
        """Add a span; returns the parts of it that were in the set already.

        Cheap for what lies behind everything else; linear in the number of spans at worst.
        """
        lasts = self._lasts
        if not lasts or first > lasts[-1] + 1:
            self._firsts.append(first)
            lasts.append(last)
            return []
        if first == lasts[-1] + 1:
            lasts[-1] = last
            return []
        return self._insert(first, last)

    def _insert(self, first: int, last: int) -> list[Span]:
        touching = slice(bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1))
        touched = list(zip(self._firsts[touching], self._lasts[touching], strict=True))
        common = [(max(first, begin), min(last, end)) for begin, end in touched]
        known = [(begin, end) for begin, end in common if begin <= end]
        if touched:
            first = min(first, touched[0][0])
            last = max(last, touched[-1][1])
        self._firsts[touching] = [first]
        self._lasts[touching] = [last]
        return known

    def __iter__(self) -> Iterator[Span]:
        return zip(self._firsts, self._lasts, strict=True)

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._lasts, number)
        return place < len(self._lasts) and self._firsts[place] <= number

    def total(self) -> int:
        """How many numbers are in the set."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def highest(self) -> int:
        """The largest number, 0 if there is none."""
        return self._lasts[-1] if self._lasts else 0

    def numbers(self) -> Iterator[int]:
        """The numbers one by one."""
        for first, last in self:
            yield from range(first, last + 1)

    def upto(self, limit: int) -> "Runs":
        """Those that are not above `limit`."""
        return Runs((first, min(last, limit)) for first, last in self if first <= limit)

    def minus(self, other: "Runs") -> "Runs":
        """Those that are not in `other`."""
        return Runs(_difference(self, other))


def union(sets: Iterable[Runs]) -> Runs:
    """What is in any of the sets.

    >>> list(union([Runs([(1, 2), (8, 9)]), Runs([(2, 4)])]))
    [(1, 4), (8, 9)]
    """
    return Runs(merge(*sets))


def _difference(these: Runs, others: Runs) -> Iterator[Span]:
    holes = iter(others)
    hole = next(holes, None)
    for begin, last in these:
        first = begin
        while hole is not None and hole[1] < first:
            hole = next(holes, None)
        while hole is not None and hole[0] <= last:
            if first < hole[0]:
                yield first, hole[0] - 1
            first = hole[1] + 1
            if first > last:
                break
            hole = next(holes, None)
        if first <= last:
            yield first, last
