"""The represented obsolescence relation over the messages of a history, and its closure.

Edges run from a message to those it replaces directly, as `semcast.obsolescence.obsoletes` decides;
an item tag needs only the edge to the message before it with the same tag. Nobody needs the closure
itself: what is asked is who has a message or anything that replaces it, and that flows along the edges
in one pass, replacements first.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from semcast.core.annotations import Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.runs import Span

Orders = dict[tuple[MemberId, int], list[int]]
"""The positions in the total order that rows give to annotated messages, if annotations speak of such."""

_ORDERED = (Kind.MULTICAST, Kind.DELIVER, Kind.PURGE)


class Relation:
    """Who replaces whom among the annotated messages; the others replace and are replaced by nothing.

    Messages are known by their place in `messages`, which is in the order of (sender, seq).
    """

    def __init__(self, messages: list[Event], orders: Orders) -> None:
        self.messages = messages
        self._orders = orders
        self._places: dict[MemberId, dict[int, int]] = {}
        for place, message in enumerate(self.messages):
            self._places.setdefault(message.process, {})[message.seq] = place
        self._seqs = {sender: list(places) for sender, places in self._places.items()}
        self._by_order = self._positions()
        self.replaced = self._replaced()
        self.sequence, self.endless = _replacements_first(self.replaced)

    def within(self, places: Iterable[int]) -> "Relation":
        """The relation between some of the messages, as if there were no others."""
        return Relation([self.messages[place] for place in sorted(places)], self._orders)

    def places(self, sender: MemberId, span: Span | None = None) -> range:
        """The places of a sender's annotated messages, all or those within a span."""
        seqs = self._seqs.get(sender)
        if seqs is None:
            return range(0)
        first, last = span or (seqs[0], seqs[-1])
        start = self._places[sender][seqs[0]]
        return range(start + bisect_left(seqs, first), start + bisect_right(seqs, last))

    def cover(self, masks: list[int]) -> None:
        """Give each message the bits of everything that replaces it, in place.

        Only meaningful where `endless` is empty.
        """
        for new in self.sequence:
            mask = masks[new]
            if mask:
                for old in self.replaced[new]:
                    masks[old] |= mask

    def cycle(self) -> list[int]:
        """Messages that replace each other in a circle, each followed by one that replaces it."""
        replacement: dict[int, int] = {}
        stuck = set(self.endless)
        for new in self.endless:
            for old in self.replaced[new]:
                if old in stuck:
                    replacement.setdefault(old, new)
        path = {self.endless[0]: 0}
        at = self.endless[0]
        while (at := replacement[at]) not in path:
            path[at] = len(path)
        return list(path)[path[at] :]

    def _positions(self) -> dict[int, list[int]]:
        """Places by position in the total order."""
        found: dict[int, list[int]] = {}
        if self._orders:
            for place, message in enumerate(self.messages):
                for position in self._orders.get((message.process, message.seq), ()):
                    found.setdefault(position, []).append(place)
        return found

    def _replaced(self) -> list[list[int]]:
        latest: dict[tuple[MemberId, str], int] = {}
        replaced = []
        for place, message in enumerate(self.messages):
            annotation = message.annotation
            if isinstance(annotation, Item):
                key = message.process, annotation.item
                replaced.append([latest[key]] if key in latest else [])
                latest[key] = place
            elif isinstance(annotation, Enumeration):
                replaced.append([old for old in self._named(annotation) if old != place])
            else:
                assert isinstance(annotation, KEnumeration)
                replaced.append(list(self._marked(message, annotation)))
        return replaced

    def _named(self, annotation: Enumeration) -> Iterable[int]:
        for named in annotation.ids:
            old = self._places.get(named.sender, {}).get(named.seq)
            if old is not None:
                yield old

    def _marked(self, message: Event, annotation: KEnumeration) -> Iterable[int]:
        if annotation.total:
            for position in annotation.positions():
                yield from self._by_order.get(position, ())
            return
        places = self._places[message.process]
        for seq in annotation.positions():
            if seq < message.seq and seq in places:
                yield places[seq]


def relation_of(history: History) -> Relation:
    """The relation between all messages of a history."""
    messages = _annotated(history)
    return Relation(messages, _orders(history, messages))


def _orders(history: History, messages: list[Event]) -> Orders:
    found: Orders = {}
    if not any(_is_total(message) for message in messages):
        return found
    seqs: dict[MemberId, list[int]] = {}
    for message in messages:
        seqs.setdefault(message.process, []).append(message.seq)
    for event in history.events:
        if event.order is None or event.kind not in _ORDERED or event.sender not in seqs:
            continue
        theirs = seqs[event.sender]
        for seq in theirs[bisect_left(theirs, event.seq) : bisect_right(theirs, event.last)]:
            known = found.setdefault((event.sender, seq), [])
            if event.order + seq - event.seq not in known:
                known.append(event.order + seq - event.seq)
    return found


def _annotated(history: History) -> list[Event]:
    found: dict[tuple[MemberId, int], Event] = {}
    for event in history.events:
        if event.kind is Kind.MULTICAST and event.annotation is not None:
            found.setdefault((event.process, event.seq), event)
    return [found[key] for key in sorted(found)]


def _is_total(message: Event) -> bool:
    return isinstance(message.annotation, KEnumeration) and message.annotation.total


def _replacements_first(replaced: list[list[int]]) -> tuple[list[int], list[int]]:
    """An order in which each message comes after all that replace it, and those that no order has."""
    waiting = [0] * len(replaced)
    for olds in replaced:
        for old in olds:
            waiting[old] += 1
    sequence = [place for place, count in enumerate(waiting) if not count]
    for new in sequence:
        for old in replaced[new]:
            waiting[old] -= 1
            if not waiting[old]:
                sequence.append(old)
    return sequence, [place for place, count in enumerate(waiting) if count]
