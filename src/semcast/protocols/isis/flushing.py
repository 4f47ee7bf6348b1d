"""What a flush of the program waits for (1991, 7.3): all members are given what it sent or was given."""

from collections.abc import Iterable
from typing import NamedTuple

from semcast.core.ids import MemberId
from semcast.protocols.isis.seat import Seat


class _Snapshot(NamedTuple):
    seat: Seat
    view: int
    counts: dict[MemberId, int]


class Flush:
    """One of them, with what the program had when it asked.

    Args:
        number: of the request.
        seats: the groups of the process.
    """

    def __init__(self, number: int, seats: Iterable[Seat]) -> None:
        self.number = number
        self._snapshots: list[_Snapshot] = []
        for seat in seats:
            stream, time = seat.entered, seat.time()
            if stream is not None and time is not None:
                counts = {stream.members[rank]: count for rank, count in time.counts.items()}
                self._snapshots.append(_Snapshot(seat, time.view, counts))

    def taken_by_all(self, _seq: int) -> bool:
        """Whether it may return."""
        return all(map(self._taken, self._snapshots))

    def _taken(self, snapshot: _Snapshot) -> bool:
        """Who has been told of a later view has taken all that came before it.

        Only if this process is in a later view, too: else that view may be without it, and what it sent is
        lost.
        """
        seat, view, counts = snapshot
        stream = seat.member.stream
        if stream is None or seat.member.is_out:
            return stream is None or seat.leaving  # who is put out does not know what became of it
        over = stream.view().id > view
        return all(
            (over and seat.told_of.get(member, 0) > view)
            or all(seat.taken[member].get(sender, 0) >= count for sender, count in counts.items())
            for member in stream.members
            if member != seat.me
        )
