"""The one queue of every family: FIFO, bounded, and able to drop what became obsolete.

Adding costs O(messages made obsolete), whatever the buffer holds: items, sequence numbers and, for
k-enumerations, a bitmap of what is present (Pereira 2002, section 5.2.2) lead straight to the victims.
Batches without annotation are one entry and never touch the index.
"""

import enum
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.core.messages import Batch

MAX_REACH = 4096
"""Bits of k-enumeration that are looked at; what is further away counts as not obsolete."""


class Purging(enum.Enum):
    """When the victims of a new message leave."""

    EAGER = "eager"
    LAZY = "lazy"
    """Only when room is needed."""
    HELD = "held"
    """Only when `release` says that the replacing message may be relied on."""
    OFF = "off"
    """Never: annotations are ignored."""


# Enum members looked up once: the hot path compares with them.
EAGER, LAZY, HELD, OFF = Purging.EAGER, Purging.LAZY, Purging.HELD, Purging.OFF

_NONE: list[Batch] = []


Receipt = tuple[Batch, Batch]
"""(victim, by): the first was purged because of the second."""


class _Index:
    """What one sender has in the buffer, apart from batches without annotation."""

    __slots__ = ("condemned", "items", "keys", "newest", "present", "reach")

    def __init__(self) -> None:
        self.keys: dict[int, int] = {}  # sequence number -> key in the queue
        self.items: dict[str, Batch] = {}  # item -> its latest message here
        self.condemned: deque[tuple[Batch, list[Batch]]] = deque()  # held: (by, victims)
        # Bit j: the message at newest - j is here. Kept only once a k-enumeration was seen.
        self.present = 0
        self.newest = 0
        self.reach = 0

    def insert(self, batch: Batch, key: int) -> None:
        self.keys[batch.first] = key
        annotation = batch.annotation
        if type(annotation) is Item:
            self.items[annotation.item] = batch
        if self.reach:
            self.mark(batch.first)

    def remove(self, batch: Batch) -> int:
        key = self.keys.pop(batch.first)
        annotation = batch.annotation
        if type(annotation) is Item and self.items.get(annotation.item) is batch:
            del self.items[annotation.item]
        if self.reach:
            self.unmark(batch.first)
        return key

    def mark(self, seq: int) -> None:
        shift = min(seq - self.newest, self.reach)
        self.present = ((self.present << shift) | 1) & ((1 << self.reach) - 1)
        self.newest = seq

    def unmark(self, seq: int) -> None:
        if self.newest - seq < self.reach:
            self.present &= ~(1 << (self.newest - seq))

    def at_positions(self, annotation: KEnumeration) -> list[int]:
        """The keys of those the annotation replaces, latest first."""
        bits = annotation.bitmap
        if bits.bit_length() > self.reach:
            self._extend(bits.bit_length())
        shift = self.newest - (annotation.base - 1)
        if shift >= 0:
            bits &= self.present >> shift
        else:
            bits &= self.present << min(-shift, bits.bit_length())
        found = []
        while bits:
            low = bits & -bits
            found.append(self.keys[annotation.base - low.bit_length()])
            bits ^= low
        return found

    def _extend(self, reach: int) -> None:
        self.reach = min(max(64, 1 << (reach - 1).bit_length()), MAX_REACH)
        self.newest = max(self.keys, default=0)
        self.present = sum(1 << (self.newest - seq) for seq in self.keys if self.newest - seq < self.reach)


