"""Messages of clients, to the local members of groups and to one session."""

from collections.abc import Mapping

from semcast.core.statistics import Statistics
from semcast.protocols.lightweight.events import Delivered, PrivateDelivered, Undeliverable
from semcast.protocols.lightweight.groups import Group, Map
from semcast.protocols.lightweight.ids import Position, ViewId
from semcast.protocols.lightweight.messages import Cast, Client, Private
from semcast.protocols.lightweight.notes import Notes
from semcast.protocols.lightweight.sessions import Session
from semcast.protocols.lightweight.written import Written


class Delivering:
    """Who gets what. One event is shared by all who are given the same.

    Args:
        sessions: of the local clients.
        notes: what the daemon tells the history.
        stats: of the daemon.
    """

    def __init__(self, sessions: Mapping[Client, Session], notes: Notes, stats: Statistics) -> None:
        self._sessions = sessions
        self._notes = notes
        self._stats = stats

    def cast(self, map_: Map, cast_: Cast, position: Position) -> None:
        """A run of messages to groups: once to each local client in any of them."""
        count, groups = len(cast_.payloads), cast_.groups
        self._notes.ordered(position, cast_.client, "cast", cast_.seq, count, groups, cast_.view)
        here = self.receivers(map_, cast_)
        if not here:
            return
        run = cast_.payloads
        size = run.size if type(run) is Written else sum(map(len, run))
        event = Delivered(cast_.client, cast_.seq, groups, position, run, size, cast_.items)
        for session in here.values():
            session.put(event)
        self._stats.delivered += count * len(here)
        if self._notes.wanted:
            for client, session in here.items():
                if not session.closed:
                    self._notes.delivered(client, cast_, position, self.views_of(map_, client, cast_))

    def receivers(self, map_: Map, cast_: Cast) -> dict[Client, Session]:
        """The local clients in any of its groups, each once."""
        if len(cast_.groups) == 1:
            return self.members_here(map_, cast_.groups[0], cast_)
        found: dict[Client, Session] = {}
        for name in cast_.groups:
            found.update(self.members_here(map_, name, cast_))
        return found

    def members_here(self, map_: Map, name: str, cast_: Cast) -> dict[Client, Session]:
        """Those of one group; a message of a member of a `vs` group is for those who are in its view."""
        group = map_.groups.get(name)
        if group is None or not group.local:
            return {}
        if not group.vs:
            return group.local
        if cast_.view is not None and not self.in_sending_view(map_, group, cast_):
            return {}
        if not group.fresh:
            return group.local
        return {client: session for client, session in group.local.items() if client not in group.fresh}

    def in_sending_view(self, map_: Map, group: Group, cast_: Cast) -> bool:
        """Whether local clients are in the view of the sender, and were together with it ever since."""
        return group.view == cast_.view and map_.clients[cast_.client].daemon in group.kept

    def views_of(self, map_: Map, client: Client, cast_: Cast) -> dict[str, ViewId | None]:
        """The views in which a local client is given a message."""
        return {
            name: map_.groups[name].view
            for name in cast_.groups
            if client in self.members_here(map_, name, cast_)
        }

    def private(self, map_: Map, private: Private, position: Position) -> None:
        """A message to one session, or else its sender hears that there is none."""
        client, seq = private.client, private.seq
        self._notes.ordered(position, client, "private", seq, 1)
        to = self.addressee(map_, private.to)
        if to is None:
            session = self._sessions.get(client)
            if session is not None and not session.closed:
                session.put(Undeliverable(seq, private.to))
                self._notes.private(client, "undeliverable", client, seq, position)
            return
        session = self._sessions.get(to)
        if session is not None and not session.closed:
            session.put(PrivateDelivered(client, seq, position, private.payload))
            self._stats.delivered += 1
            self._notes.private(to, "delivered", client, seq, position)

    def addressee(self, map_: Map, to: Client) -> Client | None:
        """Whose session a private message is for, if it is there."""
        return to if to in map_.clients else None
