"""What a group keeps of what its stack says besides deliveries."""

from collections.abc import Callable, Sequence

from semcast.core.events import Delivery, Event, Left, Purged
from semcast.core.handover import Outgoing
from semcast.core.ids import MemberId, Nanos
from semcast.core.turn import Watcher

_MOST = 1 << 16
"""Receipts that are kept."""


class EventWatcher(Watcher):
    """Keeps receipts, up to a bound, and passes on what matters. Told in the driver's thread.

    Args:
        on_left: the stack has left its group.
    """

    def __init__(self, on_left: Callable[[Left], None]) -> None:
        self._on_left = on_left
        self._receipts: list[Purged] = []

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for what is not in the mailbox."""
        for event in events:
            if isinstance(event, Purged):
                if len(self._receipts) < _MOST:
                    self._receipts.append(event)
            elif isinstance(event, Left):
                self._on_left(event)

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
