"""Lightweight groups over the deliveries of the daemons' ring (Amir 1995, 5.1).

Every daemon handles the same operations in the same order, so all have the same map of clients and groups;
nothing else changes it. Each tells its local clients, and nobody else.

Deviations and the reasons for them: docs/protocols/lightweight.md.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, cast

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.lightweight.census import Gathering, census_of, same_view
from semcast.protocols.lightweight.delivering import Delivering
from semcast.protocols.lightweight.events import (
    Cause,
    Placed,
)
from semcast.protocols.lightweight.groups import Daemon, Group, Map
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.protocols.lightweight.messages import (
    Came,
    Cast,
    Census,
    Client,
    Flushed,
    Gone,
    Join,
    Leave,
    Listed,
    Operation,
    Private,
    body_of,
    decode,
    encode,
    tag_of,
)
from semcast.protocols.lightweight.notes import Notes
from semcast.protocols.lightweight.placing import Placing
from semcast.protocols.lightweight.requests import Requests
from semcast.protocols.lightweight.sessions import Session
from semcast.protocols.lightweight.settings import MAX_CLIENTS, MAX_MEMBERSHIPS, LightweightSettings
from semcast.protocols.lightweight.telling import Delta, Teller

Told = Mapping[str, list[tuple[Daemon, Listed]]]
"""What each daemon said of each group in a census."""


class Machine:
    """One daemon.

    Args:
        me: who it is on the ring.
        settings: of the daemon.
        out: where the rows for the history go.
    """

    requests_kind: ClassVar[type[Requests]] = Requests
    placing_kind: ClassVar[type[Placing]] = Placing
    delivering_kind: ClassVar[type[Delivering]] = Delivering

    def __init__(self, me: MemberId, settings: LightweightSettings, out: Outbox) -> None:
        self.me = me
        self.settings = settings
        self.now: Nanos = 0
        """Set by whoever drives it, before anything else."""
        self.stats = Statistics()
        self.notes = Notes(out, wanted=settings.notes)
        self.requests = self.requests_kind(me, settings, self.notes, self._local_ready)
        self.placing = self.placing_kind()
        self.delivering = self.delivering_kind(self.requests.sessions, self.notes, self.stats)
        self.map = Map()
        self.members: frozenset[Daemon] = frozenset()
        """The daemons of the configuration."""
        self.epoch: Epoch | None = None
        """The configuration, or the rest of it."""
        self.together: frozenset[Daemon] | None = None
        """Behind a transitional event: who goes on with this daemon."""
        self.census: Gathering | None = None
        """As long as the map is not agreed on."""
        self.censuses = 0
        """Those that were completed."""
        self.census_time: Nanos = 0
        """How long they took."""
        self._census_since: Nanos = 0
        self.parts: list[bytes] = []
        """Of the own census, which the ring was not given yet."""
        self.tag = b""
        """Of the generation: what operations must begin with to count."""
        self._conf_tag = b""
        self._teller = Teller(self.notes, self.stats)
        self._index = 0  # of the last position
        self._changes = 0  # of all groups, in this configuration
        self._warned: dict[str, set[Client]] = {}  # who was told in this rest that a group is torn
        self._said: dict[str, ViewId] = {}  # the last view of a group that was flushed here

    # From the ring

    def on_transitional(self, together: Iterable[Daemon]) -> None:
        """What comes now is the rest that these daemons deliver of the configuration."""
        assert self.epoch is not None
        self.together = frozenset(together)
        self._warned.clear()
        self.epoch = Epoch(self.epoch.number, True, min(self.together))
        self.notes.configuration(self.epoch, self.together)
        for name in sorted(self.map.groups):
            group = self.map.groups[name]
            group.kept &= self.together
            self._look_for_tears(group)

    def _look_for_tears(self, group: Group) -> None:
        """In a rest: if some members are out of reach, the others are told, once, behind their first view."""
        if self.together is not None and group.torn(self.together):
            group.changed = True
            self._warn(group, self.together)

    def _warn(self, group: Group, together: frozenset[Daemon]) -> None:
        known = self.map.clients
        there = tuple(client for client in group.members if known[client].daemon in together)
        warned = self._warned.setdefault(group.name, set())
        self._teller.transitional(group, there, warned)

    def on_configuration(self, number: int, representative: MemberId, members: Collection[Daemon]) -> None:
        """A new configuration. Without a transitional event all who are in both come together."""
        first, interrupted = self.epoch is None, self.census is not None
        together = self.together if self.together is not None else self.members.intersection(members)
        self.placing.changed()
        self._tell_placed(together)
        self.epoch = Epoch(number, False, representative)
        self._conf_tag = tag_of(self.epoch)
        self.members, self.together = frozenset(members), None
        self._index = self._changes = 0
        self.notes.configuration(self.epoch, self.members)
        self.parts.clear()
        if first and self.members == {self.me}:
            self.tag = self._conf_tag
        elif self.members == together and not interrupted:
            self._lose(together)
        else:
            self._begin_census()

    def on_message(self, source: Daemon, payload: bytes) -> None:
        """The next message in the order of the ring."""
        own = source == self.me
        self.placing.own += own
        self._index += 1
        body = body_of(payload)
        message = decode(body)
        if message is None:
            self.stats.malformed += 1
        elif isinstance(message, Census):
            if self.census is not None and self._concerns(payload) and self.census.add(source, message):
                self._complete(self.census)
        elif self._void(payload):
            self.stats.stale += 1
            if own:
                self.requests.again(bytes(body), safe=isinstance(message, Cast) and message.safe)
        else:
            self._handle(source, message)

    def _concerns(self, payload: bytes) -> bool:
        """Whether a census is about this configuration."""
        return payload.startswith(self._conf_tag)

    def _void(self, payload: bytes) -> bool:
        """Whether all ignore an operation: the map that it was meant for is not the one they have."""
        return self.census is not None or not payload.startswith(self.tag)

    def on_safe(self, upto: int) -> None:
        """All daemons have the first so many messages that this one handed to the ring."""
        self.placing.safe(upto)
        self._tell_placed(self.members if self.together is None else self.together)

    # Operations

    def _handle(self, source: Daemon, message: Operation) -> None:
        assert self.epoch is not None
        position = Position(self.epoch, self._index)
        if type(message) is Cast:
            self._index += len(message.payloads) - 1
        if isinstance(message, Flushed):
            self._on_flushed(source, message)
            return
        if isinstance(message, Came):
            self._on_came(source, message, position)
        elif self._knows(message.client, source):
            _HANDLERS[type(message)](self, message, position)
        else:
            self.stats.stale += 1
        if source != self.me:
            return
        if isinstance(message, Gone):
            self.requests.forget(message.client)
        elif not isinstance(message, Came):
            last = message.seq + (len(message.payloads) if isinstance(message, Cast) else 1) - 1
            self.placing.handled(message.client, last)
            self._tell_placed(self.members if self.together is None else self.together)

    def _knows(self, client: Client, source: Daemon) -> bool:
        known = self.map.clients.get(client)
        return known is not None and known.daemon == source

    def _on_came(self, source: Daemon, came: Came, position: Position) -> None:
        if came.client not in self.map.clients and self.map.numbers.get(source, 0) < MAX_CLIENTS:
            self.map.came(came.client, source)
            self.notes.ordered(position, came.client, "came")

    def _on_gone(self, gone: Gone, position: Position) -> None:
        self.notes.ordered(position, gone.client, "gone")
        known = self.map.gone(gone.client)
        for name in sorted(known.groups):
            self._remove(gone.client, known.daemon, self.map.groups[name], Cause.GONE)

    def _on_join(self, join: Join, position: Position) -> None:
        client = join.client
        self.notes.ordered(position, client, "join", join.seq, 1, (join.group,))
        group = self.map.groups.get(join.group) or Group(join.group, vs=join.vs)
        if client in group.members or len(self.map.clients[client].groups) >= MAX_MEMBERSHIPS:
            return
        self.map.join(client, group, position, fresh=group.vs)
        session = self.requests.sessions.get(client)
        if session is not None:
            group.local[client] = session
        self._changed(group, Cause.JOIN, Delta(joined=(client,)))
        self._look_for_tears(group)

    def _on_leave(self, leave: Leave, position: Position) -> None:
        self.notes.ordered(position, leave.client, "leave", leave.seq, 1, (leave.group,))
        known = self.map.clients[leave.client]
        if leave.group not in known.groups:
            return
        del known.groups[leave.group]
        self._remove(leave.client, known.daemon, self.map.groups[leave.group], Cause.LEAVE)

    def _remove(self, client: Client, daemon: Daemon, group: Group, cause: Cause) -> None:
        session = group.local.get(client)
        if session is not None:
            self._teller.left(session, group.name)
        group.remove(client, daemon)
        group.departed.add(client)
        self._warned.get(group.name, set()).discard(client)
        if group.members:
            self._changed(group, cause, Delta(left=(client,)))
        else:
            self._delete(group)

    def _delete(self, group: Group) -> None:
        del self.map.groups[group.name]
        self._said.pop(group.name, None)

    # Views

    def _changed(self, group: Group, cause: Cause, delta: Delta) -> None:
        """The members of a group changed: that is a new view, at once or when all have flushed."""
        if not group.vs:
            self._install(group, cause, delta)
            return
        group.pending = True
        self._block(group)
        self._try_install(group)

    def _install(self, group: Group, cause: Cause, delta: Delta | None = None) -> None:
        view = self._next_view(group)
        together = self.members if self.together is None else self.together
        self._teller.view(group, view, cause, delta, self.map)
        group.installed(view, together)

    def _next_view(self, group: Group) -> ViewId:  # noqa: ARG002 (the number is one for all groups)
        assert self.epoch is not None
        self._changes += 1
        return ViewId(self.epoch, self._changes)

    # Sending view delivery

    def _block(self, group: Group) -> None:
        """The view ends: local members send nothing more in it, and say so."""
        if group.view is not None:
            self._teller.block(group, group.view, self.now)
        self._maybe_flushed(group)

    def _local_ready(self, name: str) -> None:
        group = self.map.groups.get(name)
        if group is not None:
            self._maybe_flushed(group)

    def _maybe_flushed(self, group: Group) -> None:
        """Say so once all local members did, behind all that they sent."""
        if not group.pending or self.census is not None or self.me not in group.views:
            return
        view, fresh = group.views[self.me], group.fresh
        if self._said.get(group.name) != view and all(
            session.flushed.get(group.name) == view
            for client, session in group.local.items()
            if client not in fresh
        ):
            self._said[group.name] = view
            self._say_flushed(Flushed(group.name, view))

    def _say_flushed(self, flushed: Flushed) -> None:
        self.requests.say(flushed)

    def _on_flushed(self, source: Daemon, flushed: Flushed) -> None:
        group = self.map.groups.get(flushed.group)
        if group is not None and group.pending and group.views.get(source) == flushed.view:
            group.flushed.add(source)
            self._try_install(group)

    def _try_install(self, group: Group) -> None:
        """Nothing is installed in a rest: another part would not know of it."""
        if group.pending and self.census is None and self.together is None and not group.awaits_flush():
            self._install(group, Cause.FLUSH)

    # Changes of configuration

    def _lose(self, together: frozenset[Daemon]) -> None:
        """Daemons are out of reach, and nobody is new: all know what that takes from each group."""
        gone = [daemon for daemon in self.map.numbers if daemon not in together]
        lost = self.map.lose(gone)
        for name in sorted(self.map.groups):
            group = self.map.groups[name]
            if not group.members:
                self._delete(group)
            elif name in lost or group.changed:
                self._changed(group, Cause.CONFIGURATION, Delta(failed=tuple(lost.get(name, ()))))
            else:
                self._try_install(group)
        self.requests.resume()

    def _begin_census(self) -> None:
        self.census = Gathering(self.members)
        self._census_since = self.now
        parts = census_of(self.map, self.me, self.settings.census_bytes)
        self.parts = [self._conf_tag + encode(part) for part in parts]

    def _complete(self, census: Gathering) -> None:
        """The last part of the last census: the map is agreed on again."""
        before = self.map
        self.map, told = census.united()
        self.census, self.tag = None, self._conf_tag
        self.censuses += 1
        self.census_time += self.now - self._census_since
        for client, session in self.requests.sessions.items():
            known = self.map.clients.get(client)
            for name in () if known is None else known.groups:
                self.map.groups[name].local[client] = session
        for name in sorted(self.map.groups):
            self._merge(self.map.groups[name], before.groups.get(name), told)
        self.requests.resume()
        for group in self.map.groups.values():
            self._maybe_flushed(group)

    def _merge(self, group: Group, before: Group | None, told: Told) -> None:
        """One group, as the union of what all said; one view at most."""
        said = told[group.name]
        self._inherit(group, before, said)
        if same_view(group, said):
            group.view, group.size = said[0][1].view, said[0][1].size
            group.kept = group.kept or frozenset((self.me,))
        else:
            there = () if before is None else before.members
            joined = tuple(client for client in group.members if client not in there)
            failed = tuple(client for client in there if client not in group.members)
            self._changed(group, Cause.CONFIGURATION, Delta(joined=joined, failed=failed))
        self._look_for_tears(group)

    def _inherit(self, group: Group, before: Group | None, said: list[tuple[Daemon, Listed]]) -> None:
        if before is not None:
            group.view, group.size, group.kept = before.view, before.size, before.kept
            group.listed, group.departed = before.listed, before.departed
        for daemon, listed in said:
            group.pending = group.pending or listed.pending
            if listed.view is not None and daemon in group.settled:
                group.views[daemon] = listed.view
                if self._heeds_flush(listed):
                    group.flushed.add(daemon)

    def _heeds_flush(self, listed: Listed) -> bool:
        return listed.flushed

    # Clients

    def _tell_placed(self, have: Collection[Daemon]) -> None:
        for client, upto in self.placing.due().items():
            session = self.requests.sessions.get(client)
            if session is not None and not session.closed:
                session.put(Placed(upto))
                self.notes.placed(client, upto, have)

    def tend(self) -> Nanos | None:
        """Put out who is too slow or does not answer; returns when to look again, if that is known."""
        due = self._look_at_queues()
        soonest = self._teller.longest_blocked()
        while soonest is not None and soonest[0] + self.settings.flush_timeout <= self.now:
            self._give_up_on(soonest[1])
            soonest = self._teller.longest_blocked()
        flush = None if soonest is None else soonest[0] + self.settings.flush_timeout
        return min((at for at in (due, flush) if at is not None), default=None)

    def _look_at_queues(self) -> Nanos | None:
        """Relieve those who have too much to take, or put them out; returns when to look again."""
        requests, dues = self.requests, []
        overfull, requests.overfull[:] = list(requests.overfull), []
        for session in overfull:
            due = session.relieve(self.now)
            if due is None:
                continue
            if due <= self.now:
                requests.put_out(session, "it does not take what it is told")
            else:
                requests.overfull.append(session)
                dues.append(due)
        return min(dues, default=None)

    def _give_up_on(self, session: Session) -> None:
        self.requests.put_out(session, "it does not answer at the end of a view")


_HANDLERS: dict[type, Callable[[Machine, Operation, Position], None]] = cast(
    "dict[type, Callable[[Machine, Operation, Position], None]]",
    {
        Gone: lambda machine, message, position: machine._on_gone(message, position),
        Join: lambda machine, message, position: machine._on_join(message, position),
        Leave: lambda machine, message, position: machine._on_leave(message, position),
        Cast: lambda machine, message, position: machine.delivering.cast(machine.map, message, position),
        Private: lambda machine, message, position: machine.delivering.private(
            machine.map, message, position
        ),
    },
)
