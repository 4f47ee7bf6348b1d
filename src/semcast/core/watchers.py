"""Who is told what a turn does: metrics, recordings, requests.

The compiled wheel leaves this module as it is: classes of other modules derive from the protocol, which mypyc
allows only to compiled ones.
"""

from collections.abc import Sequence
from typing import Protocol

from semcast.core.events import Delivery, Event
from semcast.core.ids import MemberId, Nanos
from semcast.core.outgoing import Outgoing


class Watcher(Protocol):
    """Whoever wants to know what a turn does. Called in its middle, so it must be quick."""

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """Events of the stack, before the frames that go with them leave."""

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """What the application is about to get."""

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """What the stack took from the application and how many messages of each, before any leaves."""

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Another incarnation goes on in the place of the member so far."""


class Onlooker(Watcher):
    """One that wants to know some of it. What a subclass leaves out is not called at all."""

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """Nothing."""

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """Nothing."""

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """Nothing."""

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Nothing."""
