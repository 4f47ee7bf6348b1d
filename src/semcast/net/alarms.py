"""The timers of a stack: each is set to one moment or not at all."""

from heapq import heappop, heappush

from semcast.core.ids import Nanos
from semcast.core.outbox import Timer


class Alarms:
    """Which timer goes off when."""

    def __init__(self) -> None:
        self._at: dict[Timer, Nanos] = {}
        self._due: list[tuple[Nanos, int, Timer]] = []  # also those that were set to another moment since
        self._count = 0

    def set(self, timer: Timer, at: Nanos | None) -> None:
        """Set a timer to a moment, whatever it was set to before; None for never."""
        if at is None:
            self._at.pop(timer, None)
        else:
            self._at[timer] = at
            self._count += 1
            heappush(self._due, (at, self._count, timer))

    def next_at(self) -> Nanos | None:
        """When the first goes off."""
        due, at = self._due, self._at
        while due and at.get(due[0][2]) != due[0][0]:
            heappop(due)
        return due[0][0] if due else None

    def due(self, now: Nanos) -> list[Timer]:
        """Those that go off now, which are then set no more."""
        found: list[Timer] = []
        while self._due and self._due[0][0] <= now:
            at, _, timer = heappop(self._due)
            if self._at.get(timer) == at:
                del self._at[timer]
                found.append(timer)
        return found

    def clear(self) -> None:
        """None is set."""
        self._at.clear()
        self._due.clear()
