"""What a flush of the program waits for (1991, 7.3): all members are given what it sent or was given."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from semcast.core.ids import MemberId
from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.seat import Seat

if TYPE_CHECKING:
    from semcast.protocols.isis.clients import ClientSeat


class Snapshot(NamedTuple):
    """How far a program was in a group when it asked."""

    seat: Seat
    view: int
    counts: dict[MemberId, int]

    def taken_by(self, members: Iterable[MemberId]) -> bool:
        """Whether the programs of these members have come as far. A replacement counts once it is taken.

        Who has been told of a later view has taken all that came before it. Only if this process is in a
        later view, too: else that view may be without it, and what it sent is lost.
        """
        seat, view, counts = self
        stream = seat.member.stream
        over = stream is not None and stream.view().id > view
        return all(
            (over and seat.taking.told_of.get(member, 0) > view)
            or (
                self.up_to_date(member)
                and all(seat.taking.certain(member, sender) >= count for sender, count in counts.items())
            )
            for member in members
        )

    def up_to_date(self, member: MemberId) -> bool:
        """Whether the program of a member has all of the views before: this one had that, too."""
        return self.seat.taking.told_of.get(member, 0) >= self.view


class Flush:
    """One of them, with what the program had when it asked.

    Args:
        number: of the request.
        seats: the groups of the process.
        visits: those that it is a client of. Only servers know what they have taken: its contact is asked.
        departures: from groups that it has left.
    """

    snapshot_kind: ClassVar[type[Snapshot]] = Snapshot

    def __init__(
        self, number: int, seats: Iterable[Seat], visits: Iterable["ClientSeat"], departures: Departures
    ) -> None:
        self.number = number
        self._departures = departures
        self._left = departures.untold()
        self._snapshots: list[Snapshot] = []
        for seat in seats:
            stream, time = seat.entered, seat.time()
            if stream is not None and time is not None:
                counts = {stream.members[rank]: count for rank, count in time.counts.items()}
                self._snapshots.append(self.snapshot_kind(seat, time.view, counts))
        self._asked = [(visit, visit.ask_to_flush()) for visit in visits]

    def taken_by_all(self, _seq: int) -> bool:
        """Whether it may return."""
        return (
            all(map(self._taken, self._snapshots))
            and all(visit.flushed(nth) for visit, nth in self._asked)
            and all(map(self._departures.is_told, self._left))
        )

    def _taken(self, snapshot: Snapshot) -> bool:
        seat = snapshot.seat
        stream = seat.member.stream
        if stream is None:
            return True
        if seat.member.is_out:  # who is put out does not know what became of it
            return seat.leaving and seat.gone and self._departures.is_told(seat.number)
        return snapshot.taken_by(member for member in stream.members if member != seat.me)
