"""One group as one process sees it: its views, what is said and known there, and who has what."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import gt
from random import Random
from typing import TYPE_CHECKING, ClassVar, Protocol

from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.isis.marks import Marks
from semcast.protocols.isis.member import GroupMember
from semcast.protocols.isis.numbering import Numbering
from semcast.protocols.isis.order import NOTHING, DomainOrder, Entrance, Ticket, ending_of
from semcast.protocols.isis.settings import IsisSettings
from semcast.protocols.isis.stamps import Ending, Foreign, Head, Time, Times, merge
from semcast.protocols.isis.taking import Taking
from semcast.protocols.isis.total import Totals, Turns
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.orders import Lines
from semcast.protocols.vsync.stream import ViewStream

if TYPE_CHECKING:
    from semcast.protocols.isis.serving import Serving

_ENDED = 32
"""Views of which it is remembered how they ended."""

_FAREWELLS = 8
"""Some of them may be lost."""

EndedView = tuple[tuple[MemberId, ...], tuple[int, ...]]
"""Who was in a view that is over, and what of each belongs to it."""


class Stamping(Protocol):
    """What a policy says of other groups."""

    epoch: int
    carries_said: bool

    def owed(self, seat: "Seat") -> list[Foreign]:
        """What those in this group are yet to be told."""

    def queued(self, seat: "Seat", sender: MemberId, epoch: int) -> None:
        """A message with an epoch has come."""

    def began(self, seat: "Seat", floor: int, *, joined: bool) -> None:
        """A view begins."""


class Seat:
    """Of one process, from when it asks to join until it has left.

    Args:
        me: who this is.
        name: of the group.
        number: of the same, on the wire.
        settings: of the domain.
        minimum: how many found the group together; 0 to join one that is there.
        rng: where chance comes from.
        stamping: what is said of other groups.
        line: of the program.
        totals: the ordered messages of the process.
    """

    farewells = 0
    """So many reports still go to those who are not in this view any more, too: they wait to hear that it
    stands."""
    gone = False
    """Whether this process has left."""
    succeeded = 0
    """The number of the view that it is not in."""
    founded = 0
    """The number of the first view of the group, if this process was in it."""
    member_kind: ClassVar[type[GroupMember]] = GroupMember
    numbering_kind: ClassVar[type[Numbering]] = Numbering
    taking_kind: ClassVar[type[Taking]] = Taking

    def __init__(
        self,
        me: MemberId,
        name: str,
        number: int,
        settings: IsisSettings,
        minimum: int,
        rng: Random,
        stamping: Stamping,
        line: Entrance,
        totals: Totals,
    ) -> None:
        self.me = me
        self.name = name
        self.number = number
        self.out = Outbox()
        self.settings = settings
        self._stamping = stamping
        self._line = line
        self.totals = totals
        self.turns = Turns()
        self.serving: Serving | None = None
        """What is done for clients, in a group that has them."""
        self.leaving = False
        """Whether the program has asked to leave."""
        self.put_out = False
        """Whether the others went on without this process, and it did not leave in agreement with them."""
        self.refused = False
        """Whether the group takes nothing more at the moment."""
        self.successors: tuple[MemberId, ...] = ()
        """Of a process that is not in the next view: who is."""
        self.past: list[tuple[int, frozenset[MemberId]]] = []
        """Views that ended and their survivors, of whom not all are known to have all of it."""
        self.ended: dict[int, EndedView] = {}
        """The last views that ended here."""
        self.spoke: dict[MemberId, int] = {}
        """The latest view that members spoke in: who did has all that belongs to those before it."""
        self.told: Times = {}
        """What was said in this group of others, by anybody."""
        self.taking = self.taking_kind(me)
        """How far programs have come."""
        self.others: tuple[MemberId, ...] = ()
        """Who else is in the current view."""
        self.all_others: tuple[MemberId, ...] = ()
        """These, and who was in the view before."""
        self.base: Times = {}
        """What was ever said in this group of others, where that is kept."""
        self.gate: Times = {}
        """What was said there before this process joined, and its other groups have not reached."""
        self.marks = Marks()
        """What was said there of epochs."""
        self.spoken: deque[Head] = deque()
        """What was said with own messages that left, until the history was told."""
        self.offset = 0
        """How much higher own messages are numbered in the domain than in this view."""
        self.cutting = 0
        """The number of a message that is sent in pieces; 0 for whole ones."""
        self.member = self.member_kind(me, settings.of_group(minimum), rng, self.out, self)

    @property
    def frame_bytes(self) -> int:
        """Of messages in one frame."""
        return self.settings.vsync.frame_bytes

    def order_of(self, lines: Lines, view: int, position: int) -> DomainOrder:
        """For a view that begins."""
        return DomainOrder(lines, view, position, self, self._line)

    # Where the program is

    @property
    def entered(self) -> ViewStream | None:
        """Of the view that the program is in; None before the first."""
        return self.member.entered

    def order(self, stream: ViewStream) -> DomainOrder:
        """Of one of its streams."""
        assert isinstance(stream.order, DomainOrder)
        return stream.order

    def time(self) -> Time | None:
        """How far the program has come: what it was given, and what it sent."""
        stream = self.entered
        if stream is None:
            return None
        delivered, base = stream.delivered, stream.base
        counts = {rank: seq for rank, seq in enumerate(delivered) if seq > base[rank]}
        mine = self.order(stream).own_upto()
        if mine > base[stream.rank]:
            counts[stream.rank] = mine
        return Time(stream.view().id, counts)

    def is_beyond(self, stream: ViewStream, upto: Sequence[int]) -> bool:
        """Whether the program was given, or sent, something of the view behind these messages."""
        return any(map(gt, stream.delivered, upto)) or self.order(stream).own_upto() > upto[stream.rank]

    def reaches(self, view: int, counts: Sequence[tuple[int, int]]) -> bool:
        """Whether the program has come as far as this."""
        member = self.member
        following = member.next_view
        if view < following:
            return True
        stream = member.entered
        if stream is None:
            return False
        order, size = self.order(stream), len(stream.members)
        if member.is_out and stream is member.stream:  # who does not go on is given only what waits here
            first = {rank: line[0].first for rank, line in enumerate(order.waiting) if line}
            if view != stream.view().id:
                return not first
            return all(first.get(rank, count + 1) > count for rank, count in counts)
        if view != stream.view().id:
            return False
        return all(rank < size and order.reached(rank) >= count for rank, count in counts)

    # Own messages

    def number_run(self, number: int, *, cut: bool) -> None:
        """The next messages that leave are counted from this number on; with `cut` it is one, in pieces."""
        stream = self.member.stream
        assert stream is not None
        self.offset = number - stream.queued[stream.rank] - 1
        self.cutting = number if cut else 0

    def owed(self) -> list[Foreign]:
        """What those in this group are yet to be told of others."""
        return self._stamping.owed(self)

    def said(self, head: Head) -> None:
        """They were told."""
        if self.settings.notes:
            self.spoken.append(head)
        if head is NOTHING:
            return
        if head.epoch:
            self.marks.said = head.epoch
        self.hear(head.others)
        self.keep(head.others)

    @property
    def epoch(self) -> int:
        """Of the process."""
        return self._stamping.epoch

    def ending(self, order: DomainOrder) -> Ending:
        """What the view after this one has to begin with."""
        said = [Foreign(name, time.view, sorted(time.counts.items())) for name, time in self.base.items()]
        number = max(self.turns.said_upto, self.totals.lamport)
        return Ending(self._stamping.epoch, said, number, order.unnumbered())

    def keep(self, others: Sequence[Foreign]) -> None:
        """It was said in this group of others, and who joins will have to wait for it."""
        if self._stamping.carries_said:
            for other in others:
                merge(self.base, other.group, other.view, other.counts)

    def queued(self, sender: MemberId, epoch: int) -> None:
        """A message with an epoch has come."""
        self._stamping.queued(self, sender, epoch)

    def hear(self, others: Sequence[Foreign]) -> None:
        """Something was said in this group of other ones."""
        for other in others:
            merge(self.told, other.group, other.view, other.counts)

    def hear_of(self, ticket: Ticket) -> None:
        """The program is given a message. Of one of an earlier view, those who joined have not heard."""
        if ticket.order.lines is self.member.stream:
            self.hear(ticket.others)

    def awaits_own(self) -> bool:
        """Whether the program was not given an ordered message of its own."""
        stream = self.entered
        if stream is None:
            return False
        return any(ticket.ordered for ticket in self.order(stream).waiting[stream.rank])

    # Views

    def begins(self, old: ViewStream | None, event: Installed, welcome: Welcome) -> None:
        """The next view begins, and this one is over."""
        members = event.view.members
        joined = set(welcome.newcomers())
        self.turns.newcomers, self.turns.asked_upto = frozenset(joined), 0
        if old is not None:
            survivors = frozenset(member for member in members if member in old.members)
            self.past = [each for each in self.past if self._lacking(each, members)]
            self.past.append((old.view().id, survivors))
            self.end(old, old.queued)
        base = dict(zip(members, welcome.base, strict=True))
        self.taking.begins(members, joined, base, first=old is None)
        self.others = self.taking.others
        former = () if old is None else old.members
        self.all_others = (*self.others, *(member for member in former if member not in members))
        self.farewells = _FAREWELLS if len(self.all_others) > len(self.others) else 0
        self.spoke = {member: self.spoke.get(member, 0) for member in members}
        if joined:
            self.told = {}  # who joins was told nothing
        ending = ending_of(welcome)
        self.marks.begins(members, ending.epoch)
        self.keep(ending.said)
        self.turns.said_upto = max(self.turns.said_upto, ending.number + ending.unnumbered)
        self.totals.learn(ending.number + ending.unnumbered)  # what is sent from here on comes behind them
        if self.serving is not None:
            self.serving.enter(event)
        if old is None:
            self.founded = event.view.id if len(joined) == len(members) else 0
            self.gate = {name: Time(time.view, dict(time.counts)) for name, time in self.base.items()}

    def began(self, welcome: Welcome) -> None:
        """It is here."""
        self._stamping.began(self, ending_of(welcome).epoch, joined=bool(welcome.joined))

    def end(self, old: ViewStream, cut: Sequence[int]) -> None:
        """A view is over, and this much of each member belongs to it."""
        self.ended[old.view().id] = old.members, tuple(cut)
        if len(self.ended) > _ENDED:
            del self.ended[next(iter(self.ended))]

    def heard(self, member: MemberId, view: int) -> None:
        """A member spoke in a view."""
        if view > self.spoke.get(member, 0):
            self.spoke[member] = view

    def unsettled(self) -> bool:
        """Whether somebody who goes on may still lack something of a view that is over."""
        if not self.past:
            return False
        stream = self.member.stream
        members = () if stream is None else stream.members
        self.past = [each for each in self.past if self._lacking(each, members)]
        return bool(self.past)

    def _lacking(self, each: tuple[int, frozenset[MemberId]], members: Sequence[MemberId]) -> bool:
        view, survivors = each
        return any(
            self.spoke.get(member, 0) <= view
            for member in members
            if member in survivors and member != self.me
        )

    def all_have(self, view: int, counts: Sequence[tuple[int, int]]) -> bool:
        """Whether all members are known to have what is named here, or to have gone on from there."""
        stream = self.member.stream
        if stream is None or self.member.is_out or view > stream.view().id:
            return False
        current = stream.view().id
        earlier = view if view < current else view - 1  # that a view began says that those before it are over
        if any(each[0] <= earlier and self._lacking(each, stream.members) for each in self.past):
            return False
        if view < current:
            return True
        stable, size = stream.buffers.stable, len(stream.members)
        return all(rank < size and count <= stable[rank] for rank, count in counts)

    # What programs took

    def untaken(self) -> int:
        """Own messages that some program has not taken."""
        stream = self.member.stream
        if stream is None or not self.others:
            return 0
        least, sent = self.taking.by_others(), stream.queued[stream.rank]
        if self.turns.own_said and self.turns.own_said[0] <= least:
            del self.turns.own_said[: bisect_right(self.turns.own_said, least)]
        return max(0, sent - least - len(self.turns.own_said))

    def taken_by_all(self, seq: int) -> bool:
        """Whether all programs have taken an own message; true of a group that this process leaves.

        Who is put out does not know what became of its messages.
        """
        stream = self.member.stream
        if stream is None or self.member.is_out:
            return stream is None or self.leaving
        return self.taking.by_all(seq)

    def slow(self) -> list[MemberId]:
        """Whose programs have not taken all own messages."""
        sent = self._sent()
        return [each for each in self.others if self.taking.by(each) < sent]

    def behind(self) -> list[MemberId]:
        """These, and where what replaces own messages was not taken."""
        sent, me = self._sent(), self.me
        return [each for each in self.others if self.taking.certain(each, me) < sent]

    def _sent(self) -> int:
        stream = self.member.stream
        return 0 if stream is None else self.order(stream).own_upto()
