"""The order inside of one view of a group: causal, and lined up with what other groups have."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from semcast.core.ids import Nanos
from semcast.core.marks import is_ordered
from semcast.core.messages import Batch
from semcast.protocols.isis.client_frames import is_about, read_about
from semcast.protocols.isis.numbering import Numbering
from semcast.protocols.isis.stamps import Ending, Foreign, Head, Times, merge
from semcast.protocols.isis.total import is_said, read_said
from semcast.protocols.vsync.causes import Causes
from semcast.protocols.vsync.changes import report_of
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.orders import CausalOrder, Lines

if TYPE_CHECKING:
    from semcast.protocols.isis.seat import Seat

_encode = msgspec.msgpack.Encoder().encode
_read_head = msgspec.msgpack.Decoder(Head).decode
_read_ending = msgspec.msgpack.Decoder(Ending).decode
NOTHING = Head([])
"""What a message says that says nothing besides its payload."""
_NO_ENDING = Ending()


class Ticket:
    """A run of messages of one sender that has its place in the line of the program.

    It stays there when messages of it are purged: what it says of other groups holds for those behind it.
    """

    __slots__ = (
        "changed",
        "epoch",
        "first",
        "lamport",
        "last",
        "number",
        "order",
        "ordered",
        "others",
        "place",
        "rank",
        "turn",
    )

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
        self.ordered = False
        """Whether it is one message that has a place in the order of the domain."""
        self.turn = 0
        """Of an ordered one: its number in the order of the domain, once that is known."""
        self.place = 0
        """In the line."""
        self.lamport = order.lamports[rank]
        """The highest number of an ordered message that its sender knew of."""
        self.epoch = epoch
        """What belongs to lower ones is given to the program first."""


class Entrance(Protocol):
    """The line of the program, where tickets come in."""

    @property
    def newest(self) -> object:
        """The ticket that came last, if it is still there."""

    def add(self, ticket: Ticket) -> None:
        """Messages have their place."""


class DomainOrder(CausalOrder):
    """Of one view. Messages are queued as in any causal group; `waiting` has what the program was not given.

    Args:
        lines: the stream of messages.
        view: its number.
        position: of the total order, of which there is none.
        seat: of this process in the group.
        line: of the program.
    """

    def __init__(self, lines: Lines, view: int, position: int, seat: "Seat", line: Entrance) -> None:
        super().__init__(lines, view, position)
        size = len(lines.members)
        self.seat = seat
        self._ranks = {member: rank for rank, member in enumerate(lines.members)}
        self.waiting: list[deque[Ticket]] = [deque() for _ in range(size)]
        """By rank, what has its place in the line."""
        self._line = line
        self._owed: dict[int, tuple[list[tuple[int, int]], list[Foreign]]] = {}  # what the next ticket says
        self._whole: dict[int, int] = {}  # numbers of messages of which pieces have come
        self._offsets = [0] * size
        self.lamports = [0] * size
        """By rank, the highest number of an ordered message that a member said it knew of."""
        self._numbering: Numbering | None = None
        self._epochs = [0] * size
        self._told: int | None = None  # the offset of this member's own, as others know it
        self._speaks = False  # whether the servers are about to be told something of clients
        self._said = NOTHING
        self._full = NOTHING  # what `_head` says
        self._run: Ticket | None = None  # the newest ticket, if what follows it may be part of it
        self._over = False  # whether this process does not go on to the next view

    def reached(self, rank: int) -> int:
        """Messages of a member up to here were given to the program, or purged."""
        waiting = self.waiting[rank]
        return waiting[0].first - 1 if waiting else self.lines.queued[rank]

    # Own messages

    def head(self) -> bytes:
        """What changed in this group, and what others are yet to be told of other groups."""
        seat, me = self.seat, self.lines.rank
        changed = self._changed()
        number = seat.cutting
        if not number and self._told != seat.offset:
            number = seat.offset + self.lines.queued[me] + 1
        epoch, lamport = seat.epoch, seat.totals.lamport
        if epoch <= self._epochs[me]:
            epoch = 0
        if lamport <= self.lamports[me]:
            lamport = 0
        others = seat.owed()
        if not (changed or others or number or epoch or lamport):
            self._said = NOTHING
            return b""
        self._said = Head(changed, others, number, epoch, lamport)
        return _encode(self._said)

    def _changed(self) -> list[tuple[int, int]]:
        """What the program was given in this group since its last message."""
        delivered, me = self.lines.delivered, self.lines.rank
        if delivered == self.stamped:
            return []
        return [
            (rank, seq)
            for rank, (seq, before) in enumerate(zip(delivered, self.stamped, strict=True))
            if seq > before and rank != me
        ]

    def sent(self) -> None:
        """Others are told what the head says; what is for the order alone says something else."""
        seat = self.seat
        if seat.turns.own_said and self.own_upto() != self.lines.queued[self.lines.rank]:
            return
        super().sent()
        self._told = seat.cutting - self.lines.queued[self.lines.rank] if seat.cutting else seat.offset
        seat.said(self._said)
        if self._said.lamport:
            self.lamports[self.lines.rank] = self._said.lamport
        if self._said.epoch:
            self._epochs[self.lines.rank] = self._said.epoch

    # Messages of all

    def accept(self, rank: int, part: Batch) -> None:
        """Messages were queued; what is for the order alone is not for the program."""
        rest = self._heed_head(rank, part) if part.head else part
        if rest is not None:
            self._hand_on(rest)

    def keep_causes(self, causes: Causes) -> bool:  # noqa: ARG002
        """A domain records what comes before a message by itself."""
        return False

    def _heed_head(self, rank: int, part: Batch) -> Batch | None:
        """What messages say besides their payloads; returns what of them is for the program."""
        if is_said(part.head):
            self.numbering.obey(rank, part.first, read_said(part.head))
        elif is_about(part.head):
            self._hear_about(rank, part.first, part.head)
        if self.is_command(part):
            if self.seat.serving is not None:
                self.seat.serving.log.reach(rank, part.first)
            if len(part.payloads) == 1:
                return None
            part = part.cut(part.first + 1, part.last)
        if part.head:
            self._note_head(rank, part.first, part.head, piece=part.left > 0)
        return part

    def _hear_about(self, rank: int, seq: int, head: bytes) -> None:
        """A server says something of clients."""
        if rank == self.lines.rank:
            self.seat.turns.own_said.append(seq)
        if self.seat.serving is not None:
            self.seat.serving.obey(self.lines.members[rank], seq, read_about(head))

    def skipped(self, rank: int, seq: int, head: bytes) -> None:
        """A message is known to be purged; what it comes after, those behind it come after, too."""
        super().skipped(rank, seq, head)
        self.seat.taking.skipped(self.lines.members[rank], seq, self.lines.replaced_upto(rank))
        if self.seat.serving is not None:
            self.seat.serving.log.reach(rank, seq)
        if head:
            self._note_head(rank, seq, head, piece=False)

    def _note_head(self, rank: int, seq: int, head: bytes, *, piece: bool) -> None:
        if self._run is not None and self._run.rank == rank:
            self._run = None  # what says something has a ticket of its own
        said = self._whole_head(head)
        changed, others = self._owed.setdefault(rank, ([], []))
        changed += said.changed
        others += said.others
        self.lamports[rank] = max(self.lamports[rank], said.lamport)
        self.seat.keep(said.others)
        if said.epoch > self._epochs[rank]:
            self._epochs[rank] = said.epoch
            self.seat.queued(self.lines.members[rank], said.epoch)
        if said.number and piece:
            self._whole[rank] = said.number
        elif said.number:
            self._offsets[rank] = said.number - seq

    def lined_up(self, batch: Batch) -> None:
        """Messages are where the program takes them: from here on their turn is the line's business.

        Those that come right behind the newest of all in the line, and say nothing, share its place.
        """
        run = self._run
        if (
            run is not None
            and run is self._line.newest
            and run.last + 1 == batch.first
            and batch.sender is self.lines.members[run.rank]
            and (batch.annotation is None or not is_ordered(batch.annotation))
        ):
            run.last += len(batch.payloads)
        elif not self._over:
            self._line_up(batch)

    def _line_up(self, batch: Batch) -> None:
        rank = self._ranks[batch.sender]
        number = self._whole.pop(rank, None)
        if number is not None:
            self._offsets[rank] = number - batch.first
        changed, others = self._owed.pop(rank, ((), ()))
        number = batch.first + self._offsets[rank]
        ticket = Ticket(self, rank, batch.first, batch.last, changed, others, number, self._epochs[rank])
        self.waiting[rank].append(ticket)
        if is_ordered(batch.annotation):
            ticket.ordered = True
            self.numbering.lined_up(ticket)
        self._line.add(ticket)
        if self.seat.serving is not None:
            self.seat.serving.hearing.lined_up(ticket, batch)
        self._run = None if ticket.ordered or self.seat.serving is not None else ticket

    def close(self) -> None:
        """Who does not go on to the next view is given nothing more."""
        self._run, self._over = None, True

    # The order of the domain

    @property
    def numbering(self) -> Numbering:
        """Made when there is something to number."""
        if self._numbering is None:
            members = self.lines.members
            newcomers = {rank for rank, each in enumerate(members) if each in self.seat.turns.newcomers}
            self._numbering = self.seat.numbering_kind(self, self.lines, self.seat.totals, newcomers)
        return self._numbering

    def is_command(self, batch: Batch) -> bool:
        """Whether it is for the order alone."""
        return bool(batch.head) and (is_said(batch.head) or is_about(batch.head))

    def own_upto(self) -> int:
        """The last own message that is for programs."""
        last = self.lines.queued[self.lines.rank]
        for seq in reversed(self.seat.turns.own_said):
            if seq != last:
                break
            last -= 1
        return last

    def sound(self, head: bytes) -> bool:
        """Whether a correct member can have written this head."""
        if not head:
            return True
        if not is_said(head) and not is_about(head):
            return super().sound(head)
        try:
            if is_about(head):
                return read_about(head) is not None
            return self.numbering.sound(read_said(head))
        except msgspec.MsgspecError:
            return False

    def ready(self, rank: int, head: bytes) -> bool:
        """Whether what must come before is queued."""
        if not head:
            return True
        if is_said(head):
            return self.numbering.ready(read_said(head))
        if is_about(head):
            return True
        return super().ready(rank, head)

    def settle(self, now: Nanos) -> None:
        """After every input."""
        if self._numbering is not None:
            self._numbering.settle(now)
        serving = self.seat.serving
        if not self._speaks and serving is not None and serving.roster.must_speak(self.lines):
            self._speaks = True
            self.lines.wake_at(now)

    def tick(self, now: Nanos) -> None:  # noqa: ARG002
        """The time asked for has come."""
        if self._numbering is not None:
            self._numbering.tick()
        self._speaks = False
        if self.seat.serving is not None:
            self.seat.serving.roster.speak(self.lines)

    # The end of the view

    def finish(self, report: bytes) -> None:
        """All of the view is here."""
        if self._numbering is not None and report:
            ending = _read_ending(report)
            self._numbering.finish(ending.number, ending.unnumbered)

    def unnumbered(self) -> int:
        """Ordered messages that nobody has given a number."""
        return 0 if self._numbering is None else len(self._numbering)

    def report(self) -> bytes:
        """What the next view has to begin with."""
        ending = self.seat.ending(self)
        return b"" if ending == _NO_ENDING else _encode(ending)

    def merge(self, reports: Sequence[bytes]) -> bytes | None:
        """The largest of what members say; of what has no number, as much as it may be."""
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
        epoch, number = (
            max(values) for values in zip(*((each.epoch, each.number) for each in endings), strict=True)
        )
        return _encode(Ending(epoch, listed, number, sum(each.unnumbered for each in endings)))

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
