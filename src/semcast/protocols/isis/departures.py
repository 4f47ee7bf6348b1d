"""Groups that this process has left and is not done with (1991, 6.7): who is there may lack something."""

from collections.abc import Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.isis.frames import Reached, ReachedWanted
from semcast.protocols.isis.seat import Seat
from semcast.protocols.vsync.frames import Known

_REMEMBERED = 1024
"""Groups of which it is remembered which view this process was in last."""


class Departure:
    """From one group."""

    def __init__(self, now: Nanos, seat: Seat, view: int) -> None:
        self.past = [*seat.past, (view, frozenset(seat.successors))]
        self.spoke = dict(seat.spoke)
        self.members = seat.successors
        self.view = view
        self.heard_at = now

    def lacking(self) -> list[MemberId]:
        """Who is not known to have all that this process had."""
        return [
            member
            for member in self.members
            if any(member in survivors and self.spoke.get(member, 0) <= view for view, survivors in self.past)
        ]


class Departures:
    """Of one process.

    Args:
        patience: a group of which nobody is heard for so long is taken to be gone.
    """

    def __init__(self, patience: Nanos) -> None:
        self._patience = patience
        self._open: dict[int, Departure] = {}
        self._last: dict[int, int] = {}
        self._after: dict[int, Known | int] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def active(self, but: int) -> bool:
        """Whether a group that was left, and is not this one, is still active for this process."""
        return any(number != but for number in self._open)

    def left(self, now: Nanos, seat: Seat) -> None:
        """This process has left a group."""
        stream = seat.member.stream
        if stream is None:
            return
        view = stream.view().id
        self._last.pop(seat.number, None)
        self._last[seat.number] = view
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        self._after.pop(seat.number, None)
        last = view if stream.members == (seat.me,) else seat.succeeded
        self._after[seat.number] = Known(last, list(seat.successors)) if seat.successors else last
        if len(self._after) > _REMEMBERED:
            del self._after[next(iter(self._after))]
        departure = Departure(now, seat, view)
        if departure.lacking():
            self._open[seat.number] = departure

    def heard(self, now: Nanos, group: int, source: MemberId, view: int) -> None:
        """A member spoke in a view."""
        departure = self._open.get(group)
        if departure is not None:
            departure.heard_at = now
            departure.spoke[source] = max(view, departure.spoke.get(source, 0))
            self._look(group, departure)

    def on_reached(self, now: Nanos, group: int, source: MemberId, frame: Reached) -> None:
        """A member says which view it is in, and who else is."""
        departure = self._open.get(group)
        if departure is not None:
            if frame.view > departure.view and frame.members:
                departure.view, departure.members = frame.view, tuple(frame.members)
            self.heard(now, group, source, frame.view)

    def wanted(self, now: Nanos) -> list[tuple[int, MemberId, ReachedWanted]]:
        """Whom to ask. A group of which nobody answers any more is gone with all who were in it."""
        found = []
        for group, departure in list(self._open.items()):
            if now - departure.heard_at > self._patience:
                del self._open[group]
            else:
                # All of them: who lacks something may be gone, as only the others can tell.
                frame = ReachedWanted(departure.past[-1][0])
                found += [(group, member, frame) for member in departure.members]
        return found

    def answer(self, group: int) -> Reached | None:
        """What this process says of a group that it has left."""
        view = self._last.get(group)
        return None if view is None else Reached(view, [])

    def after(self, group: int) -> Known | int | None:
        """The view of a group that followed when this process left; a number if nobody was in it."""
        return self._after.get(group)

    def over(self, group: int, view: int) -> int:
        """The number of the last view of a group, if this process was the last to leave it."""
        last = self._after.get(group)
        return last if isinstance(last, int) and last >= view else 0

    def _look(self, group: int, departure: Departure) -> None:
        if not departure.lacking():
            del self._open[group]


def answer_of(seat: Seat) -> Reached | None:
    """What a member says."""
    stream = seat.member.stream
    members: Sequence[MemberId] = () if stream is None else stream.members
    return None if stream is None else Reached(stream.view().id, list(members))
