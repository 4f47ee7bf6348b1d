"""Sets of sequence numbers as spans: a peer may name any, and must not cost more than it says."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]
"""First and last, both inside."""


class Spans:
    """Disjoint spans in growing order that do not touch.

    >>> spans = Spans([(1, 3), (7, 9)])
    >>> spans.add(4, 5)
    >>> list(spans), 6 in spans, spans.end(2)
    ([(1, 5), (7, 9)], False, 5)
    >>> spans.drop(4)
    >>> list(spans), spans.gaps(1, 12), spans.between(5, 8)
    ([(5, 5), (7, 9)], [(1, 4), (6, 6), (10, 12)], [(5, 5), (7, 8)])
    >>> spans.join()
    >>> list(spans)
    [(5, 9)]
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in spans:
            self.add(first, last)

    def add(self, first: int, last: int) -> None:
        """Add a span; nothing if it is empty."""
        if first > last:
            return
        firsts, lasts = self._firsts, self._lasts
        touching = slice(bisect_left(lasts, first - 1), bisect_right(firsts, last + 1))
        if touching.start < touching.stop:
            first = min(first, firsts[touching.start])
            last = max(last, lasts[touching.stop - 1])
        firsts[touching] = [first]
        lasts[touching] = [last]

    def drop(self, upto: int) -> None:
        """Forget what is not above `upto`."""
        if not self._firsts or self._firsts[0] > upto:
            return
        whole = bisect_right(self._lasts, upto)
        del self._firsts[:whole], self._lasts[:whole]
        if self._firsts and self._firsts[0] <= upto:
            self._firsts[0] = upto + 1

    def second_end(self) -> int:
        """The last number of the second span."""
        return self._lasts[1]

    def join(self) -> None:
        """The first two spans, and all between them, are one."""
        del self._firsts[1], self._lasts[0]

    def end(self, number: int) -> int:
        """The last number of the span that has this one; the number before it if none has."""
        place = bisect_left(self._lasts, number)
        inside = place < len(self._lasts) and self._firsts[place] <= number
        return self._lasts[place] if inside else number - 1

    def between(self, first: int, last: int) -> list[Span]:
        """The parts of spans between two numbers."""
        firsts, lasts = self._firsts, self._lasts
        if first > last:
            return []
        some = range(bisect_left(lasts, first), bisect_right(firsts, last))
        return [(max(first, firsts[place]), min(last, lasts[place])) for place in some]

    def gaps(self, first: int, last: int) -> list[Span]:
        """What lies between two numbers and is in no span."""
        found: list[Span] = []
        begin = first
        for there, upto in self.between(first, last):
            if begin < there:
                found.append((begin, there - 1))
            begin = upto + 1
        if begin <= last:
            found.append((begin, last))
        return found

    def __contains__(self, number: int) -> bool:
        return self.end(number) >= number

    def __iter__(self) -> Iterator[Span]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """How many spans there are."""
        return len(self._firsts)

    def highest(self) -> int:
        """The largest number, 0 if there is none."""
        return self._lasts[-1] if self._lasts else 0


def spans_of(numbers: Iterable[int]) -> list[Span]:
    """Growing numbers as spans.

    >>> spans_of([1, 2, 3, 7, 9])
    [(1, 3), (7, 7), (9, 9)]
    """
    found: list[Span] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def numbers_of(spans: Iterable[Span], most: int) -> list[int]:
    """The first `most` numbers of spans that a peer may have made up."""
    found: list[int] = []
    for first, last in spans:
        found.extend(range(first, min(last, first + most - len(found) - 1) + 1))
        if len(found) >= most:
            break
    return found


def first_of(spans: Iterable[Span], most: int) -> list[Span]:
    """Of growing spans, those of the first so many numbers.

    >>> first_of([(1, 3), (7, 9)], 5)
    [(1, 3), (7, 8)]
    """
    found: list[Span] = []
    for first, last in spans:
        if most < 1:
            break
        found.append((first, min(last, first + most - 1)))
        most -= last - first + 1
    return found


def within(spans: Iterable[Span], first: int, last: int) -> list[Span]:
    """The parts of spans between two numbers."""
    cut = [(max(first, begin), min(last, end)) for begin, end in spans]
    return [(begin, end) for begin, end in cut if begin <= end]


def gaps(first: int, last: int, present: Sequence[int], settled: Spans) -> list[Span]:
    """What lies between two numbers and is neither among growing numbers nor in spans."""
    there = Spans(settled.between(first, last))
    for span in spans_of(present[bisect_left(present, first) : bisect_right(present, last)]):
        there.add(*span)
    return there.gaps(first, last)
