"""When a client may rely on its request: it has a place, and all daemons that are here have it.

The ring says when everybody has what this daemon handed to it, by the number of its message. A change of
configuration says it of all that was handled before: everybody who goes on together has that, too.
"""

from collections import deque

from semcast.protocols.lightweight.messages import Client


class Placing:
    """Requests of local clients that were handled, and may still be lost with this daemon."""

    def __init__(self) -> None:
        self.own = 0
        """Messages of this daemon that the ring has delivered."""
        self._safe = 0  # of those that it was handed, everybody has so many
        self._open: deque[tuple[int, Client, int]] = deque()

    def handled(self, client: Client, seq: int) -> None:
        """The last own message that was delivered carried requests of a client up to this one."""
        self._open.append((self.own, client, seq))

    def safe(self, upto: int) -> None:
        """Everybody has the first so many messages of this daemon."""
        self._safe = max(self._safe, upto)

    def changed(self) -> None:
        """The configuration is over: who goes on together has all that was handled."""
        self._safe = max(self._safe, self.own)

    def due(self) -> dict[Client, int]:
        """Who may be told of how many requests now."""
        found: dict[Client, int] = {}
        while self._open and self._open[0][0] <= self._safe:
            _, client, seq = self._open.popleft()
            found[client] = seq
        return found

    def __len__(self) -> int:
        return len(self._open)
