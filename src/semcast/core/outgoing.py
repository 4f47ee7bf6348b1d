"""What an application wants multicast, until its stack has taken it."""

from collections.abc import Sequence

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.ids import MemberId
from semcast.core.messages import Batch, batch_of


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """Messages the application wants multicast."""

    payloads: Sequence[bytes]
    annotation: Annotation | None = None
    safe: bool = False
    annotations: Sequence[Annotation] | None = None
    """Or one for each of them."""
    confirm: tuple[int, bool] | None = None
    """A ticket, and whether it has to be safe: somebody waits to know what became of the last of them."""
    size: int = -1
    """Bytes of the payloads, where somebody has counted them."""

    def after(self, taken: int) -> "Outgoing":
        """What is left of them."""
        notes = None if self.annotations is None else self.annotations[taken:]
        size = -1 if self.size < 0 else self.size - self.bytes(taken)
        return Outgoing(self.payloads[taken:], self.annotation, self.safe, notes, self.confirm, size)

    def bytes(self, count: int) -> int:
        """Bytes of the first payloads. Where all were counted, each has its share: nobody looks at them."""
        if self.size < 0:
            return sum(map(len, self.payloads[:count]))
        return self.size * count // len(self.payloads)

    def batches(self, sender: MemberId, first: int, count: int) -> list[Batch]:
        """So many of them, with numbers from `first` on, as they are recorded: one by one if annotated."""
        if self.annotations is not None:
            return [
                batch_of(sender, first + place, [self.payloads[place]], self.annotations[place])
                for place in range(count)
            ]
        return [batch_of(sender, first, list(self.payloads[:count]), self.annotation)] if count else []
