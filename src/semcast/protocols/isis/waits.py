"""What a process waits for before it sends in another group (1991, 6.5 and 6.7)."""

from collections.abc import Mapping

from semcast.protocols.isis.clients import ClientSeat
from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.serving import Serving
from semcast.protocols.isis.settings import IsisSettings, Policy


class Waits:
    """At one process.

    Under the conservative policy a group is *active* as long as something that was sent or delivered there is
    not known to be with all of its view, or with all who went on from an earlier view. It does not end when
    the process leaves. Where stamps are carried, the causes only have to survive: `resilience`.

    Args:
        settings: of the domain.
        seats: the groups of this process, by name.
        visits: those that it is a client of.
        departures: those that it has left.
    """

    def __init__(
        self,
        settings: IsisSettings,
        seats: Mapping[str, Seat],
        visits: Mapping[str, ClientSeat],
        departures: Departures,
    ) -> None:
        self._seats = seats
        self._visits = visits
        self._departures = departures
        self._conservative = settings.policy is Policy.CONSERVATIVE
        self._all = self._conservative or settings.resilience == "all"
        # Under `blocks` nobody passes on the times of a group that this process is in no more.
        self._lingers = self._all or settings.policy is Policy.BLOCKS
        counted = settings.resilience.isdecimal() and not self._conservative
        self.failures = int(settings.resilience) if counted else None
        """That causes must survive, where that is a number."""

    def blocked(self, seat: Seat | ClientSeat) -> bool:
        """Whether this process may not send there yet, because of other groups."""
        return self.by_views(seat) or self.by_contacts(seat)

    def by_views(self, seat: Seat | ClientSeat) -> bool:
        """The same, because of groups in whose views it is, or was. That ends whatever programs do."""
        if any(other is not seat and self.holds(other) for other in self._seats.values()):
            return True
        return self._lingers and self.left_behind(seat)

    def by_contacts(self, seat: Seat | ClientSeat) -> bool:
        """The same, because of groups that it is a client of."""
        return any(visit is not seat and visit.active() for visit in self._visits.values())

    def by_programs(self, seat: Seat | ClientSeat) -> bool:
        """The same, because of what it sent as a client.

        Its contact has yet to multicast that, and may have to wait for credit, so for programs.
        """
        return any(visit is not seat and visit.relayed() for visit in self._visits.values())

    def holds(self, seat: Seat) -> bool:
        """Nobody says outside of a group with clients how far it is: so all of them have to have it (7.1)."""
        if seat.serving is not None:
            return self.active(seat) or self.with_clients(seat.serving)
        return self.active(seat) if self._all else self.unsafe(seat)

    def with_clients(self, serving: Serving) -> bool:
        """Whether clients may lack something."""
        return serving.active()

    def left_behind(self, seat: Seat | ClientSeat) -> bool:
        """Whether a group that it has left, and that is not this one, is active for it."""
        return self._departures.active(seat.number)

    def active(self, seat: Seat) -> bool:
        """Whether not all are known to have what this process sent or delivered there."""
        stream = seat.entered
        current = stream is not None and stream is seat.member.stream
        if stream is not None and current and seat.is_beyond(stream, stream.buffers.stable):
            return True
        return self.unsettled(seat)

    def unsettled(self, seat: Seat) -> bool:
        """The same of its earlier views."""
        return seat.unsettled()

    def unsafe(self, seat: Seat) -> bool:
        """Whether crashes may yet make that vanish. What belongs to a view that is over cannot."""
        stream = seat.entered
        if stream is None or stream is not seat.member.stream:
            return False
        if self.failures is None:
            certain = stream.buffers.certain_upto
            return seat.is_beyond(stream, [certain(rank) for rank in range(len(stream.members))])
        if not self.failures:
            return False  # this process has it
        time = seat.time()
        assert time is not None
        rows = [*stream.exchange.repairs.received]
        rows[stream.rank] = stream.queued
        needed = min(self.failures + 1, len(rows))
        return any(self.holders(rows, rank, count) < needed for rank, count in time.counts.items())

    def holders(self, rows: list[list[int]], rank: int, count: int) -> int:
        """How many members have a message, its sender among them."""
        return sum(row[rank] >= count for row in rows)
