"""The map of clients and groups, the same at all daemons of a configuration once a census is done."""

from collections.abc import Iterable

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.ids import Position, ViewId
from semcast.protocols.lightweight.messages import Client
from semcast.protocols.lightweight.sessions import Session

Daemon = MemberId


class Group:
    """One group. `local` is known here only, all else at every daemon."""

    __slots__ = (
        "changed",
        "departed",
        "flushed",
        "fresh",
        "kept",
        "listed",
        "local",
        "members",
        "name",
        "numbers",
        "pending",
        "settled",
        "size",
        "view",
        "views",
        "vs",
    )

    def __init__(self, name: str, *, vs: bool) -> None:
        self.name = name
        self.vs = vs
        self.members: dict[Client, Position] = {}
        """In the order of joining, with the position of that."""
        self.numbers: dict[Daemon, int] = {}
        """Members by daemon."""
        self.view: ViewId | None = None
        """The view that local clients are in; if nothing blocks here, everybody is."""
        self.size = 0
        """Of that view."""
        self.changed = False
        """Whether a part of its members is out of reach."""
        self.local: dict[Client, Session] = {}
        self.listed: tuple[Client, ...] = ()
        """The members of the view, where there are local ones."""
        self.departed: set[Client] = set()
        """Who left or went since that view."""
        # Of `vs` groups only:
        self.pending = False
        """Whether a view waits to be installed."""
        self.fresh: set[Client] = set()
        """Who was told of no view yet."""
        self.views: dict[Daemon, ViewId] = {}
        """The view that the clients of a daemon are in: after a merge they differ."""
        self.settled: dict[Daemon, int] = {}
        """How many of its clients are in that view."""
        self.flushed: set[Daemon] = set()
        """Whose clients send nothing more in their view."""
        self.kept: frozenset[Daemon] = frozenset()
        """Daemons that have been together with this one since the view was installed."""

    def add(self, client: Client, daemon: Daemon, joined: Position, *, fresh: bool) -> None:
        """One more member."""
        self.members[client] = joined
        self.numbers[daemon] = self.numbers.get(daemon, 0) + 1
        if fresh:
            self.fresh.add(client)
        else:
            self.settled[daemon] = self.settled.get(daemon, 0) + 1

    def remove(self, client: Client, daemon: Daemon) -> None:
        """One less."""
        del self.members[client]
        self.local.pop(client, None)
        _less(self.numbers, daemon)
        if client in self.fresh:
            self.fresh.discard(client)
        elif not _less(self.settled, daemon):
            self.views.pop(daemon, None)
            self.flushed.discard(daemon)

    def installed(self, view: ViewId, together: frozenset[Daemon]) -> None:
        """All members are in this view from now on."""
        self.view, self.size = view, len(self.members)
        self.changed = self.pending = False
        self.departed.clear()
        self.flushed.clear()
        self.kept = together
        if self.vs:
            self.fresh.clear()
            self.settled = dict(self.numbers)
            self.views = dict.fromkeys(self.numbers, view)

    def sort(self) -> None:
        """By when they joined: after a merge."""
        self.members = dict(sorted(self.members.items(), key=lambda item: (item[1], item[0])))

    def torn(self, together: frozenset[Daemon]) -> bool:
        """Whether some of its members are on daemons that do not go on together with this one."""
        return not self.numbers.keys() <= together

    def awaits_flush(self) -> bool:
        """Whether somebody may still send in a view that ends."""
        return not self.settled.keys() <= self.flushed


def _less(numbers: dict[Daemon, int], daemon: Daemon) -> int:
    left = numbers[daemon] - 1
    if left:
        numbers[daemon] = left
    else:
        del numbers[daemon]
    return left


class Known:
    """A client that all daemons know of."""

    __slots__ = ("daemon", "groups")

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.groups: dict[str, None] = {}


class Map:
    """All clients and groups."""

    def __init__(self) -> None:
        self.clients: dict[Client, Known] = {}
        self.groups: dict[str, Group] = {}
        self.numbers: dict[Daemon, int] = {}
        """Clients by daemon."""

    def came(self, client: Client, daemon: Daemon) -> None:
        """A client that was not known."""
        self.clients[client] = Known(daemon)
        self.numbers[daemon] = self.numbers.get(daemon, 0) + 1

    def gone(self, client: Client) -> Known:
        """It is known no more; whoever calls takes it out of its groups."""
        known = self.clients.pop(client)
        _less(self.numbers, known.daemon)
        return known

    def join(self, client: Client, group: Group, joined: Position, *, fresh: bool) -> None:
        """A known client is a member from now on."""
        known = self.clients[client]
        known.groups[group.name] = None
        self.groups[group.name] = group
        group.add(client, known.daemon, joined, fresh=fresh)

    def lose(self, daemons: Iterable[Daemon]) -> dict[str, list[Client]]:
        """Clients of these daemons are out of reach; returns what that takes from each group."""
        out = set(daemons)
        lost: dict[str, list[Client]] = {}
        for client in [client for client, known in self.clients.items() if known.daemon in out]:
            known = self.gone(client)
            for name in known.groups:
                self.groups[name].remove(client, known.daemon)
                lost.setdefault(name, []).append(client)
        return lost
