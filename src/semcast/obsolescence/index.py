"""Where the messages of one sender are in a buffer (Pereira 2002, section 5.2.2).

A key names a message: the sequence number, moved to a range of the sender's own. Items lead to a key
directly; for k-enumerations, the paper's "and" of two bitmaps: what is replaced, and what is here.
"""

from collections import deque
from collections.abc import Iterable

from semcast.core.annotations import Item, KEnumeration
from semcast.core.messages import Batch

MAX_REACH = 4096
"""Bits of k-enumeration that are looked at; what is further away counts as not obsolete."""

STRIDE = (1 << 64) + 0x9E3779B97F4A7C15
"""Distance between the keys of two senders: no sequence number bridges it, and hashes spread."""


class SenderIndex:
    """What one sender has in the buffer, apart from batches without annotation."""

    __slots__ = ("base", "condemned", "items", "newest", "present", "reach")

    def __init__(self, number: int) -> None:
        self.base = number * STRIDE
        self.items: dict[str, int] = {}  # item -> key of its latest message here
        self.condemned: deque[tuple[Batch, list[int]]] = deque()  # held: (by, keys of victims)
        # Bit j: the message at newest - j is here. Kept only once a k-enumeration was seen.
        self.present = 0
        self.newest = 0
        self.reach = 0

    def insert(self, key: int, batch: Batch) -> None:
        """The annotated message `batch` is in the buffer now."""
        annotation = batch.annotation
        if type(annotation) is Item:
            self.items[annotation.item] = key
        if self.reach:
            self.mark(batch.first)

    def remove(self, key: int, batch: Batch) -> None:
        """It left."""
        annotation = batch.annotation
        if type(annotation) is Item and self.items.get(annotation.item) == key:
            del self.items[annotation.item]
        if self.reach:
            self.unmark(batch.first)

    def at_positions(self, annotation: KEnumeration, keys: Iterable[int]) -> list[int]:
        """The keys of those the annotation replaces, latest first; `keys` is all that is here."""
        bits = annotation.bitmap
        if annotation.total or not bits:
            return []  # a batch does not know its position in the total order
        if self.reach < min(bits.bit_length(), MAX_REACH):
            self._extend(bits.bit_length(), keys)
        shift = self.newest - (annotation.base - 1)
        if shift >= 0:
            bits &= self.present >> shift
        else:
            bits &= self.present << min(-shift, bits.bit_length())
        found = []
        base = self.base + annotation.base
        while bits:
            low = bits & -bits
            found.append(base - low.bit_length())
            bits ^= low
        return found

    def mark(self, seq: int) -> None:
        """The message is here."""
        assert seq > self.newest, "sequence numbers of a sender grow"
        shift = min(seq - self.newest, self.reach)
        self.present = ((self.present << shift) | 1) & ((1 << self.reach) - 1)
        self.newest = seq

    def unmark(self, seq: int) -> None:
        """The message is not here any more."""
        if 0 <= self.newest - seq < self.reach:
            self.present &= ~(1 << (self.newest - seq))

    def _extend(self, reach: int, keys: Iterable[int]) -> None:
        self.reach = min(max(64, 1 << (reach - 1).bit_length()), MAX_REACH)
        here = [key - self.base for key in keys if 0 < key - self.base < STRIDE]
        self.newest = max(here, default=0)
        self.present = sum(1 << (self.newest - seq) for seq in here if self.newest - seq < self.reach)
