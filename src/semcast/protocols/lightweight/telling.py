"""What the local members of a group are told of its views."""

from collections.abc import Iterator

import msgspec

from semcast.core.ids import Nanos
from semcast.core.statistics import Statistics
from semcast.protocols.lightweight.events import Block, Cause, GroupTransitional, GroupView, LeftGroup
from semcast.protocols.lightweight.groups import Group, Map
from semcast.protocols.lightweight.ids import ViewId
from semcast.protocols.lightweight.messages import Client
from semcast.protocols.lightweight.notes import Notes
from semcast.protocols.lightweight.sessions import Session, blocks


class Delta(msgspec.Struct, frozen=True):
    """How a view differs from the one before."""

    joined: tuple[Client, ...] = ()
    left: tuple[Client, ...] = ()
    failed: tuple[Client, ...] = ()


class Teller:
    """One object for all who are told the same."""

    def __init__(self, notes: Notes, stats: Statistics) -> None:
        self._notes = notes
        self._stats = stats
        self._blocked: dict[Client, Session] = {}  # who has yet to answer

    def longest_blocked(self) -> tuple[Nanos, Session] | None:
        """Who has not answered for the longest time, and since when."""
        blocked = {client: each for client, each in self._blocked.items() if each.blocked}
        self._blocked = blocked
        found = [(min(since for _, since in each.blocked.values()), each) for each in blocked.values()]
        return min(found, key=lambda item: (item[0], item[1].client)) if found else None

    def view(self, group: Group, view: ViewId, cause: Cause, delta: Delta | None, map_: Map) -> None:
        """All members are in another view; without a delta, whatever happened since the last one."""
        if delta is None:
            delta = _since(group)
        if group.vs:
            group.listed = tuple(group.members)
        if not group.local:
            return
        members = group.listed if group.vs else tuple(group.members)
        told = GroupView(group.name, view, members, delta.joined, delta.left, delta.failed, cause, group.vs)
        along = told if not group.vs else msgspec.structs.replace(told, along=tuple(_along(group, map_)))
        for client, session in group.local.items():
            self._tell_view(session, told if client in group.fresh else along)

    def _tell_view(self, session: Session, told: GroupView) -> None:
        session.blocked.pop(told.group, None)
        if not session.closed:
            session.put(told)
            self._stats.delivered += 1
            self._notes.view(session.client, told)

    def transitional(self, group: Group, members: tuple[Client, ...], warned: set[Client]) -> None:
        """Only these members are sure to have what still comes. Who was told so is `warned`."""
        if group.view is None:
            return
        told = GroupTransitional(group.name, group.view, members)
        for client, session in group.local.items():
            if client not in group.fresh and client not in warned and not session.closed:
                warned.add(client)
                session.put(told)
                self._notes.transitional(client, told)

    def block(self, group: Group, view: ViewId, now: Nanos) -> None:
        """The view ends."""
        told = Block(group.name, view)
        for client, session in group.local.items():
            if client not in group.fresh and blocks(session, told, now):
                self._blocked[client] = session

    def left(self, session: Session, group: str) -> None:
        """It is out of the group."""
        session.blocked.pop(group, None)
        if not session.closed:
            session.put(LeftGroup(group))
            self._notes.left(session.client, group)


def _since(group: Group) -> Delta:
    """What happened to a `vs` group since its last view."""
    there = set(group.listed)
    gone = [client for client in group.listed if client not in group.members]
    return Delta(
        joined=tuple(client for client in group.members if client not in there),
        left=tuple(client for client in gone if client in group.departed),
        failed=tuple(client for client in gone if client not in group.departed),
    )


def _along(group: Group, map_: Map) -> Iterator[Client]:
    """Who was in the same view as the local members, and together with them ever since."""
    for client in group.members:
        daemon = map_.clients[client].daemon
        if client not in group.fresh and daemon in group.kept and group.views.get(daemon) == group.view:
            yield client
