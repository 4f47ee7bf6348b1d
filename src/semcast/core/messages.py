"""Messages as the application sees them, and batches as protocols handle them."""

import msgspec

from semcast.core.annotations import Annotation
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


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A run of consecutive messages of one sender: the unit of work on the hot path.

    A batch with an annotation holds exactly one message; one without may hold many, and none of
    those can ever become obsolete.
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

    @property
    def last(self) -> int:
        """Sequence number of the last message."""
        return self.first + len(self.payloads) - 1

    def cut(self, first: int, last: int) -> "Batch":
        """The part between two sequence numbers, both inside and inclusive."""
        start, stop, count = first - self.first, last - self.first + 1, len(self.payloads)
        assert 0 <= start < stop <= count
        if stop - start == count:
            return self
        head = b"" if start else self.head
        order = None if self.order is None else self.order + start
        payloads = self.payloads[start:stop]
        return Batch(self.sender, first, payloads, self.annotation, sum(map(len, payloads)), head, order)

    def messages(self) -> list[Message]:
        """The single messages, for the application."""
        order = self.order
        if order is None:
            return [
                Message(MessageId(self.sender, seq), payload, self.annotation)
                for seq, payload in enumerate(self.payloads, self.first)
            ]
        return [
            Message(MessageId(self.sender, self.first + place), payload, self.annotation, order + place)
            for place, payload in enumerate(self.payloads)
        ]


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
