"""The one line of what waits for the program, over all groups, in the order of reception (1991, 6.3).

What is ready is given to the program in that order. Newest first would break causality under policies that
carry no stamps; to wait for whatever came earlier, as printed, would be a deadlock.
"""

from collections.abc import Iterator, Mapping

from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import Conservative
from semcast.protocols.isis.seat import Seat


class Line:
    """Of one process.

    Args:
        seats: its groups, by name.
        policy: between them.
    """

    def __init__(self, seats: Mapping[str, Seat], policy: Conservative) -> None:
        self._seats = seats
        self._policy = policy
        self._tickets: dict[Ticket, None] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets)

    def add(self, ticket: Ticket) -> None:
        """Messages have their place."""
        self._tickets[ticket] = None

    def next(self) -> Ticket | None:
        """The first that is ready, if one is."""
        return next(filter(self.ready, self._tickets), None)

    def remove(self, ticket: Ticket) -> None:
        """Its messages are given to the program."""
        del self._tickets[ticket]
        ticket.order.waiting[ticket.rank].popleft()

    def leave(self, seat: Seat) -> None:
        """The process is in a group no more: nothing of it is given to the program."""
        for ticket in [each for each in self._tickets if each.order.seat is seat]:
            del self._tickets[ticket]

    def ready(self, ticket: Ticket) -> bool:
        """Whether the program has, or will never have, all that comes before it (2.1' to 2.3').

        As printed, 2.3' asks for the sender's own group, too, where it contradicts 2.1'.
        """
        order, rank = ticket.order, ticket.rank
        if order.seat.entered is not order.lines or order.waiting[rank][0] is not ticket:
            return False
        for cause, seq in ticket.changed:
            if cause != rank and order.reached(cause) < seq:
                return False
        return self.allowed_by_others(ticket) and self._policy.lets_through(ticket, self._tickets)

    def allowed_by_others(self, ticket: Ticket) -> bool:
        """Whether the program has come as far in its other groups as the sender had."""
        for other in ticket.others:
            seat = self._seats.get(other.group)
            if seat is None or seat is ticket.order.seat:
                continue
            if not self.reaches(seat, other.view, other.counts):
                return False
        return True

    def reaches(self, seat: Seat, view: int, counts: list[tuple[int, int]]) -> bool:
        """A stamp of a view that is not there yet waits for it, and so does any while the group is joined."""
        return seat.reaches(view, counts)
