"""What programs ask for besides what is delivered: what was purged, and when there is room again."""

from collections.abc import Callable, Sequence

from semcast.core.events import Event, Purged, Unblocked
from semcast.core.ids import Nanos
from semcast.core.turn import Onlooker

_MOST = 1 << 16
"""Receipts that are kept."""


class Receipts(Onlooker):
    """Keeps what was purged, up to a bound. Told in the loop's thread."""

    def __init__(self) -> None:
        self._receipts: list[Purged] = []

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for receipts."""
        if len(self._receipts) < _MOST:
            self._receipts += [event for event in events if isinstance(event, Purged)]

    def take(self) -> list[Purged]:
        """The receipts since the last call."""
        receipts, self._receipts = self._receipts, []
        return receipts


class Openings(Onlooker):
    """Calls somebody when a stack that refused a message would take it now. Told in the loop's thread."""

    def __init__(self) -> None:
        self.act: Callable[[], object] | None = None

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for the word."""
        if self.act is not None and any(type(event) is Unblocked for event in events):
            self.act()
