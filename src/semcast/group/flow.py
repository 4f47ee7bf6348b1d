"""Being held back, for people: what `stats()` says of it, and a line in the log when it lasts."""

import logging
from collections.abc import Callable

import msgspec

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.net.seat import Seat

_LOG = logging.getLogger("semcast.flow")
_LONG: Nanos = SECOND
"""Who is held back for longer is told in the log."""


class HeldUp(msgspec.Struct, frozen=True):
    """Which member or resource keeps this member from sending."""

    by: MemberId | None
    """A member, where it is one."""
    why: str
    since: float
    """As `time.time()` tells it."""


class FlowLog:
    """Looks at what holds a member back.

    Args:
        group: its name.
        seat: of the member.
        clock: of the machine.
        wall: the time of day there.
    """

    def __init__(self, group: str, seat: Seat, clock: Callable[[], Nanos], wall: Callable[[], Nanos]) -> None:
        self._group = group
        self._clock = clock
        self._wall = wall
        self._seat = seat
        self._logged: Nanos | None = None  # since when the one was held back that the log tells of

    def held(self) -> HeldUp | None:
        """Now. May be called from any thread."""
        current = self._seat.holdup.now
        if current is None:
            return None
        cause, since = current
        return HeldUp(cause.by, cause.why, (self._wall() - self._clock() + since) / SECOND)

    def why(self) -> str:
        """In words, for an error."""
        held = self.held()
        if held is None:
            return "what was handed over before is still being sent"
        return held.why if held.by is None else f"{held.by}: {held.why}"

    def look(self) -> None:
        """Once a second, in the loop's thread: tell what has lasted for long, once, and its end."""
        current, now = self._seat.holdup.now, self._clock()
        if current is None:
            if self._logged is not None:
                _LOG.info("%s: %s may send again", self._group, self._seat.member)
            self._logged = None
        elif self._logged is None and now - current[1] >= _LONG:
            self._logged = current[1]
            _LOG.warning(
                "%s: %s has been held back for %.1f s: %s",
                self._group,
                self._seat.member,
                (now - current[1]) / SECOND,
                self.why(),
            )
