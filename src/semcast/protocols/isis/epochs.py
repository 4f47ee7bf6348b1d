"""Epochs between groups (1991, 6.7), as barriers instead of flushes.

Messages carry the times of the groups that their sender is in, and an epoch. Whoever has sent or was given
something in another group since its epoch last rose raises it before it sends. A process gives its program a
message of epoch e when nothing of a lower epoch can come any more in its *other* groups: all members there
have said so (`Marker`). In the message's own group its vector time says what comes first.

As printed, the last message that was received decides, a flush for each epoch discards what waits, and
whoever got its epoch from one group has not flushed its others. See `docs/protocols/isis.md`.
"""

from collections.abc import Iterable, Mapping, Sequence

from semcast.core.ids import MemberId
from semcast.protocols.isis.arrivals import DirectTicket
from semcast.protocols.isis.frames import Marker, MarkWanted
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket, Full, group_of
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import IsisSettings
from semcast.protocols.isis.stamps import Audience, Foreign, Time
from semcast.protocols.isis.total import may_precede
from semcast.protocols.vsync.stream import ViewStream


class Epochs(Full):
    """Times of own groups, and epochs.

    Args:
        seats: the groups of this process, by name.
        settings: of the domain.
    """

    def __init__(self, seats: Mapping[str, Seat], settings: IsisSettings) -> None:
        super().__init__(seats, settings)
        self.rises = 0
        """How often this process raised its epoch of its own accord."""
        self.markers = 0
        """How many markers it has sent, each to one member."""
        self._since: set[str] = set()  # groups in which something of the current epoch was sent or given

    # What this process sends and is given

    def _times(self, seat: Audience) -> list[tuple[str, Time]]:
        return self._own_times(seat)

    def sends(self, seat: Audience) -> None:
        """Something leaves for this group: behind all that came before in others."""
        if self.unsafe(seat):
            self.rises += 1
            self._raise_to(self.epoch + 1)
        self._since.add(seat.name)

    def unsafe(self, seat: Audience) -> bool:
        """Whether something in another group may come after what is sent here now, and must not."""
        return any(name != seat.name for name in self._since)

    def told(self, others: Sequence[Foreign], epoch: int, group: str) -> None:  # noqa: ARG002
        """A direct message, which the others in its group have not heard."""
        if epoch >= self.epoch:
            self._since.add(group)

    def delivered(self, ticket: Ticket) -> None:
        """What belongs to an earlier epoch comes before all that is sent from now on, anyway."""
        seat = ticket.order.seat
        seat.hear_of(ticket)
        if ticket.epoch >= self.epoch:
            self._since.add(seat.name)

    def left(self, seat: Seat) -> None:
        """Whatever it sends from now on comes behind all that it had there: it is no way round unseen."""
        self._since.discard(seat.name)
        self._raise_to(self.epoch + 1)

    # What others say

    def queued(self, seat: Seat, sender: MemberId, epoch: int) -> None:
        """A message has come."""
        if sender == seat.me:
            return
        seat.marks.queued(sender, epoch)
        self.placed(epoch, seat.name)

    def placed(self, epoch: int, group: str) -> None:
        """The other groups of this process shall say that nothing comes before it."""
        self._raise_to(epoch)
        for seat in self.asked(self._seats.get(group)):
            stream = seat.member.stream
            if stream is None or seat.member.is_out or seat.marks.asked >= epoch:
                continue
            behind = seat.marks.behind(stream, seat.me, epoch)
            if behind:
                seat.marks.asked = epoch
                self._ask(seat, behind, epoch)

    def _ask(self, seat: Seat, members: Iterable[MemberId], epoch: int) -> None:
        """Who hears a marker answers with one; who was told already, by a message, has to be asked."""
        if seat.marks.said < self.epoch:
            self.announce(seat)
        else:
            seat.out.sends += [(member, MarkWanted(epoch)) for member in members]

    def on_marker(self, seat: Seat, source: MemberId, frame: Marker) -> None:
        """A member sends nothing of lower epochs any more."""
        self._raise_to(frame.epoch)
        stream = seat.member.stream
        if stream is not None and source in stream.members:
            seat.marks.hear(stream, source, frame.view, frame.count, frame.epoch)
        self.announce(seat)

    def on_mark_wanted(self, seat: Seat, source: MemberId, epoch: int) -> None:
        """Somebody waits for the word of this process."""
        self._raise_to(epoch)
        stream = seat.member.stream
        if stream is not None:
            self.markers += 1
            seat.out.sends.append((source, self._marker(stream)))

    def began(self, seat: Seat, floor: int, *, joined: bool) -> None:
        """A view begins, in which nothing below the floor is sent; who joins has heard no marks."""
        self._raise_to(floor)
        if joined:
            seat.marks.said = 0
            self.announce(seat)

    def announce(self, seat: Seat) -> None:
        """Tell a group that nothing below the epoch of this process comes from it there."""
        stream = seat.member.stream
        if stream is not None and seat.marks.said < self.epoch and not seat.member.is_out:
            seat.marks.said = self.epoch
            self.markers += len(stream.members) - 1
            seat.out.sends.append((None, self._marker(stream)))

    def _marker(self, stream: ViewStream) -> Marker:
        return Marker(stream.view().id, stream.queued[stream.rank], self.epoch)

    def _raise_to(self, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch = epoch
            self._since.clear()

    # The barrier

    def lets_through(self, ticket: AnyTicket, line: Iterable[AnyTicket]) -> bool:
        """Whether nothing of a lower epoch can come before it in the other groups of this process."""
        epoch, own = ticket.epoch, self._seats.get(group_of(ticket))
        if not epoch or is_own(ticket):
            return True  # who sends was given all that comes before
        for seat in self.asked(own):
            if seat.entered is None:
                return False
            stream = seat.member.stream
            if stream is not None and not seat.member.is_out and seat.marks.behind(stream, seat.me, epoch):
                return False
        return not any(
            each.epoch < epoch and self._counts(each, ticket, own) and may_precede(each, ticket)
            for each in line
        )

    def _counts(self, each: AnyTicket, ticket: AnyTicket, own: Seat | None) -> bool:
        """Whether vector times do not say which comes first: it is of another group, or for one member."""
        if isinstance(each, DirectTicket):
            return each.stands_before(ticket)
        return each.order.seat is not own

    def asked(self, own: Seat | None) -> Iterable[Seat]:
        """In which groups marks are waited for."""
        return (seat for seat in self._seats.values() if seat is not own)

    def marks_wanted(self, line: Iterable[AnyTicket]) -> list[tuple[Seat, MemberId, MarkWanted]]:
        """Whom to ask, as the word of some may have been lost."""
        latest: dict[str, int] = {}
        for ticket in line:
            group = group_of(ticket)
            latest[group] = max(ticket.epoch, latest.get(group, 0))
        found = []
        for seat in self._seats.values():
            stream = seat.member.stream
            epoch = max((each for name, each in latest.items() if name != seat.name), default=0)
            if stream is not None and not seat.member.is_out and epoch:
                behind = seat.marks.behind(stream, seat.me, epoch)
                found += [(seat, member, MarkWanted(epoch)) for member in behind]
        return found


def is_own(ticket: AnyTicket) -> bool:
    """Whether this process sent it."""
    return isinstance(ticket, Ticket) and ticket.rank == ticket.order.lines.rank
