"""Broken daemons of lightweight groups: one rule each, and the property that must catch it."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.lightweight import LightweightSettings, Machine, Session
from semcast.protocols.lightweight.census import Gathering, same_view
from semcast.protocols.lightweight.delivering import Delivering
from semcast.protocols.lightweight.events import Cause, Delivered, Placed
from semcast.protocols.lightweight.groups import Daemon, Group, Map
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.protocols.lightweight.machine import Told
from semcast.protocols.lightweight.messages import (
    Cast,
    Census,
    Client,
    Flushed,
    Gone,
    Leave,
    Listed,
    Operation,
    body_of,
    decode,
    encode,
)
from semcast.protocols.lightweight.placing import Placing
from semcast.protocols.lightweight.requests import Requests
from semcast.protocols.lightweight.telling import Delta
from semcast.sim.mutants.mutant import Mutant


class _Attached(Requests):
    """Requests that know their machine."""

    machine: Machine


class _WithMachine(Machine):
    def __init__(self, me: MemberId, settings: LightweightSettings, out: Outbox) -> None:
        super().__init__(me, settings, out)
        assert isinstance(self.requests, _Attached)
        self.requests.machine = self


# Order


class _JoinsAtOnce(_Attached):
    def join(self, session: Session, group: str, *, vs: bool = False) -> int:
        seq = super().join(session, group, vs=vs)
        machine = self.machine
        found = machine.map.groups.get(group)
        if found is not None and machine.epoch and session.client in machine.map.clients and not found.vs:
            machine.map.join(session.client, found, Position(machine.epoch, seq), fresh=False)
            found.local[session.client] = session
            machine._changed(found, Cause.JOIN, Delta(joined=(session.client,)))
        return seq


class JoinAtRequest(_WithMachine):
    """Who joins is told of the members when it asks, not at the position of its join."""

    requests_kind: ClassVar[type[Requests]] = _JoinsAtOnce


class OperationsUntagged(Machine):
    """What was handed over before a change is done after the census, whatever it was meant for."""

    def __init__(self, me: MemberId, settings: LightweightSettings, out: Outbox) -> None:
        super().__init__(me, settings, out)
        self._kept: list[tuple[Daemon, Operation]] = []

    def _void(self, payload: bytes) -> bool:  # noqa: ARG002
        return False

    def on_message(self, source: Daemon, payload: bytes) -> None:
        message = decode(body_of(payload))
        if self.census is None or message is None or isinstance(message, Census):
            super().on_message(source, payload)
        else:
            self.placing.own += source == self.me
            self._index += 1
            self._kept.append((source, message))

    def _complete(self, census: Gathering) -> None:
        super()._complete(census)
        kept, self._kept = self._kept, []
        for source, message in kept:
            self._index += 1
            self._handle(source, message)


class VoidForgotten(Machine):
    """What was void is not handed over again."""

    def on_message(self, source: Daemon, payload: bytes) -> None:
        super().on_message(source, payload)
        self.requests._again.clear()


class _OncePerGroup(Delivering):
    def cast(self, map_: Map, cast_: Cast, position: Position) -> None:
        super().cast(map_, cast_, position)
        for client, session in self.receivers(map_, cast_).items():
            views = self.views_of(map_, client, cast_)
            for _ in list(views)[1:]:
                self._notes.delivered(client, cast_, position, views)
                session.put(Delivered(client, cast_.seq, cast_.groups, position, cast_.payloads, 0))


class DeliveredOncePerGroup(Machine):
    """Who is in several groups of a message is given it once for each."""

    delivering_kind: ClassVar[type[Delivering]] = _OncePerGroup


class _Stamped(_Attached):
    def _ask(self, session: Session, operation: Operation, count: int, *, safe: bool = False) -> None:
        if isinstance(operation, Cast) and len(operation.groups) == 1:
            group = self.machine.map.groups.get(operation.groups[0])
            if group is not None and session.client not in group.members:
                operation = msgspec.structs.replace(operation, view=group.view)
        super()._ask(session, operation, count, safe=safe)


class _ToThoseOfTheView(Delivering):
    def members_here(self, map_: Map, name: str, cast_: Cast) -> dict[Client, Session]:
        group = map_.groups.get(name)
        if group is not None and cast_.view is not None and group.view != cast_.view:
            return {}
        return super().members_here(map_, name, cast_)


class OpenInTheSendersView(_WithMachine):
    """A message from outside is for those who were in the group when it was sent."""

    requests_kind: ClassVar[type[Requests]] = _Stamped
    delivering_kind: ClassVar[type[Delivering]] = _ToThoseOfTheView


class _ByName(Delivering):
    def addressee(self, map_: Map, to: Client) -> Client | None:
        if to in map_.clients:
            return to
        return next((client for client in map_.clients if client.name == to.name), None)


class PrivateToTheNextSession(Machine):
    """A private message is for whoever has the name now."""

    delivering_kind: ClassVar[type[Delivering]] = _ByName


# Views


class IndexPerGroup(Machine):
    """Views are numbered for each group, from 1 where it is made anew."""

    def __init__(self, me: MemberId, settings: LightweightSettings, out: Outbox) -> None:
        super().__init__(me, settings, out)
        self._numbers: dict[tuple[Epoch, str], int] = {}

    def _next_view(self, group: Group) -> ViewId:
        assert self.epoch is not None
        key = self.epoch, group.name
        self._numbers[key] = self._numbers.get(key, 0) + 1
        return ViewId(self.epoch, self._numbers[key])

    def _delete(self, group: Group) -> None:
        super()._delete(group)
        assert self.epoch is not None
        self._numbers.pop((self.epoch, group.name), None)


class IdsOfTheOldConfiguration(Machine):
    """Views of a rest are named as if everybody saw them."""

    _regular: Epoch | None = None

    def on_transitional(self, together: Iterable[Daemon]) -> None:
        self._regular = self.epoch
        super().on_transitional(together)

    def _next_view(self, group: Group) -> ViewId:
        view = super()._next_view(group)
        return view if self._regular is None or not view.epoch.rest else ViewId(self._regular, view.change)


class MergeOneByOne(Machine):
    """The members of each daemon come in a view of their own."""

    def _merge(self, group: Group, before: Group | None, told: Told) -> None:
        keeps = same_view(group, told[group.name])
        super()._merge(group, before, told)
        if not group.vs and not keeps:
            for _ in group.numbers:
                self._install(group, Cause.CONFIGURATION, Delta())


class NoTransitionalForChanged(Machine):
    """Nobody is told that members may be lost."""

    def _warn(self, group: Group, together: frozenset[Daemon]) -> None:
        pass


# Census


class CensusWithoutConfiguration(Machine):
    """What daemons said in a census that was interrupted counts for the next one."""

    def _begin_census(self) -> None:
        before = self.census
        super()._begin_census()
        if before is not None and self.census is not None:
            for daemon, parts in before.parts.items():
                for part in parts:
                    self.census.add(daemon, part)
                self.census.parts[daemon] = parts

    def _concerns(self, payload: bytes) -> bool:  # noqa: ARG002
        return True


class CensusWithoutFlush(Machine):
    """Who has flushed is forgotten at a merge."""

    def _heeds_flush(self, listed: Listed) -> bool:  # noqa: ARG002
        return False


class GoneForgotten(Machine):
    """A client that is gone stays in its groups."""

    def _on_gone(self, gone: Gone, position: Position) -> None:
        self.notes.ordered(position, gone.client, "gone")


# Sending view delivery


class _ReadyAtOnce(_Attached):
    def ready(self, session: Session, group: str, view: ViewId) -> None:
        super().ready(session, group, view)
        if session.ready.get(group) == view:
            session.flushed[group] = view
            self._flushed(group)


class FlushedBeforeTheLastSend(_WithMachine):
    """A daemon says that its clients are done while their messages wait."""

    requests_kind: ClassVar[type[Requests]] = _ReadyAtOnce

    def _say_flushed(self, flushed: Flushed) -> None:
        self.requests.sends.appendleft((encode(flushed), False))


class _AlsoWhoWasApart(Delivering):
    def in_sending_view(self, map_: Map, group: Group, cast_: Cast) -> bool:  # noqa: ARG002
        return group.view == cast_.view


class WhoeverIsInTheView(Machine):
    """A message goes to all in its view, also to those who were apart in between."""

    delivering_kind: ClassVar[type[Delivering]] = _AlsoWhoWasApart


class MuteNeverGone(Machine):
    """Who does not answer at the end of a view is waited for, for ever."""

    def _give_up_on(self, session: Session) -> None:
        session.blocked = {group: (view, 1 << 62) for group, (view, _) in session.blocked.items()}


# What clients may rely on


class _SettledAtOnce(_Attached):
    def _ask(self, session: Session, operation: Operation, count: int, *, safe: bool = False) -> None:
        super()._ask(session, operation, count, safe=safe)
        if count:
            session.put(Placed(session.last))
            self.machine.notes.placed(session.client, session.last, self.machine.members)


class SettledWhenAccepted(_WithMachine):
    """A request is called placed when it is taken."""

    requests_kind: ClassVar[type[Requests]] = _SettledAtOnce


class _Hasty(Placing):
    def handled(self, client: Client, seq: int) -> None:
        super().handled(client, seq)
        self.safe(self.own)


class PlacedWhenOrdered(Machine):
    """A request is called placed when this daemon has done it, whether others have it or not."""

    placing_kind: ClassVar[type[Placing]] = _Hasty


class _OutOfOne(Requests):
    def put_out(self, session: Session, cause: str) -> None:
        if session.closed or len(session.asked) < 2:
            super().put_out(session, cause)
            return
        self._notes.session(session.client, "out")
        group = min(session.asked)
        session.asked.discard(group)
        session.blocked.clear()
        session.last += 1
        self._ask(session, Leave(session.client, session.last, group), 1)


class PutOutOfOneGroupOnly(Machine):
    """Who is too slow is out of one group, and goes on in the others as if nothing had happened."""

    requests_kind: ClassVar[type[Requests]] = _OutOfOne


MUTANTS: dict[str, Mutant] = {
    "put-out-of-one-group-only": Mutant(daemon=PutOutOfOneGroupOnly),
    "join-at-request": Mutant(daemon=JoinAtRequest),
    "census-without-configuration": Mutant(daemon=CensusWithoutConfiguration, by_chance=False),
    "operations-untagged": Mutant(daemon=OperationsUntagged),
    "index-per-group": Mutant(daemon=IndexPerGroup),
    "merge-one-by-one": Mutant(daemon=MergeOneByOne),
    "no-transitional-for-changed": Mutant(daemon=NoTransitionalForChanged),
    "open-in-the-senders-view": Mutant(daemon=OpenInTheSendersView),
    "private-to-the-next-session": Mutant(daemon=PrivateToTheNextSession),
    "flushed-before-the-last-send": Mutant(daemon=FlushedBeforeTheLastSend),
    "delivered-once-per-group": Mutant(daemon=DeliveredOncePerGroup),
    "settled-when-accepted": Mutant(daemon=SettledWhenAccepted),
    "gone-forgotten": Mutant(daemon=GoneForgotten),
    "ids-of-the-old-configuration": Mutant(daemon=IdsOfTheOldConfiguration, by_chance=False),
    "census-without-flush": Mutant(daemon=CensusWithoutFlush),
    "whoever-is-in-the-view": Mutant(daemon=WhoeverIsInTheView, by_chance=False),
    "mute-never-gone": Mutant(daemon=MuteNeverGone),
    "placed-when-ordered": Mutant(daemon=PlacedWhenOrdered),
    "void-forgotten": Mutant(daemon=VoidForgotten),
}
