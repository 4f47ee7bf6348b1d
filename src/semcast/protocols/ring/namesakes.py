"""Newcomers that have the name of a member: a process that started again, or another one with the same name.

A former incarnation is dead, so the token is lost before long, and the newcomer takes its place. If the ring
goes on working all the same, the member lives, and the newcomer is told to leave. Who was in a ring before is
never told so: two sides of a partition may each have somebody of one name, and must not put each other out
when they meet. Then both stay, and the log says so.
"""

from semcast.core.ids import MemberId, Nanos

_MOST = 16
"""Newcomers that are remembered."""


class Namesakes:
    """Those who asked to join a ring that has somebody of their name.

    Args:
        patience: a member without which the ring has worked for so long would be missed.
    """

    def __init__(self, patience: Nanos) -> None:
        self.patience = patience
        self._heard: dict[MemberId, tuple[Nanos, Nanos]] = {}  # first, and last

    def outlived(self, now: Nanos, newcomer: MemberId) -> bool:
        """It asks again. Whether the ring has worked for long enough since it first did."""
        first, last = self._heard.get(newcomer, (now, now))
        if now - last > self.patience:
            first = now
        if newcomer not in self._heard and len(self._heard) >= _MOST:
            del self._heard[min(self._heard, key=lambda each: (self._heard[each][1], each))]
        self._heard[newcomer] = first, now
        return now - first >= self.patience

    def clear(self) -> None:
        """The ring has lost its token: somebody may be dead."""
        self._heard.clear()
