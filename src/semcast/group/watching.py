"""What programs ask for besides what is delivered: what was purged, and when there is room again."""

from collections.abc import Callable, Sequence

from semcast.core.events import Event, Purged, Thinned, Unblocked
from semcast.core.ids import Nanos
from semcast.core.watchers import Onlooker

_MOST = 1 << 16
"""Receipts that are kept."""


class Receipts(Onlooker):
    """Keeps what was purged, up to a bound. Told in the loop's thread."""

    def __init__(self) -> None:
        self._found: list[Purged | Thinned] = []
        self._room = _MOST

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for receipts."""
        if self._room <= 0:
            return
        for event in events:
            if type(event) is Purged:
                self._found.append(event)
                self._room -= 1
            elif type(event) is Thinned:
                self._found.append(event)
                self._room -= sum([len(items) for _, items in event.runs])

    def take(self) -> list[Purged]:
        """The receipts since the last call."""
        found, self._found, self._room = self._found, [], _MOST
        return [receipt for event in found for receipt in event.receipts()]


class Openings(Onlooker):
    """Calls somebody when a stack that refused a message would take it now. Told in the loop's thread."""

    def __init__(self) -> None:
        self.act: Callable[[], object] | None = None

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for the word."""
        if self.act is not None and any(type(event) is Unblocked for event in events):
            self.act()
