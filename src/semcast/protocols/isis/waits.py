"""What a process waits for before it sends in another group (1991, 6.5 and 6.7)."""

from collections.abc import Mapping

from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import IsisSettings, Policy


class Waits:
    """At one process.

    Under the conservative policy a group is *active* as long as something that was sent or delivered there is
    not known to be with all of its view, or with all who went on from an earlier view. It does not end when
    the process leaves. Where stamps are carried, the causes only have to survive: `resilience`.

    Args:
        settings: of the domain.
        seats: the groups of this process, by name.
        departures: those that it has left.
    """

    def __init__(self, settings: IsisSettings, seats: Mapping[str, Seat], departures: Departures) -> None:
        self._seats = seats
        self._departures = departures
        self._conservative = settings.policy is Policy.CONSERVATIVE
        self._all = self._conservative or settings.resilience == "all"
        # Under `blocks` nobody passes on the times of a group that this process is in no more.
        self._lingers = self._all or settings.policy is Policy.BLOCKS
        counted = settings.resilience.isdecimal() and not self._conservative
        self.failures = int(settings.resilience) if counted else None
        """That causes must survive, where that is a number."""

    def blocked(self, seat: Seat) -> bool:
        """Whether this process may not send there yet, because of other groups."""
        holds = self.active if self._all else self.unsafe
        if any(other is not seat and holds(other) for other in self._seats.values()):
            return True
        return self._lingers and self.left_behind(seat)

    def left_behind(self, seat: Seat) -> bool:
        """Whether a group that it has left, and that is not this one, is active for it."""
        return self._departures.active(seat.number)

    def active(self, seat: Seat) -> bool:
        """Whether not all are known to have what this process sent or delivered there."""
        stream = seat.entered
        if stream is not None and stream is seat.member.stream:
            time, stable = seat.time(), stream.buffers.stable
            assert time is not None
            if any(count > stable[rank] for rank, count in time.counts.items()):
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
        time = seat.time()
        assert time is not None
        if self.failures is None:
            return any(count > stream.buffers.certain_upto(rank) for rank, count in time.counts.items())
        rows = [*stream.exchange.repairs.received]
        rows[stream.rank] = stream.queued
        needed = min(self.failures + 1, len(rows))
        return any(self.holders(rows, rank, count) < needed for rank, count in time.counts.items())

    def holders(self, rows: list[list[int]], rank: int, count: int) -> int:
        """How many members have a message, its sender among them."""
        return sum(row[rank] >= count for row in rows)
