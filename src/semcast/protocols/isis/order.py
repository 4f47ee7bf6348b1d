"""The order inside of one view of a group: causal, and lined up with what other groups have."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from semcast.core.messages import Batch
from semcast.protocols.isis.stamps import Foreign, Head
from semcast.protocols.vsync.orders import CausalOrder, Lines

if TYPE_CHECKING:
    from semcast.protocols.isis.seat import Seat

_encode = msgspec.msgpack.Encoder().encode
_read_head = msgspec.msgpack.Decoder(Head).decode
_NOTHING = Head([])


class Ticket:
    """A run of messages of one sender that has its place in the line of the program.

    It stays there when messages of it are purged: what it says of other groups holds for those behind it.
    """

    __slots__ = ("changed", "first", "last", "number", "order", "others", "rank")

    def __init__(
        self,
        order: "DomainOrder",
        rank: int,
        first: int,
        last: int,
        changed: Sequence[tuple[int, int]],
        others: Sequence[Foreign],
        number: int,
    ) -> None:
        self.order = order
        self.rank = rank
        self.first = first
        self.last = last
        self.changed = changed
        """What it comes after in its own group."""
        self.others = others
        """What it comes after in other groups."""
        self.number = number
        """Of the first message, as its sender counts over all groups."""


class DomainOrder(CausalOrder):
    """Of one view. Messages are queued as in any causal group; `waiting` has what the program was not given.

    Args:
        lines: the stream of messages.
        view: its number.
        position: of the total order, of which there is none.
        seat: of this process in the group.
        enter: puts a ticket into the line of the program.
    """

    def __init__(
        self, lines: Lines, view: int, position: int, seat: "Seat", enter: Callable[[Ticket], None]
    ) -> None:
        super().__init__(lines, view, position)
        size = len(lines.members)
        self.seat = seat
        self.waiting: list[deque[Ticket]] = [deque() for _ in range(size)]
        """By rank, what has its place in the line."""
        self._enter = enter
        self._owed: dict[int, tuple[list[tuple[int, int]], list[Foreign]]] = {}  # what the next ticket says
        self._whole: dict[int, int] = {}  # numbers of messages of which pieces have come
        self._offsets = [0] * size
        self._told: int | None = None  # the offset of this member's own, as others know it
        self._said = _NOTHING
        self._full = _NOTHING  # what `_head` says

    def reached(self, rank: int) -> int:
        """Messages of a member up to here were given to the program, or purged."""
        waiting = self.waiting[rank]
        return waiting[0].first - 1 if waiting else self.lines.queued[rank]

    # Own messages

    def head(self) -> bytes:
        """What changed in this group, and what others are yet to be told of other groups."""
        me, delivered = self.lines.rank, self.lines.delivered
        changed = [
            (rank, seq)
            for rank, (seq, before) in enumerate(zip(delivered, self.stamped, strict=True))
            if seq > before and rank != me
        ]
        seat = self.seat
        number = seat.cutting
        if not number and self._told != seat.offset:
            number = seat.offset + self.lines.queued[me] + 1
        self._said = Head(changed, seat.owed(), number)
        return _encode(self._said) if changed or self._said.others or number else b""

    def sent(self) -> None:
        """Others are told what the head says."""
        super().sent()
        seat = self.seat
        self._told = seat.cutting - self.lines.queued[self.lines.rank] if seat.cutting else seat.offset
        seat.said(self._said)

    # Messages of all

    def accept(self, rank: int, part: Batch) -> None:
        """Messages were queued."""
        if part.head:
            self._note_head(rank, part.first, part.head, piece=part.left > 0)
        super().accept(rank, part)

    def skipped(self, rank: int, seq: int, head: bytes) -> None:
        """A message is known to be purged; what it comes after, those behind it come after, too."""
        super().skipped(rank, seq, head)
        if head:
            self._note_head(rank, seq, head, piece=False)

    def _note_head(self, rank: int, seq: int, head: bytes, *, piece: bool) -> None:
        said = self._whole_head(head)
        changed, others = self._owed.setdefault(rank, ([], []))
        changed += said.changed
        others += said.others
        if said.number and piece:
            self._whole[rank] = said.number
        elif said.number:
            self._offsets[rank] = said.number - seq

    def lined_up(self, batch: Batch) -> None:
        """Messages are where the program takes them: from here on their turn is the line's business."""
        rank = self.lines.members.index(batch.sender)
        number = self._whole.pop(rank, None)
        if number is not None:
            self._offsets[rank] = number - batch.first
        changed, others = self._owed.pop(rank, ((), ()))
        ticket = Ticket(
            self, rank, batch.first, batch.last, changed, others, batch.first + self._offsets[rank]
        )
        self.waiting[rank].append(ticket)
        self._enter(ticket)

    def _whole_head(self, head: bytes) -> Head:
        self._read(head)
        return self._full

    def _read(self, head: bytes) -> list[tuple[int, int]]:
        if head != self._head:
            self._full = _read_head(head)
            self._stamp = self._full.changed
            self._head = head
        return self._stamp
