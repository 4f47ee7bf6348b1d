"""Messages on the wire: consecutive ones of a stream share a frame, plain ones or updates of items.

A message with any other annotation has a frame of its own.
"""

from functools import cached_property
from typing import Annotated

import msgspec

from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.core.outbox import Frame
from semcast.wire.annotations import WireAnnotation, from_wire, to_wire
from semcast.wire.limits import MAX_ITEM, MAX_SEQ

Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
Seq = Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQ)]
ItemName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ITEM)]


class Data(Frame, frozen=True, array_like=True, tag=70, gc=True, dict=True):
    """Consecutive messages of a stream, from its sender, a peer or a log; one, if it has an annotation."""

    sender: MemberId
    first: Seq
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1)]
    annotation: WireAnnotation | None = None
    answers: Number = 0
    """The round of the gossip that it answers, for measuring the round trip."""
    items: list[ItemName] | None = None
    """Of a run of updates: the item of each, instead of an annotation."""

    @cached_property
    def batch(self) -> Batch | None:
        """These messages; None if no correct member can have sent them.

        Worked out once: in a simulation a thousand members are given the same frame.
        """
        payloads, items, annotation = self.payloads, self.items, self.annotation
        if self.first + len(payloads) - 1 > MAX_SEQ:
            return None
        if annotation is not None and (len(payloads) > 1 or items is not None):
            return None
        if items is not None and len(items) != len(payloads):
            return None
        size = sum(map(len, payloads))
        return Batch(self.sender, self.first, payloads, from_wire(annotation), size, items=items)


def data_of(batch: Batch, answers: int = 0) -> Data:
    """Messages on the wire."""
    return Data(batch.sender, batch.first, batch.payloads, to_wire(batch.annotation), answers, batch.items)
