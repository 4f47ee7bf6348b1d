"""What was purged here, for programs that ask."""

from collections.abc import Sequence

from semcast.core.events import Delivery, Event, Purged
from semcast.core.handover import Outgoing
from semcast.core.ids import MemberId, Nanos
from semcast.core.turn import Watcher

_MOST = 1 << 16
"""Receipts that are kept."""


class Receipts(Watcher):
    """Keeps what was purged, up to a bound. Told in the loop's thread."""

    def __init__(self) -> None:
        self._receipts: list[Purged] = []

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for receipts."""
        if len(self._receipts) < _MOST:
            self._receipts += [event for event in events if isinstance(event, Purged)]

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """Nothing to keep."""

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """Nothing to keep."""

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Nothing to keep."""

    def take(self) -> list[Purged]:
        """The receipts since the last call."""
        receipts, self._receipts = self._receipts, []
        return receipts
