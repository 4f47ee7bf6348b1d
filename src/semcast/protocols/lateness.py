"""When an application counts as slow, so that what is obsolete of what waits for it may go."""

from semcast.core.ids import Nanos


class Lateness:
    """Whether an application is behind: something has waited for it for too long.

    It may always have something left to take, as long as what waits now is taken in time. Once it is behind,
    it is so until it has taken everything.
    """

    def __init__(self, lag: Nanos) -> None:
        self._lag = lag
        self._marked_at: Nanos = 0
        self._before_mark = 0  # messages left of those that waited then
        self._late = False

    def behind(self, now: Nanos) -> bool:
        """Whether what is obsolete may be purged."""
        self._late = self._late or now - self._marked_at > self._lag
        return self._late

    def took(self, now: Nanos, count: int, left: int) -> None:
        """The application took so many messages, and so many wait."""
        self._before_mark -= count
        if not left:
            self._late = False
        if not left or self._before_mark <= 0:
            self._marked_at, self._before_mark = now, left
