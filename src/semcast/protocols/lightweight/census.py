"""The census: each daemon says who its own clients are and where they are members.

It begins with a configuration in which somebody is new, or after one whose census was interrupted. All of it
is in the total order, so all daemons have it complete at the same position, or not at all.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Generic, TypeVar

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.groups import Daemon, Group, Map
from semcast.protocols.lightweight.ids import Epoch, Position
from semcast.protocols.lightweight.messages import Census, Client, Listed, Membership
from semcast.protocols.lightweight.settings import MAX_CENSUS

T = TypeVar("T")

_MEMBERSHIP = 12
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
            reader = _Reader(union, told, daemon)
            for part in self.parts[daemon]:
                reader.read(part)
        for group in union.groups.values():
            group.sort()
        return union, told


class _Reader:
    """Puts the parts of one daemon together, in order."""

    def __init__(self, union: Map, told: dict[str, list[tuple[Daemon, Listed]]], daemon: Daemon) -> None:
        self._union, self._told, self._daemon = union, told, daemon
        self._groups: list[Listed] = []
        self._epochs: list[Epoch] = []

    def read(self, part: Census) -> None:
        """The next part. What no correct daemon says is ignored, by all."""
        union, daemon = self._union, self._daemon
        self._groups += part.groups
        self._epochs += part.epochs
        for listed in part.groups:
            self._told.setdefault(listed.name, []).append((daemon, listed))
        for client, memberships in part.clients:
            if client not in union.clients:
                union.came(client, daemon)
            for number, epoch, index, fresh in memberships:
                if number < len(self._groups) and epoch < len(self._epochs):
                    joined = Position(self._epochs[epoch], index)
                    self._join(client, self._groups[number], joined, fresh=fresh)

    def _join(self, client: Client, listed: Listed, joined: Position, *, fresh: bool) -> None:
        group = self._union.groups.get(listed.name) or Group(listed.name, vs=listed.vs)
        group.vs = group.vs or listed.vs
        if client not in group.members:
            self._union.join(client, group, joined, fresh=fresh)


def census_of(map_: Map, me: MemberId, most_bytes: int) -> list[Census]:
    """What a daemon says of its own clients, in as many parts as it takes."""
    chunks = list(_chunks(map_, me, most_bytes)) or [[]]
    groups: _Numbers[str] = _Numbers()
    epochs: _Numbers[Epoch] = _Numbers()
    parts = []
    for number, chunk in enumerate(chunks, 1):
        clients = [
            (client, [_membership(client, *each, groups, epochs) for each in memberships])
            for client, memberships in chunk
        ]
        listed = [_listed(map_.groups[name], me) for name in groups.take_new()]
        parts.append(Census(number, len(chunks), listed, epochs.take_new(), clients))
    return parts


class _Numbers(Generic[T]):
    """Numbers for things, as they come up."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self._new: list[T] = []

    def of(self, thing: T) -> int:
        """The number of something."""
        if thing not in self._numbers:
            self._numbers[thing] = len(self._numbers)
            self._new.append(thing)
        return self._numbers[thing]

    def take_new(self) -> list[T]:
        """What has come up since the last call."""
        new, self._new = self._new, []
        return new


Chunk = list[tuple[Client, list[tuple[Group, Position]]]]


def _chunks(map_: Map, me: MemberId, most_bytes: int) -> Iterator[Chunk]:
    chunk: Chunk = []
    size = count = 0
    for client, known in map_.clients.items():
        if known.daemon != me:
            continue
        pieces: list[Group | None] = [None, *(map_.groups[name] for name in known.groups)]
        for group in pieces:
            if chunk and (size >= most_bytes or count >= MAX_CENSUS - 1):
                yield chunk
                chunk, size, count = [], 0, 0
            if not chunk or chunk[-1][0] != client:
                chunk.append((client, []))
            if group is not None:
                chunk[-1][1].append((group, group.members[client]))
            size, count = size + _MEMBERSHIP + len(group.name if group else client.name), count + 1
    if chunk:
        yield chunk


def _membership(
    client: Client, group: Group, joined: Position, groups: _Numbers[str], epochs: _Numbers[Epoch]
) -> Membership:
    return groups.of(group.name), epochs.of(joined.epoch), joined.index, client in group.fresh


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
