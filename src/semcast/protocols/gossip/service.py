"""The service limit: 1000 repairs a second and node (7.1). What exceeds it is dropped: askers ask again."""

from semcast.core.ids import SECOND, Nanos

_BURST = 10
"""A tenth of a second's repairs may be made at once."""


class ServiceLimit:
    """A bucket of tokens.

    >>> limit = ServiceLimit(20)
    >>> [limit.take(0) for _ in range(3)], limit.take(SECOND // 20)
    ([True, True, False], True)
    """

    def __init__(self, rate: int) -> None:
        self._each = SECOND // rate
        self._most = max(rate // _BURST, 1) * self._each
        self._full_at: Nanos = 0

    def some(self, now: Nanos, count: int) -> int:
        """How many of so many repairs may be made now."""
        at = max(self._full_at, now)
        allowed = max(0, min(count, (now + self._most - at) // self._each))
        self._full_at = at + allowed * self._each
        return allowed

    def take(self, now: Nanos) -> bool:
        """Whether one more repair may be made now."""
        owed = max(self._full_at, now) + self._each
        if owed > now + self._most:
            return False
        self._full_at = owed
        return True
