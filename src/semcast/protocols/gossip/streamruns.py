"""Messages of one stream, as the runs in which they came: work is done for each run, not each message."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from types import NoneType

from semcast.core.annotations import Item
from semcast.core.messages import Batch
from semcast.protocols.gossip.spans import Span
from semcast.protocols.semantic.answers import LENGTH

_STALE = 64
"""Numbers of runs that left which are not worth to be cleared away."""


class StreamRuns:
    """Disjoint runs, found by any of their numbers; they leave whole, in whatever order.

    >>> from semcast.core import MemberId
    >>> runs, p = StreamRuns(), MemberId("p")
    >>> runs.add(Batch(p, 1, [b"a", b"b", b"c"])), runs.add(Batch(p, 5, [b"e"]))
    (True, True)
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

    def find(self, seq: int) -> Batch | None:
        """The run that a message is in."""
        batch = self._runs.get(seq)
        if batch is None:
            found = self._touching(seq, seq)
            batch = found[0] if found else None
        return batch

    def add(self, batch: Batch) -> bool:
        """Another run; returns whether none begins there, as none of its other messages are here."""
        firsts, first = self._firsts, batch.first
        if first in self._runs:
            return False
        if not firsts or first > firsts[-1]:
            firsts.append(first)
        else:
            place = bisect_left(firsts, first)
            if firsts[place] != first:
                firsts.insert(place, first)
        self._runs[first] = batch
        self._count += len(batch.payloads)
        return True

    def remove(self, first: int) -> Batch | None:
        """Take out the run that begins there."""
        batch = self._runs.pop(first, None)
        if batch is not None:
            self._count -= len(batch.payloads)
            if len(self._firsts) > 2 * len(self._runs) + _STALE:
                self._firsts = sorted(self._runs)
        return batch

    def between(self, first: int, last: int) -> list[Batch]:
        """The messages between two numbers; none, if the second is below the first."""
        found = self._touching(first, last) if first <= last else []
        return [each.cut(max(first, each.first), min(last, each.last)) for each in found]

    def _touching(self, first: int, last: int) -> list[Batch]:
        """The runs that have any of these numbers."""
        found: list[Batch] = []
        firsts, runs = self._firsts, self._runs
        place = bisect_right(firsts, first) - 1
        while place > 0 and firsts[place] not in runs:
            place -= 1
        for begin in firsts[max(0, place) : bisect_right(firsts, last)]:
            batch = runs.get(begin)
            if batch is not None and batch.last >= first:
                found.append(batch)
        return found

    def spans(self) -> list[Span]:
        """Their numbers."""
        found: list[Span] = []
        begin, end = 0, -1
        for batch in self:  # in order, and disjoint
            if batch.first > end + 1:
                if end >= begin:
                    found.append((begin, end))
                begin = batch.first
            end = batch.last
        if end >= begin:
            found.append((begin, end))
        return found


def item_bytes(item: str) -> int:
    """What an item takes on the wire."""
    return LENGTH + (len(item) if item.isascii() else len(item.encode()))


def runs_of(singles: Sequence[Batch], room: int) -> Iterator[Batch]:
    """Messages of one stream, as runs that fit into a frame each: of plain ones, and of updates of items.

    Those with other annotations stay alone.

    >>> from semcast.core import Item, MemberId
    >>> p = MemberId("p")
    >>> found = [Batch(p, seq, [b"....."], None, 5) for seq in (1, 2, 3, 5, 6)]
    >>> [(each.first, len(each.payloads)) for each in runs_of(found, 20)]
    [(1, 2), (3, 1), (5, 2)]
    >>> notes = (None, Item("a"), Item("b"))
    >>> found = [Batch(p, seq, [b"."], note, 1) for seq, note in enumerate(notes, 1)]
    >>> [(each.first, each.items) for each in runs_of(found, 20)]
    [(1, None), (2, ['a', 'b'])]
    """
    start = 0
    while start < len(singles):
        first = singles[start]
        end, left = start + 1, room - cost_of(first)
        while end < len(singles) and _share(first, singles[end], end - start):
            left -= cost_of(singles[end])
            if left < 0:
                break
            end += 1
        yield first if end == start + 1 else _joined(singles[start:end])
        start = end


def _share(first: Batch, each: Batch, after: int) -> bool:
    """Whether a message that is so many after the first of a run may be in it."""
    if each.first != first.first + after:
        return False
    return type(first.annotation) is type(each.annotation) and type(each.annotation) in (NoneType, Item)


def cost_of(single: Batch) -> int:
    """Bytes of a message in a frame."""
    note = single.annotation
    return single.size + LENGTH + (item_bytes(note.item) if isinstance(note, Item) else 0)


def _joined(singles: Sequence[Batch]) -> Batch:
    first, payloads = singles[0], [each.payloads[0] for each in singles]
    items = [each.annotation.item for each in singles if isinstance(each.annotation, Item)]
    return Batch(first.sender, first.first, payloads, size=sum(map(len, payloads)), items=items or None)
