"""Messages as the application sees them, and batches as protocols handle them."""

from itertools import count, repeat

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import MemberId, MessageId


class Message(msgspec.Struct, frozen=True, gc=False):
    """One delivered message."""

    id: MessageId
    payload: bytes
    annotation: Annotation | None = None
    order: int | None = None

    @property
    def sender(self) -> MemberId:
        """Who multicast it."""
        return self.id.sender


class PrivateMessage(Message, frozen=True, gc=False):
    """A message to this program alone, in its place among those for all."""


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A run of consecutive messages of one sender: the unit of work on the hot path.

    A batch with an annotation holds exactly one message. One without may hold many: updates, each with an
    item of its own, or messages that can never become obsolete.
    """

    sender: MemberId
    first: int
    payloads: list[bytes]
    annotation: Annotation | None = None
    size: int = 0
    head: bytes = b""
    """What the protocol says about the first of them; only the protocol that wrote it reads it."""
    order: int | None = None
    """The position of the first of them in the total order, where there is one."""
    left: int = 0
    """A piece of a message that was cut: how many are left, this one included; 0 for whole messages."""
    items: list[str] | None = None
    """A run of updates: the item of each of them."""

    @property
    def last(self) -> int:
        """Sequence number of the last message."""
        return self.first + len(self.payloads) - 1

    def cut(self, first: int, last: int) -> "Batch":
        """The part between two sequence numbers, both inside and inclusive."""
        start, stop, total = first - self.first, last - self.first + 1, len(self.payloads)
        assert 0 <= start < stop <= total
        if stop - start == total:
            return self
        head = b"" if start else self.head
        order = None if self.order is None else self.order + start
        payloads = self.payloads[start:stop]
        items = None if self.items is None else self.items[start:stop]
        size = sum(map(len, payloads))
        return Batch(self.sender, first, payloads, self.annotation, size, head, order, 0, items)

    def singles(self) -> "list[Batch]":
        """A run of updates as batches of one, each with its annotation.

        >>> run = Batch(MemberId("p"), 7, [b"1", b"2"], items=["bid", "ask"])
        >>> [(single.first, single.annotation) for single in run.singles()]
        [(7, Item(item='bid')), (8, Item(item='ask'))]
        """
        assert self.items is not None, "only a run of updates can be taken apart"
        sender, order = self.sender, self.order
        updates = enumerate(zip(self.payloads, self.items, strict=True), self.first)
        if order is None:
            return [Batch(sender, seq, [data], Item(item), len(data)) for seq, (data, item) in updates]
        ahead = order - self.first
        return [
            Batch(sender, seq, [data], Item(item), len(data), b"", seq + ahead)
            for seq, (data, item) in updates
        ]

    def messages(self) -> list[Message]:
        """The single messages, for the application."""
        # All in C: a program that reads one by one pays for this with every message.
        ids = map(MessageId, repeat(self.sender), count(self.first))
        notes = repeat(self.annotation) if self.items is None else map(Item, self.items)
        if self.order is not None:
            return list(map(Message, ids, self.payloads, notes, count(self.order)))
        if self.items is not None:
            return list(map(Message, ids, self.payloads, notes))
        if self.annotation is not None:
            return list(map(Message, ids, self.payloads, repeat(self.annotation)))
        return list(map(Message, ids, self.payloads))


def batch_of(
    sender: MemberId,
    first: int,
    payloads: list[bytes],
    annotation: Annotation | None = None,
    head: bytes = b"",
) -> Batch:
    """A batch with its size in bytes worked out once, so that buffers need not."""
    assert payloads, "a batch holds at least one message"
    assert annotation is None or len(payloads) == 1, "an annotation speaks for one message"
    return Batch(sender, first, payloads, annotation, sum(map(len, payloads)), head)
