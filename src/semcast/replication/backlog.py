"""A service that is slower than the order of all: what waits for it in memory has a bound.

At a quarter of the bound its server makes no new actions, so that its own clients wait. If others make them
faster than it can do them all the same, it leaves the group at the bound, and nobody waits for it: outside it
pulls no more than its service has room for, and it comes back once the service keeps up.
"""

from semcast.core.ids import MILLISECOND, Nanos
from semcast.replication.colours import Colours

_SHARE = 4
"""What part of the bound may wait at a server that works normally."""
_GRACE: Nanos = 200 * MILLISECOND
"""How long more than the bound may wait: much may come at once, and the service has to be given it first."""


class Backlog:
    """Of one server.

    Args:
        bound: bytes of green actions that may wait for the service.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._waiting = 0
        self._full_since: Nanos | None = None
        self._now: Nanos = 0

    def look(self, now: Nanos, colours: Colours, given: int) -> None:
        """The service was given the actions up to a position."""
        self._now = now
        self._waiting = 0 if given >= colours.line else colours.bytes_behind(given)
        if self._waiting <= self._bound:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now

    @property
    def slow(self) -> bool:
        """Whether the service is so far behind that its server should not ask for more."""
        return self._waiting > self._bound // _SHARE

    @property
    def full(self) -> bool:
        """Whether there has been no room for a while."""
        return self._full_since is not None and self._now - self._full_since >= _GRACE
