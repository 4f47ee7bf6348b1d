"""Messages larger than a frame are cut; the pieces are numbered, repaired and ordered like messages."""

from semcast.core.ids import MemberId
from semcast.core.messages import Batch


def cut(payload: bytes, step: int) -> list[bytes]:
    """The pieces of a large message, `step` bytes each but for the last."""
    return [payload[start : start + step] for start in range(0, len(payload), step)]


class Assembly:
    """Puts the pieces of each sender together as they are lined up, so that a message is purged as a whole.

    A message has the number, the place in the order and the annotation of its last piece.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._pieces: dict[MemberId, list[Batch]] = {}
        self._sizes: dict[MemberId, int] = {}

    def whole(self, batch: Batch) -> Batch | None:
        """What is complete with this: messages that were never cut, or the one whose last piece it is."""
        if batch.left:
            return self._add(batch)
        if self._pieces:
            self._drop(batch.sender)  # the end of a message that was cut is gone
        return batch

    def _add(self, piece: Batch) -> Batch | None:
        sender = piece.sender
        last = self._pieces[sender][-1] if sender in self._pieces else None
        if last is not None and (piece.left != last.left - 1 or piece.first != last.first + 1):
            self._drop(sender)
        pieces = self._pieces.setdefault(sender, [])
        pieces.append(piece)
        self._sizes[sender] = self._sizes.get(sender, 0) + piece.size
        if self._sizes[sender] > self._largest:
            self._drop(sender)  # no correct member sends so much
            return None
        if piece.left > 1:
            return None
        self._drop(sender)
        payload = b"".join([each.payloads[0] for each in pieces])
        return Batch(piece.sender, piece.first, [payload], piece.annotation, len(payload), b"", piece.order)

    def _drop(self, sender: MemberId) -> None:
        self._pieces.pop(sender, None)
        self._sizes.pop(sender, None)
