"""The order inside of one view of a group: causal, and lined up with what other groups have."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from semcast.core.messages import Batch
from semcast.protocols.isis.stamps import Ending, Foreign, Head, Times, merge
from semcast.protocols.vsync.changes import report_of
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.orders import CausalOrder, Lines

if TYPE_CHECKING:
    from semcast.protocols.isis.seat import Seat

_encode = msgspec.msgpack.Encoder().encode
_read_head = msgspec.msgpack.Decoder(Head).decode
_read_ending = msgspec.msgpack.Decoder(Ending).decode
_NOTHING = Head([])


class Ticket:
    """A run of messages of one sender that has its place in the line of the program.

    It stays there when messages of it are purged: what it says of other groups holds for those behind it.
    """

    __slots__ = ("changed", "epoch", "first", "last", "number", "order", "others", "rank")

    def __init__(
        self,
        order: "DomainOrder",
        rank: int,
        first: int,
        last: int,
        changed: Sequence[tuple[int, int]],
        others: Sequence[Foreign],
        number: int,
        epoch: int = 0,
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
        self.epoch = epoch
        """What belongs to lower ones is given to the program first."""


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
        self._epochs = [0] * size
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
        epoch = seat.epoch if seat.epoch > self._epochs[me] else 0
        self._said = Head(changed, seat.owed(), number, epoch)
        return _encode(self._said) if changed or self._said.others or number or epoch else b""

    def sent(self) -> None:
        """Others are told what the head says."""
        super().sent()
        seat = self.seat
        self._told = seat.cutting - self.lines.queued[self.lines.rank] if seat.cutting else seat.offset
        seat.said(self._said)
        if self._said.epoch:
            self._epochs[self.lines.rank] = self._said.epoch

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
        self.seat.keep(said.others)
        if said.epoch > self._epochs[rank]:
            self._epochs[rank] = said.epoch
            self.seat.queued(self.lines.members[rank], said.epoch)
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
        number = batch.first + self._offsets[rank]
        ticket = Ticket(self, rank, batch.first, batch.last, changed, others, number, self._epochs[rank])
        self.waiting[rank].append(ticket)
        self._enter(ticket)

    # The end of the view

    def report(self) -> bytes:
        """What the next view has to begin with."""
        ending = self.seat.ending()
        return _encode(ending) if ending.epoch or ending.said else b""

    def merge(self, reports: Sequence[bytes]) -> bytes | None:
        """The largest of what members say."""
        try:
            endings = [_read_ending(report) for report in reports if report]
        except msgspec.MsgspecError:
            return None
        if not endings:
            return b""
        said: Times = {}
        for ending in endings:
            for other in ending.said:
                merge(said, other.group, other.view, other.counts)
        listed = [Foreign(name, time.view, sorted(time.counts.items())) for name, time in said.items()]
        return _encode(Ending(max(each.epoch for each in endings), listed))

    def has(self, report: bytes) -> bool:  # noqa: ARG002
        """It names nothing that has to come."""
        return True

    def _whole_head(self, head: bytes) -> Head:
        self._read(head)
        return self._full

    def _read(self, head: bytes) -> list[tuple[int, int]]:
        if head != self._head:
            self._full = _read_head(head)
            self._stamp = self._full.changed
            self._head = head
        return self._stamp


def ending_of(welcome: Welcome) -> Ending:
    """What was agreed on when the view before this one ended."""
    report = b"" if welcome.ended is None else report_of(welcome.ended.value)
    try:
        return _read_ending(report) if report else Ending()
    except msgspec.MsgspecError:
        return Ending()
