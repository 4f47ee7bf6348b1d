"""What messages say of other groups, by policy (1991, 6.1, 6.3 and 6.7)."""

from collections.abc import Mapping, Sequence

from semcast.protocols.isis.frames import number_of
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import MAX_FOREIGN
from semcast.protocols.isis.stamps import Foreign, Time, Times, merge, news


class Conservative:
    """Nothing: whoever changes the group has waited until nobody needs to be told.

    Args:
        seats: the groups of this process, by name.
    """

    def __init__(self, seats: Mapping[str, Seat]) -> None:
        self._seats = seats

    def owed(self, seat: Seat) -> list[Foreign]:  # noqa: ARG002
        """Nothing."""
        return []

    def delivered(self, ticket: Ticket) -> None:
        """The program is given messages."""

    def told(self, others: Sequence[Foreign]) -> None:
        """The program is given a direct message, which says this of other groups to nobody else."""

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

    def __init__(self, seats: Mapping[str, Seat]) -> None:
        super().__init__(seats)
        self.known: Times = {}
        """Of groups that this process is not in."""

    def owed(self, seat: Seat) -> list[Foreign]:
        """Of own groups, then of others."""
        found = []
        for name, time in self._times(seat):
            new = news(seat.told, name, time)
            if new is not None:
                found.append(new)
        return found

    def _times(self, seat: Seat) -> list[tuple[str, Time]]:
        found: list[tuple[str, Time]] = []
        for other in self._seats.values():
            time = other.time() if other is not seat else None
            if time is not None and (time.counts or time.view > 1):
                found.append((other.name, time))
        found += [
            (name, time) for name, time in self.known.items() if name != seat.name and not self._is_own(name)
        ]
        return found

    def _is_own(self, name: str) -> bool:
        return name in self._seats and self._seats[name].entered is not None

    def delivered(self, ticket: Ticket) -> None:
        """What it says was said in its group, and is known here from now on."""
        ticket.order.seat.hear(ticket.others)
        self.told(ticket.others)

    def told(self, others: Sequence[Foreign]) -> None:
        """It is known here from now on."""
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
            self.known[seat.name] = time

    def crowded(self) -> bool:
        """Whether too many groups would have to be spoken of."""
        return len(self.known) > MAX_FOREIGN

    def heard_of(self) -> Mapping[str, Time]:
        """All of them."""
        return self.known

    def settled(self, number: int, time: Time) -> None:
        """Nobody there needs to be told."""
        for name, known in self.known.items():
            if number_of(name) == number and time.covers(known.view, known.counts):
                del self.known[name]
                break
