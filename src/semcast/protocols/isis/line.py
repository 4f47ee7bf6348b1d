"""The one line of what waits for the program, over all groups, in the order of reception (1991, 6.3).

What is ready is given to the program in that order. Newest first would break causality under policies that
carry no stamps; to wait for whatever came earlier, as printed, would be a deadlock.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from semcast.protocols.isis.arrivals import DirectTicket
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket, Conservative
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.total import Totals, may_precede


class Line:
    """Of one process.

    Args:
        seats: its groups, by name.
        policy: between them.
        totals: its ordered messages.
    """

    def __init__(self, seats: Mapping[str, Seat], policy: Conservative, totals: Totals) -> None:
        self._seats = seats
        self._policy = policy
        self._totals = totals
        self._tickets: dict[AnyTicket, None] = {}
        self._ordered: dict[Ticket, None] = {}
        self.newest: AnyTicket | None = None
        """The ticket that came last, if it is still there."""
        self._places = count(1)

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[AnyTicket]:
        return iter(self._tickets)

    @property
    def holds_ordered(self) -> bool:
        """Whether messages with a place in the order of the domain wait in it."""
        return bool(self._ordered)

    def add(self, ticket: AnyTicket) -> None:
        """Messages have their place."""
        self._tickets[ticket] = None
        self.newest = ticket
        ticket.place = next(self._places)
        if isinstance(ticket, Ticket) and ticket.ordered:
            self._ordered[ticket] = None

    def next(self) -> AnyTicket | None:
        """The first that is ready, if one is.

        While one waits for a group that is being joined, so does all that came later: what comes after it may
        not say so. Stamps are left out of a group where they were said before the process asked to join, and
        where all who are meant have the messages, be it in their lines.
        """
        for ticket in self._tickets:
            if self.ready(ticket):
                return ticket
            if ticket.others and self.waits_for_a_join(ticket):
                break
        return None

    def waits_for_a_join(self, ticket: AnyTicket) -> bool:
        """Whether it comes after something in a group of which the program knows no view yet."""
        seats = (self._seats.get(other.group) for other in ticket.others)
        return any(seat is not None and seat.entered is None for seat in seats)

    def remove(self, ticket: AnyTicket) -> None:
        """Its messages are given to the program."""
        del self._tickets[ticket]
        if ticket is self.newest:
            self.newest = None
        if isinstance(ticket, Ticket):
            ticket.order.waiting[ticket.rank].popleft()
            self._ordered.pop(ticket, None)

    def leave(self, seat: Seat) -> None:
        """The process is in a group no more: nothing that was multicast there is given to the program."""
        self.newest = None
        for ticket in [each for each in self._tickets if isinstance(each, Ticket)]:
            if ticket.order.seat is seat:
                del self._tickets[ticket]
                self._ordered.pop(ticket, None)

    def drop(self, tickets: Iterable[AnyTicket]) -> None:
        """They are not given to the program."""
        for ticket in tickets:
            del self._tickets[ticket]

    def ready(self, ticket: AnyTicket) -> bool:
        """Whether the program has, or will never have, all that comes before it (2.1' to 2.3').

        As printed, 2.3' asks for the sender's own group, too, where it contradicts 2.1'.
        """
        if self._ordered and ticket.lamport and not self.behind_ordered(ticket):
            return False
        if isinstance(ticket, DirectTicket):
            allowed = ticket.is_next() and self.allowed_by_others(ticket)
            return allowed and self._policy.lets_through(ticket, self._tickets)
        order, rank = ticket.order, ticket.rank
        if order.seat.entered is not order.lines or order.waiting[rank][0] is not ticket:
            return False
        if order.seat.serving is not None and order.seat.serving.parted:
            return False
        if ticket.ordered and not self._totals.allows(ticket):
            return False
        for cause, seq in ticket.changed:
            if cause != rank and order.reached(cause) < seq:
                return False
        return self.allowed_by_others(ticket) and self._policy.lets_through(ticket, self._tickets)

    def behind_ordered(self, ticket: AnyTicket) -> bool:
        """Whether no ordered message that was received earlier may come before it (6.2).

        Its sender, or somebody before it, was given all up to a number. What has a lower one, or none yet,
        comes first: where no stamps are carried, nothing else says so.
        """
        return not any(may_precede(each, ticket) for each in self._ordered if each.place < ticket.place)

    def allowed_by_others(self, ticket: AnyTicket) -> bool:
        """Whether the program has come as far in its other groups as the sender had."""
        own = ticket.order.seat if isinstance(ticket, Ticket) else None
        for other in ticket.others:
            seat = self._seats.get(other.group)
            if seat is None or seat is own:
                continue
            if not self.reaches(seat, other.view, other.counts):
                return False
        return True

    def reaches(self, seat: Seat, view: int, counts: list[tuple[int, int]]) -> bool:
        """A stamp of a view that is not there yet waits for it, and so does any while the group is joined."""
        return seat.reaches(view, counts)
