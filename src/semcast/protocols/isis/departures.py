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


class Untold:
    """Of a group that was left: whose programs are not known to have all that this one was given there."""

    def __init__(self, seat: Seat, view: int) -> None:
        self.view = view
        self.members = set(seat.successors)
        self.asked_at: Nanos | None = None


class Departures:
    """Of one process.

    Args:
        patience: a group of which nobody is heard for so long is taken to be gone.
    """

    def __init__(self, patience: Nanos) -> None:
        self._patience = patience
        self._open: dict[int, Departure] = {}
        self._last: dict[int, int] = {}
        self._untold: dict[int, Untold] = {}
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
        self._untold.pop(seat.number, None)
        if seat.successors:
            self._untold[seat.number] = Untold(seat, view)
            if len(self._untold) > _REMEMBERED:
                del self._untold[next(iter(self._untold))]
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
        self._hear_told(now, group, source, frame)
        departure = self._open.get(group)
        if departure is not None:
            if frame.view > departure.view and frame.members:
                departure.view, departure.members = frame.view, tuple(frame.members)
            self.heard(now, group, source, frame.view)

    def _hear_told(self, now: Nanos, group: int, source: MemberId, frame: Reached) -> None:
        untold = self._untold.get(group)
        if untold is None or frame.view <= untold.view:
            return
        untold.asked_at = now
        if frame.members:
            untold.members.intersection_update(frame.members)  # who is gone is not asked
        if frame.told > untold.view or not frame.members:
            untold.members.discard(source)
        if not untold.members:
            del self._untold[group]

    def untold(self) -> list[int]:
        """The groups that were left, and some program is not known to have what this one was given there."""
        return list(self._untold)

    def is_told(self, group: int) -> bool:
        """Whether all of them have it."""
        return group not in self._untold

    def wanted(self, now: Nanos, *, flushes: bool) -> list[tuple[int, MemberId, ReachedWanted]]:
        """Whom to ask. A group of which nobody answers any more is gone with all who were in it."""
        found = self._wanted_to_flush(now) if flushes else []
        for group, departure in list(self._open.items()):
            if now - departure.heard_at > self._patience:
                del self._open[group]
            else:
                # All of them: who lacks something may be gone, as only the others can tell.
                frame = ReachedWanted(departure.past[-1][0])
                found += [(group, member, frame) for member in departure.members]
        return found

    def _wanted_to_flush(self, now: Nanos) -> list[tuple[int, MemberId, ReachedWanted]]:
        found = []
        for group, untold in list(self._untold.items()):
            if untold.asked_at is None:
                untold.asked_at = now
            if now - untold.asked_at > self._patience:
                del self._untold[group]
            else:
                found += [(group, member, ReachedWanted(untold.view)) for member in sorted(untold.members)]
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
    told = seat.taking.told_of.get(seat.me, 0)
    return None if stream is None else Reached(stream.view().id, list(members), told)
