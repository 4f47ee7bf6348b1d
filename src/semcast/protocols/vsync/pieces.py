"""Messages larger than a frame are cut; the pieces are numbered, repaired and ordered like messages."""

from collections.abc import Iterable

from semcast.core.ids import MemberId
from semcast.core.messages import Batch


def cut(payload: bytes, step: int) -> list[bytes]:
    """The pieces of a large message, `step` bytes each but for the last."""
    return [payload[start : start + step] for start in range(0, len(payload), step)]


class Assembly:
    """Puts the pieces of each sender together, in the order in which they are delivered.

    A message has the number, the place in the order and the annotation of its last piece.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._pieces: dict[MemberId, list[Batch]] = {}

    def whole(self, batches: Iterable[Batch]) -> list[Batch]:
        """The messages that end among these."""
        found = []
        for batch in batches:
            if not batch.left:
                self._pieces.pop(batch.sender, None)  # the end of a message that was cut is gone
                found.append(batch)
                continue
            message = self._add(batch)
            if message is not None:
                found.append(message)
        return found

    def _add(self, piece: Batch) -> Batch | None:
        pieces = self._pieces.setdefault(piece.sender, [])
        if pieces and (piece.left != pieces[-1].left - 1 or piece.first != pieces[-1].first + 1):
            pieces.clear()
        pieces.append(piece)
        if sum(each.size for each in pieces) > self._largest:
            pieces.clear()  # no correct member sends so much
        if piece.left > 1 or not pieces:
            return None
        del self._pieces[piece.sender]
        payload = b"".join([each.payloads[0] for each in pieces])
        return Batch(piece.sender, piece.first, [payload], piece.annotation, len(payload), b"", piece.order)
