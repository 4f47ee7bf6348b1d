"""What messages say of other groups, by policy (1991, 6.1, 6.3 and 6.7)."""

from collections.abc import Iterable, Mapping, Sequence

from semcast.core.ids import MemberId
from semcast.protocols.isis.arrivals import DirectTicket
from semcast.protocols.isis.frames import Marker, MarkWanted, number_of
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import MAX_FOREIGN, IsisSettings
from semcast.protocols.isis.stamps import Audience, Counts, Foreign, Time, Times, merge, news

AnyTicket = Ticket | DirectTicket
"""What may stand in the line of the program."""


class Conservative:
    """Nothing: whoever changes the group has waited until nobody needs to be told.

    Args:
        seats: the groups of this process, by name.
        settings: of the domain.
    """

    carries_said = False
    """Whether it is agreed on with each view what was said in the group of others."""

    def __init__(self, seats: Mapping[str, Seat], settings: IsisSettings) -> None:  # noqa: ARG002
        self._seats = seats
        self.epoch = 0
        """Of this process, where messages carry epochs."""

    def objection(self, group: str, visits: Sequence[str] = ()) -> str:  # noqa: ARG002
        """What speaks against joining a group, as a client of those; nothing if that is fine."""
        return ""

    def owed(self, seat: Audience) -> list[Foreign]:  # noqa: ARG002
        """Nothing."""
        return []

    def sends(self, seat: Audience) -> None:
        """Messages are about to leave for a group."""

    def queued(self, seat: Seat, sender: MemberId, epoch: int) -> None:
        """A message with an epoch has come."""

    def placed(self, epoch: int, group: str) -> None:
        """A direct message stands in the line."""

    def began(self, seat: Seat, floor: int, *, joined: bool) -> None:
        """A view of a group begins, with the epoch that its members agreed on; somebody may have joined."""

    def lets_through(self, ticket: AnyTicket, line: Iterable[AnyTicket]) -> bool:  # noqa: ARG002
        """Whether a message may be given to the program before others that wait, or may yet come."""
        return True

    def marks_wanted(self, line: Iterable[AnyTicket]) -> list[tuple[Seat, MemberId, MarkWanted]]:  # noqa: ARG002
        """Whom to ask for what `lets_through` waits for."""
        return []

    def on_marker(self, seat: Seat, source: MemberId, frame: Marker) -> None:
        """A member spoke of its epoch."""

    def on_mark_wanted(self, seat: Seat, source: MemberId, epoch: int) -> None:
        """A member wants to hear of the epoch of this process."""

    def delivered(self, ticket: Ticket) -> None:
        """The program is given messages."""

    def told(self, others: Sequence[Foreign], epoch: int, group: str) -> None:
        """The program is given a direct message, which says this of other groups to nobody else."""

    def heard(self, others: Sequence[Foreign], epoch: int, group: str) -> None:
        """As a client of a group it is given a message, which says this of other groups to all servers."""
        self.told(others, epoch, group)

    def entered(self, seat: Seat) -> None:
        """The program is in the first view of a group."""

    def left(self, seat: Seat) -> None:
        """The process has left a group."""

    def crowded(self) -> bool:
        """Whether too many groups would have to be spoken of."""
        return False

    def heard_of(self) -> Mapping[str, Time]:
        """Times of groups that this process is not in: it says them until it hears that they are settled."""
        return {}

    def settled(self, number: int, time: Time) -> None:
        """All members of a group have come as far as this."""


class Full(Conservative):
    """The times of all groups that the process knows of, where they changed since they were last said.

    A time is owed in a group whenever it changed by anything but a message *in that group*: what somebody who
    is in the group said elsewhere, the others there have not heard.
    """

    def __init__(self, seats: Mapping[str, Seat], settings: IsisSettings) -> None:
        super().__init__(seats, settings)
        self.known: Times = {}
        """Of groups that this process is not in."""

    def owed(self, seat: Audience) -> list[Foreign]:
        """Of own groups, then of others."""
        found = []
        for name, time in self._times(seat):
            new = news(seat.told, name, time)
            if new is not None:
                found.append(new)
        return found

    def _times(self, seat: Audience) -> list[tuple[str, Time]]:
        found = self._own_times(seat)
        found += [
            (name, time) for name, time in self.known.items() if name != seat.name and not self._is_own(name)
        ]
        return found

    def _own_times(self, seat: Audience) -> list[tuple[str, Time]]:
        found: list[tuple[str, Time]] = []
        for other in self._seats.values():
            time = other.time() if other is not seat else None
            if time is not None and (time.counts or time.view != other.founded):
                found.append((other.name, time))
        return found

    def _is_own(self, name: str) -> bool:
        """Whether the process will be given itself what others say of a group; not of one that it leaves."""
        seat = self._seats.get(name)
        return seat is not None and seat.entered is not None and not seat.member.is_out

    def delivered(self, ticket: Ticket) -> None:
        """What it says was said in its group, and is known here from now on."""
        ticket.order.seat.hear_of(ticket)
        self.learn(ticket.others)

    def told(self, others: Sequence[Foreign], epoch: int, group: str) -> None:  # noqa: ARG002
        """It is known here from now on."""
        self.learn(others)

    def learn(self, others: Iterable[Foreign]) -> None:
        """Somebody has come as far as this in other groups."""
        for other in others:
            if not self._is_own(other.group):
                merge(self.known, other.group, other.view, other.counts)

    def entered(self, seat: Seat) -> None:
        """What was known from others the process sees for itself."""
        self.known.pop(seat.name, None)

    def left(self, seat: Seat) -> None:
        """What it delivered there it goes on to say."""
        time = seat.time()
        if time is not None:
            merge(self.known, seat.name, time.view, time.counts.items())

    def crowded(self) -> bool:
        """Whether too many groups would have to be spoken of."""
        return len(self.known) > MAX_FOREIGN

    def heard_of(self) -> Mapping[str, Time]:
        """All of them."""
        return self.known

    def settled(self, number: int, time: Time) -> None:
        """Nobody there needs to be told that much."""
        name = next((each for each in self.known if number_of(each) == number), None)
        if name is None or self.known[name].view > time.view:
            return
        counts: Counts = {}
        if self.known[name].view == time.view:
            known = self.known[name].counts.items()
            counts = {rank: count for rank, count in known if count > time.counts.get(rank, 0)}
        if counts:
            self.known[name] = Time(time.view, counts)
        else:
            del self.known[name]


def group_of(ticket: AnyTicket) -> str:
    """That a message was sent in."""
    return ticket.group if isinstance(ticket, DirectTicket) else ticket.order.seat.name