class PurgingBuffer:
    """A FIFO queue of batches, bounded in messages and bytes.

    Sequence numbers of a sender enter in growing order.

    >>> from semcast.core import Item, MemberId
    >>> from semcast.core.messages import batch_of
    >>> p = MemberId("p")
    >>> buffer = PurgingBuffer(limit_messages=2)
    >>> [buffer.add(batch_of(p, seq, [b"."], Item(x))) for seq, x in ((1, "a"), (2, "b"), (3, "a"))]
    [True, True, True]
    >>> [(victim.first, by.first) for victim, by in buffer.take_receipts()]
    [(1, 3)]
    >>> buffer.add(batch_of(p, 4, [b"."], Item("c")))       # full, and c replaces nothing
    False
    >>> [batch.first for batch in buffer.pop(10)]
    [2, 3]
    """

    __slots__ = (
        "_bounded",
        "_bytes",
        "_index",
        "_limit_bytes",
        "_limit_messages",
        "_messages",
        "_next_key",
        "_purging",
        "_queue",
        "_receipts",
        "_waiting",
    )

    def __init__(
        self,
        purging: Purging = Purging.EAGER,
        limit_messages: int | None = None,
        limit_bytes: int | None = None,
    ) -> None:
        self._purging = purging
        self._limit_messages = limit_messages
        self._limit_bytes = limit_bytes
        self._bounded = limit_messages is not None or limit_bytes is not None
        self._queue: OrderedDict[int, Batch] = OrderedDict()
        self._next_key = 0
        self._messages = 0
        self._bytes = 0
        self._index: dict[MemberId, _Index] = {}
        self._waiting: deque[tuple[Batch, Batch]] = deque()  # lazy: (victim, by), oldest first
        self._receipts: list[Receipt] = []

    def __len__(self) -> int:
        return self._messages

    @property
    def bytes(self) -> int:
        """Payload bytes held."""
        return self._bytes

    def __iter__(self) -> Iterator[Batch]:
        """The entries, oldest first."""
        return iter(self._queue.values())

    def add(self, batch: Batch) -> bool:
        """Append; False, and `batch` stays out, if it does not fit even after purging."""
        annotation = batch.annotation
        if annotation is None or self._purging is OFF:
            victims = _NONE
        elif type(annotation) is Item:
            index = self._index.get(batch.sender) or self._index_of(batch.sender)
            old = index.items.get(annotation.item)
            victims = _NONE if old is None else [old]
        else:
            victims = self._victims(batch.sender, annotation)
        if self._bounded and not self._make_room(batch, victims):
            return False
        if victims:
            if self._purging is EAGER:
                for victim in victims:
                    self._drop(victim)
                    self._receipts.append((victim, batch))
            elif self._purging is LAZY:
                self._waiting.extend([(victim, batch) for victim in victims])
            else:
                self._index[batch.sender].condemned.append((batch, victims))
        self._next_key = key = self._next_key + 1
        self._queue[key] = batch
        self._messages += len(batch.payloads)
        self._bytes += batch.size
        if annotation is not None:
            index = self._index.get(batch.sender) or self._index_of(batch.sender)
            index.insert(batch, key)
        return True

    def victims(self, batch: Batch) -> list[Batch]:
        """The entries that adding `batch` would make obsolete."""
        if batch.annotation is None or self._purging is OFF:
            return []
        return self._victims(batch.sender, batch.annotation)

    def pop(self, most: int, horizon: Mapping[MemberId, int] | None = None) -> list[Batch]:
        """Remove and return the oldest entries, `most` messages at most.

        With a `horizon`, messages of a sender beyond its number stay, and others pass them.
        """
        if horizon is not None:
            return self._pop_within(most, horizon)
        taken: list[Batch] = []
        queue = self._queue
        while most > 0 and queue:
            key, batch = queue.popitem(last=False)
            count = len(batch.payloads)
            if batch.annotation is not None:
                self._index[batch.sender].remove(batch)
            elif count > most:
                queue[key] = batch.cut(batch.first + most, batch.last)
                queue.move_to_end(key, last=False)
                batch = batch.cut(batch.first, batch.first + most - 1)
                count = most
            self._messages -= count
            self._bytes -= batch.size
            most -= count
            taken.append(batch)
        return taken

    def trim(self, upto: int) -> list[Batch]:
        """Remove and return the oldest entries that end at or before `upto` (one sender's buffer)."""
        taken: list[Batch] = []
        for batch in self._queue.values():
            if batch.last > upto:
                break
            taken.append(batch)
        for batch in taken:
            self._queue.popitem(last=False)
            if batch.annotation is not None:
                self._index[batch.sender].remove(batch)
            self._messages -= len(batch.payloads)
            self._bytes -= batch.size
        return taken

    def release(self, sender: MemberId, upto: int) -> None:
        """Held purging: messages of `sender` up to `upto` may be relied on; their victims go."""
        index = self._index.get(sender)
        if index is None:
            return
        while index.condemned and index.condemned[0][0].first <= upto:
            by, victims = index.condemned.popleft()
            for victim in victims:
                self._purge(victim, by)

    def discard(self, sender: MemberId, seq: int) -> Batch | None:
        """Remove one annotated message on somebody else's word; None if it is not here."""
        index = self._index.get(sender)
        key = index.keys.get(seq) if index is not None else None
        if key is None:
            return None
        batch = self._queue[key]
        self._drop(batch)
        return batch

    def holds(self, sender: MemberId, seq: int) -> bool:
        """Whether the annotated message is here."""
        index = self._index.get(sender)
        return index is not None and seq in index.keys

    def take_receipts(self) -> list[Receipt]:
        """What was purged since the last call, in order."""
        receipts, self._receipts = self._receipts, []
        return receipts

    def _index_of(self, sender: MemberId) -> _Index:
        index = self._index.get(sender)
        if index is None:
            index = self._index[sender] = _Index()
        return index

    def _victims(self, sender: MemberId, annotation: Annotation) -> list[Batch]:
        index = self._index_of(sender)
        if type(annotation) is Item:
            old = index.items.get(annotation.item)
            return [] if old is None else [old]
        if type(annotation) is Enumeration:
            found = []
            for named in annotation.ids:
                of_sender = self._index.get(named.sender)
                key = of_sender.keys.get(named.seq) if of_sender is not None else None
                if key is not None:
                    found.append(self._queue[key])
            return found
        assert type(annotation) is KEnumeration
        if not annotation.bitmap:
            return []
        return [self._queue[key] for key in index.at_positions(annotation)]

    def _make_room(self, batch: Batch, victims: list[Batch]) -> bool:
        """Whether `batch` fits once its victims are gone; lazily purges what that takes."""
        if not victims or self._purging is HELD:
            return self._fits(batch) or (self._purging is LAZY and self._purge_waiting(batch, victims))
        if self._purging is LAZY:
            return self._fits(batch) or self._purge_waiting(batch, victims)
        return self._fits(batch, len(victims), sum([victim.size for victim in victims]))

    def _fits(self, batch: Batch, freed: int = 0, freed_bytes: int = 0) -> bool:
        messages = self._messages + len(batch.payloads) - freed
        size = self._bytes + batch.size - freed_bytes
        return (self._limit_messages is None or messages <= self._limit_messages) and (
            self._limit_bytes is None or size <= self._limit_bytes
        )

    def _purge_waiting(self, batch: Batch, victims: list[Batch]) -> bool:
        while self._waiting and not self._fits(batch):
            self._purge(*self._waiting.popleft())
        victims[:] = [victim for victim in victims if self.holds(victim.sender, victim.first)]
        if not self._fits(batch, len(victims), sum([victim.size for victim in victims])):
            return False
        while not self._fits(batch):
            self._purge(victims.pop(0), batch)
        return True

    def _purge(self, victim: Batch, by: Batch) -> None:
        """Purge a victim found earlier, if it is still here."""
        if self.holds(victim.sender, victim.first):
            self._drop(victim)
            self._receipts.append((victim, by))

    def _drop(self, batch: Batch) -> None:
        del self._queue[self._index[batch.sender].remove(batch)]
        self._messages -= 1
        self._bytes -= batch.size

    def _pop_within(self, most: int, horizon: Mapping[MemberId, int]) -> list[Batch]:
        ripe = []
        for key, batch in self._queue.items():
            last = min(batch.last, horizon[batch.sender], batch.first + most - 1)
            if last >= batch.first:
                ripe.append((key, batch, last))
                most -= last - batch.first + 1
                if most == 0:
                    break
        taken: list[Batch] = []
        for key, batch, last in ripe:
            part = batch.cut(batch.first, last)
            if batch.annotation is not None:
                self._index[batch.sender].remove(batch)
            if last < batch.last:
                self._queue[key] = batch.cut(last + 1, batch.last)
            else:
                del self._queue[key]
            self._messages -= len(part.payloads)
            self._bytes -= part.size
            taken.append(part)
        return taken
