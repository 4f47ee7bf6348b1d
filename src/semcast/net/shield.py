"""Who floods: counts what comes from where, and says whom the kernel shall keep out.

A datagram that is of no use costs a member some ten microseconds, and room in its socket that a token may
need. A source that sends many of them is kept out for a while. Where there are too many such sources to name,
members of the view come in at any rate, and of the others only a share: newcomers need more tries then.
"""

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.net.addresses import Address

LIMIT = 2000
"""Datagrams without use that one source may send in a second."""
LIMIT_OF_ALL = 5000
"""And all sources together, besides those that are kept out."""
PENALTY: Nanos = 10 * SECOND
"""How long a source is kept out; then it may try again."""
MOST = 64
"""Sources that are kept out by name."""
_WINDOW: Nanos = SECOND
_MOST_COUNTED = 4096


class KeepOut(msgspec.Struct, frozen=True):
    """Whom to keep out."""

    keep_out: tuple[Address, ...] = ()
    few: bool = False
    """Only a share of what comes from others than members, since there are too many sources to name."""

    def __bool__(self) -> bool:
        return self.few or bool(self.keep_out)


class Shield:
    """What came lately that was of no use."""

    def __init__(self) -> None:
        self.alarmed = False
        """Whether there is a new verdict."""
        self._counts: dict[Address, int] = {}
        self._total = 0
        self._began: Nanos = 0
        self._out: dict[Address, Nanos] = {}  # until when
        self._few_until: Nanos = 0

    def note(self, now: Nanos, source: Address) -> None:
        """A datagram of no use came from there. What is kept out still comes for a moment."""
        if now - self._began >= _WINDOW:
            self._began, self._total = now, 0
            self._counts.clear()
        if source in self._out:
            return
        self._total += 1
        count = self._counts.get(source, 0) + 1
        if count > 1 or len(self._counts) < _MOST_COUNTED:
            self._counts[source] = count
        if count == LIMIT and len(self._out) < MOST:
            self._out[source] = now + PENALTY
            self._total -= count
            self.alarmed = True
        elif self._total == LIMIT_OF_ALL:
            self._few_until = now + PENALTY
            self.alarmed = True

    def verdict(self, now: Nanos) -> KeepOut:
        """Whom to keep out now."""
        self.alarmed = False
        for source in [source for source, until in self._out.items() if until <= now]:
            del self._out[source]
        return KeepOut(tuple(sorted(self._out)), now < self._few_until)
