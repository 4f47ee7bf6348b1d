"""Messages that a program sends one by one share a frame, as long as it has not left: those of one turn.

Only the frame is shared: for everything else, each of them is a batch of its own. Those that a program sends
in one call fill frames as it is (`sending.py`).
"""

from semcast.core.annotations import Item
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.data import Data, data_of
from semcast.protocols.gossip.streamruns import cost_of


class Joining:
    """The multicasts of one member.

    Args:
        out: where they go.
        room: bytes of messages that one frame carries.
    """

    def __init__(self, out: Outbox, room: int) -> None:
        self._out = out
        self._room = room
        self._last: tuple[Data, Batch] | None = None  # the last frame, and what came to it last
        self._left = 0  # bytes of room in it

    def multicast(self, batch: Batch) -> None:
        """In a frame with those before it, if that waits to leave and they are of one kind."""
        if self._last is not None and self._waits(self._last[0]) and self._fits(batch, self._last[1]):
            self._last = self._joined(batch, *self._last), batch
            return
        frame = data_of(batch)
        self._out.multicast(frame)
        self._last = (frame, batch) if _is_joinable(batch) else None
        self._left = self._room - cost_of(batch)

    def _waits(self, frame: Data) -> bool:
        sends = self._out.sends
        return bool(sends) and sends[-1][1] is frame

    def _fits(self, batch: Batch, before: Batch) -> bool:
        """Whether it may follow another, and there is room."""
        alike = type(batch.annotation) is type(before.annotation) and batch.first == before.last + 1
        return alike and _is_joinable(batch) and cost_of(batch) <= self._left

    def _joined(self, batch: Batch, frame: Data, before: Batch) -> Data:
        self._left -= cost_of(batch)
        if frame.payloads is before.payloads:  # not to be changed: it is that of the batch
            items = None if before.annotation is None else [_item(before)]
            frame = Data(frame.sender, frame.first, list(before.payloads), items=items)
            self._out.sends[-1] = None, frame
        frame.payloads.extend(batch.payloads)
        if frame.items is not None:
            frame.items.append(_item(batch))
        return frame


def _is_joinable(batch: Batch) -> bool:
    """Whether it is a single message, plain or about an item."""
    plain = batch.annotation is None and batch.items is None
    return len(batch.payloads) == 1 and (plain or isinstance(batch.annotation, Item))


def _item(batch: Batch) -> str:
    return batch.annotation.item if isinstance(batch.annotation, Item) else ""
