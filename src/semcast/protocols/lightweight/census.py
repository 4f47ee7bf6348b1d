"""The census: each daemon says who its own clients are and where they are members.

It begins with a configuration in which somebody is new, or after one whose census was interrupted. All of it
is in the total order, so all daemons have it complete at the same position, or not at all.
"""

from collections.abc import Collection, Iterator, Sequence

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.groups import Daemon, Group, Map
from semcast.protocols.lightweight.ids import Position
from semcast.protocols.lightweight.messages import Census, Client, Listed
from semcast.protocols.lightweight.settings import MAX_CENSUS

_MEMBERSHIP = 40
"""Bytes of a membership in a census, about."""


class Gathering:
    """What has come of the census of one configuration."""

    def __init__(self, daemons: Collection[Daemon]) -> None:
        self._missing: dict[Daemon, int | None] = dict.fromkeys(daemons)
        """Of each daemon, the parts that have yet to come; None where nothing came."""
        self.parts: dict[Daemon, list[Census]] = {}

    def add(self, daemon: Daemon, census: Census) -> bool:
        """One part; returns whether that was the last of all."""
        missing = self._missing.get(daemon, 0)
        missing = census.parts if missing is None else missing
        if missing:  # else no correct daemon says it
            self.parts.setdefault(daemon, []).append(census)
            self._missing[daemon] = missing - 1
        return not any(each is None or each for each in self._missing.values())

    def united(self) -> "tuple[Map, dict[str, list[tuple[Daemon, Listed]]]]":
        """The map of all, and what each daemon said of each group."""
        union = Map()
        told: dict[str, list[tuple[Daemon, Listed]]] = {}
        for daemon in sorted(self.parts):
            for part in self.parts[daemon]:
                _add_part(union, told, daemon, part)
        for group in union.groups.values():
            group.sort()
        return union, told


def _add_part(union: Map, told: dict[str, list[tuple[Daemon, Listed]]], daemon: Daemon, part: Census) -> None:
    for listed in part.groups:
        told.setdefault(listed.name, []).append((daemon, listed))
    for client, memberships in part.clients:
        if client not in union.clients:
            union.came(client, daemon)
        for number, joined, fresh in memberships:
            if number >= len(part.groups):
                continue  # no correct daemon says it, and all ignore it
            listed = part.groups[number]
            group = union.groups.get(listed.name) or Group(listed.name, vs=listed.vs)
            group.vs = group.vs or listed.vs
            if client not in group.members:
                union.join(client, group, joined, fresh=fresh)


def census_of(map_: Map, me: MemberId, most_bytes: int) -> list[Census]:
    """What a daemon says of its own clients, in as many parts as it takes."""
    chunks = list(_chunks(map_, me, most_bytes)) or [[]]
    return [_part(map_, me, chunk, number, len(chunks)) for number, chunk in enumerate(chunks, 1)]


Chunk = list[tuple[Client, list[tuple[Group, Position]]]]


def _chunks(map_: Map, me: MemberId, most_bytes: int) -> Iterator[Chunk]:
    chunk: Chunk = []
    size = count = 0
    for client, known in map_.clients.items():
        if known.daemon != me:
            continue
        chunk.append((client, []))
        size, count = size + _MEMBERSHIP, count + 1
        for name in known.groups:
            group = map_.groups[name]
            if size >= most_bytes or count >= MAX_CENSUS:
                yield chunk
                chunk, size, count = [(client, [])], 0, 1
            chunk[-1][1].append((group, group.members[client]))
            size, count = size + _MEMBERSHIP + len(name), count + 1
    if chunk:
        yield chunk


def _part(map_: Map, me: MemberId, chunk: Chunk, number: int, parts: int) -> Census:
    groups = list(dict.fromkeys(group.name for _, memberships in chunk for group, _ in memberships))
    numbers = {name: at for at, name in enumerate(groups)}
    clients = [
        (client, [(numbers[group.name], joined, client in group.fresh) for group, joined in memberships])
        for client, memberships in chunk
    ]
    return Census(number, parts, [_listed(map_.groups[name], me) for name in groups], clients)


def _listed(group: Group, me: MemberId) -> Listed:
    view = group.views.get(me) if group.vs else group.view
    return Listed(group.name, group.vs, view, group.size, group.changed, group.pending, me in group.flushed)


def same_view(group: Group, told: Sequence[tuple[Daemon, Listed]]) -> bool:
    """Whether all are in one view already, and it lacks nobody: then nobody need be told."""
    first = told[0][1]
    return (
        first.view is not None
        and first.size == len(group.members)
        and not group.fresh
        and all(
            each.view == first.view and each.size == first.size and not each.changed and not each.pending
            for _, each in told
        )
    )
