"""Workloads: when a sender sends (arrivals), and what (contents).

Payloads are small records that replicas can apply, so that every run also checks the state its messages
build up: `replica.py` reads what `contents` writes here.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.ids import SECOND, MemberId, MessageId, Nanos
from semcast.core.outgoing import Outgoing
from semcast.obsolescence import OperationTracker, SingleItemTracker
from semcast.sim.replica import Record, RecordKind

Content = tuple[Record, Annotation | None]


def constant(rate: float) -> Iterator[Nanos]:
    """The same interval every time."""
    interval = int(SECOND / rate)
    while True:
        yield interval


def poisson(rate: float, rng: Random) -> Iterator[Nanos]:
    """Exponential intervals."""
    while True:
        yield int(rng.expovariate(rate) * SECOND)


def bursts(rate: float, size: int) -> Iterator[Nanos]:
    """`size` messages at once, then a pause that keeps the mean rate."""
    pause = int(SECOND * size / rate)
    while True:
        yield pause
        for _ in range(size - 1):
            yield 0


class Representation:
    """Turns "an update of this item" into an annotation. This one uses item tags."""

    def update(self, item: str) -> Annotation:
        """The annotation of the next message."""
        return Item(item)

    def reliable(self) -> None:
        """The next message never becomes obsolete."""


class Bitmaps(Representation):
    """k-enumeration."""

    def __init__(self, k: int) -> None:
        self._tracker = SingleItemTracker(k)

    def update(self, item: str) -> Annotation:
        """The annotation of the next message."""
        return self._tracker.update(item)

    def reliable(self) -> None:
        """The next message never becomes obsolete."""
        self._tracker.reliable()


class Enumerated(Representation):
    """Explicit enumeration of the `depth` latest messages on the same item."""

    def __init__(self, me: MemberId, depth: int) -> None:
        self._me = me
        self._depth = depth
        self._seq = 0
        self._earlier: dict[str, deque[MessageId]] = {}

    def update(self, item: str) -> Annotation:
        """The annotation of the next message."""
        self._seq += 1
        earlier = self._earlier.setdefault(item, deque(maxlen=self._depth))
        annotation = Enumeration(tuple(earlier))
        earlier.append(MessageId(self._me, self._seq))
        return annotation

    def reliable(self) -> None:
        """The next message never becomes obsolete."""
        self._seq += 1


def plain() -> Iterator[Content]:
    """Messages that never become obsolete."""
    value = 0
    while True:
        value += 1
        yield Record(RecordKind.PLAIN, "", value), None


def overwrites(r: float, d: int, rng: Random, representation: Representation) -> Iterator[Content]:
    """The f_{r,d} traffic (Pereira 2002, 5.3.1): a share r overwrites one of d items, the rest is plain."""
    value = 0
    while True:
        value += 1
        if rng.random() < r:
            item = f"i{rng.randrange(d)}"
            yield Record(RecordKind.UPDATE, item, value), representation.update(item)
        else:
            representation.reliable()
            yield Record(RecordKind.PLAIN, "", value), None


STOCK_CLASSES: tuple[tuple[int, float], ...] = ((25, 0.5), (100, 0.4), (750, 0.1))


def stocks(
    rng: Random, representation: Representation, classes: Sequence[tuple[int, float]] = STOCK_CLASSES
) -> Iterator[Content]:
    """Quotes of stocks in classes of (how many, share of the operations) (Pereira 2003, table 1)."""
    weights = [share for _, share in classes]
    value = 0
    while True:
        value += 1
        [which] = rng.choices(range(len(classes)), weights)
        item = f"s{which}.{rng.randrange(classes[which][0])}"
        yield Record(RecordKind.UPDATE, item, value), representation.update(item)


def operations(items: int, most: int, rng: Random, tracker: OperationTracker) -> Iterator[Content]:
    """Atomic operations over 1 to `most` of the items, each closed by a commit (figure 3.8)."""
    value = 0
    names = [f"i{item}" for item in range(items)]
    while True:
        value += 1
        touched = rng.sample(names, rng.randint(1, min(most, items)))
        updates, commit = tracker.operation(touched)
        for item, tag in zip(touched, updates, strict=True):
            yield Record(RecordKind.PART, item, value), tag
        yield Record(RecordKind.COMMIT, "", value), commit


def shared(r: float, k: int, rng: Random) -> Iterator[Content]:
    """Notes that replace some of the `k` latest messages of anybody: positions are set when one is sent."""
    value = 0
    while True:
        value += 1
        named = sum(1 << place for place in range(k) if rng.random() < r)
        yield Record(RecordKind.NOTE, "", value), KEnumeration(k + 1, named, total=True)


def placed(annotation: KEnumeration, position: int) -> KEnumeration:
    """A note of `shared`, sent by who has read up to this position of the total order.

    >>> placed(KEnumeration(9, 0b1011, total=True), 2)
    KEnumeration(base=3, bitmap=3, total=True)
    """
    there = (1 << min(position, annotation.bitmap.bit_length())) - 1
    return KEnumeration(position + 1, annotation.bitmap & there, total=True)


class Source:
    """What one sender sends: intervals, contents, how many, the least size of a payload.

    Each `safe_every`-th message asks for safe delivery, with 0 none.
    """

    def __init__(
        self,
        arrivals: Iterator[Nanos],
        contents: Iterator[Content],
        count: int | None = None,
        size: int = 0,
        safe_every: int = 0,
    ) -> None:
        self._arrivals = arrivals
        self._contents = contents
        self._left = count
        self._size = size
        self._safe_every = safe_every
        self._made = 0
        self._encode = msgspec.msgpack.Encoder().encode

    def next_gap(self) -> Nanos | None:
        """Time until the next message; None if there is none."""
        if self._left == 0:
            return None
        if self._left is not None:
            self._left -= 1
        return next(self._arrivals, None)

    def next_message(self) -> Outgoing | None:
        """The next message; None if the contents ended (a trace that was replayed)."""
        content = next(self._contents, None)
        if content is None:
            return None
        record, annotation = content
        payload = self._encode(record)
        if len(payload) < self._size:
            padded = Record(record.kind, record.item, record.value, bytes(self._size - len(payload)))
            payload = self._encode(padded)
        self._made += 1
        safe = self._safe_every > 0 and self._made % self._safe_every == 0
        return Outgoing([payload], annotation, safe)
