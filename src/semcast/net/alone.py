"""A group with an exchange of its own, for a loop that is not ours: a daemon drives both as one tenant."""

from collections.abc import Collection

from semcast.core.ids import Nanos
from semcast.net.exchange import Exchange
from semcast.net.hub import Hub


class Alone:
    """One exchange and its only hub.

    Args:
        exchange: the sockets.
        hub: whose datagrams come there.
    """

    def __init__(self, exchange: Exchange, hub: Hub) -> None:
        self._exchange = exchange
        self._hub = hub

    def filenos(self) -> Collection[int]:
        """The sockets to wait for."""
        return self._exchange.filenos()

    def start(self, now: Nanos) -> None:
        """The first turn."""
        self._exchange.start(now)
        self._hub.start(now)

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        """Take in what came, and give the hub its turn."""
        self._exchange.run(now, ready)
        self._hub.run(now, ())

    def next_at(self) -> Nanos:
        """When there is something to do again; 0 for at once."""
        return min(self._exchange.next_at(), self._hub.next_at())
