"""Who or what has kept a member from sending, since when, and for how long in all."""

from semcast.core.heldback import HeldBack
from semcast.core.ids import Nanos

_MOST = 64
"""Causes that are told apart. Members come and go, and counts must not grow for ever."""


class Holdup:
    """Told by turns what the stack says; may be read from any thread."""

    __slots__ = (
        "now",
        "spent",
    )

    def __init__(self) -> None:
        self.now: tuple[HeldBack, Nanos] | None = None
        """What holds this member back, and since when."""
        self.spent: dict[tuple[str, str], Nanos] = {}
        """How long each has held it back, by the name of the member (empty for none) and the reason."""

    def note(self, now: Nanos, held: HeldBack | None) -> None:
        """This holds the member back now."""
        before = self.now
        if before is None:
            self.now = None if held is None else (held, now)
            return
        cause, since = before
        if held == cause:
            return
        self._spend(cause, now - since)
        self.now = None if held is None else (held, now)

    def so_far(self, now: Nanos) -> dict[tuple[str, str], Nanos]:
        """`spent`, with what is under way."""
        found, current = dict(self.spent), self.now
        if current is not None:
            key = self._key(current[0])
            found[key] = found.get(key, 0) + max(0, now - current[1])
        return found

    def _spend(self, cause: HeldBack, time: Nanos) -> None:
        key = self._key(cause)
        self.spent[key] = self.spent.get(key, 0) + time

    def _key(self, cause: HeldBack) -> tuple[str, str]:
        key = ("" if cause.by is None else cause.by.name), cause.why
        return key if key in self.spent or len(self.spent) < _MOST else ("others", "")
