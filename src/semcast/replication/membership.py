"""The servers of a group, as green actions make them: founders, and who joined, left or was weighed anew.

What is a quorum does not follow from these: it changes only where a primary is installed, since two servers
that have not the same actions green would count differently.
"""

import msgspec

from semcast.replication.actions import Change, Join, Leave
from semcast.replication.ids import Number, Server, Weighted


class Roll(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same, written down."""

    founders: Weighted
    weights: Weighted
    removed: list[Server]
    since: list[tuple[Server, Number]]


class Membership:
    """S of the paper, with weights."""

    def __init__(self) -> None:
        self.founders: Weighted = ()
        """Who was in the first primary. No action says that, so it is told with every state."""
        self.weights: dict[Server, int] = {}
        self.removed: set[Server] = set()
        self.since: dict[Server, int] = {}
        """The position from which on a server belongs."""
        self._forgotten: frozenset[Server] = frozenset()
        self._given_up: dict[Server, tuple[int, int]] = {}  # of these, weight and position

    def found(self, servers: Weighted) -> None:
        """The first primary; only once."""
        if not self.founders:
            self.founders = servers
            self.weights = dict(servers)
            self.since = dict.fromkeys(self.weights, 0)
            self._hide()

    def __contains__(self, server: Server) -> bool:
        return server in self.weights

    def weighted(self) -> Weighted:
        """All, in order."""
        return tuple(sorted(self.weights.items()))

    def by_actions(self) -> tuple[Server, ...]:
        """All, with those that operators gave up: what is known of these may be news of another lineage."""
        return (*self.weights, *self._given_up)

    def apply(self, what: Change, position: int) -> bool:
        """An action is green; returns whether it changes anything.

        It may be about somebody whom an operator gave up at this server only: what all have made of the group
        must not depend on that.
        """
        left = len(self.weights)
        self._show()
        try:
            return self._apply(what, position, left)
        finally:
            self._hide()

    def _apply(self, what: Change, position: int, left: int) -> bool:
        server = what.server
        if isinstance(what, Join):
            if server in self.removed or server in self.weights:
                return False
            for other in [other for other in self.weights if other.name == server.name]:
                self._remove(other)
            self.weights[server] = what.weight
            self.since[server] = position
        elif server not in self.weights:
            return False
        elif isinstance(what, Leave):
            if left == 1 and server not in self._forgotten:
                return False  # the last one stays: nobody could let anybody in again
            self._remove(server)
        else:
            self.weights[server] = what.weight
        return True

    def forget(self, servers: frozenset[Server]) -> None:
        """These, and no others, were given up by operators, as the last primary says.

        It may be another one than an operator made up here: the others had gone on, and gave up nobody.
        """
        if servers != self._forgotten:
            self._show()
            self._forgotten = servers
            self._hide()

    def _hide(self) -> None:
        for server in sorted(self._forgotten & self.weights.keys()):
            self._given_up[server] = self.weights[server], self.since[server]
            self._remove(server)

    def _show(self) -> None:
        for server, (weight, since) in self._given_up.items():
            self.removed.discard(server)
            self.weights[server], self.since[server] = weight, since
        self._given_up.clear()

    def written(self) -> Roll:
        """To be written down, with those that were given up: of these the primary tells."""
        self._show()
        roll = Roll(self.founders, self.weighted(), sorted(self.removed), sorted(self.since.items()))
        self._hide()
        return roll

    def restore(self, roll: Roll) -> None:
        """As it was written down."""
        self.founders, self.weights = roll.founders, dict(roll.weights)
        self.removed, self.since = set(roll.removed), dict(roll.since)
        self._given_up.clear()
        self._hide()

    def _remove(self, server: Server) -> None:
        del self.weights[server], self.since[server]
        self.removed.add(server)
