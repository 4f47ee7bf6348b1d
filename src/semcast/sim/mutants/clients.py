"""Daemons that break one rule of the client protocol each, and the property that must catch it."""

from typing import ClassVar

from semcast.protocols.clients.guests import Guest
from semcast.protocols.clients.host import Host
from semcast.protocols.clients.outlet import Outlet
from semcast.protocols.lightweight import Machine, Session
from semcast.protocols.lightweight.events import ClientEvent, Replaced
from semcast.protocols.lightweight.purging import Pass
from semcast.protocols.lightweight.requests import Requests
from semcast.sim.mutants.mutant import Mutant


class _AcrossViews(Pass):
    barriers: ClassVar[tuple[type, ...]] = ()


class _AcrossSession(Session):
    pass_kind: ClassVar[type[Pass]] = _AcrossViews


class _AcrossRequests(Requests):
    session_kind: ClassVar[type[Session]] = _AcrossSession


class PurgeAcrossLightweightViews(Machine):
    """A message replaces those of the view before."""

    requests_kind: ClassVar[type[Requests]] = _AcrossRequests


class _Silent(Pass):
    def _note(self, receipt: Replaced) -> None:
        """Nobody is told."""


class _SilentSession(Session):
    pass_kind: ClassVar[type[Pass]] = _Silent


class _SilentRequests(Requests):
    session_kind: ClassVar[type[Session]] = _SilentSession


class PurgedWithoutReceipts(Machine):
    """A slow client is not told what it missed."""

    requests_kind: ClassVar[type[Requests]] = _SilentRequests


class _Forgetful(Outlet):
    def again(self, told: int) -> list[ClientEvent] | None:
        found = super().again(told)
        return None if found is None else []


class ResumedWithoutTheRest(Host):
    """What was under way when a connection broke is not sent again."""

    outlet_kind: ClassVar[type[Outlet]] = _Forgetful


class _Repeating(Outlet):
    def again(self, told: int) -> list[ClientEvent] | None:
        everything = [event for event, _, _ in self._under_way if event is not None]
        return None if super().again(told) is None else everything


class ResumedFromTheLastTaken(Host):
    """What arrived, and was not said to be taken, is sent again."""

    outlet_kind: ClassVar[type[Outlet]] = _Repeating


class _Staying(Guest):
    def leaves(self, group: str) -> None:
        """Only what it is told counts."""


class ViewNamedAfterLeave(Host):
    """Who asked to leave a `vs` group names its view until it is told that it has left."""

    guest_kind: ClassVar[type[Guest]] = _Staying


MUTANTS: dict[str, Mutant] = {
    "purge-across-lightweight-views": Mutant(daemon=PurgeAcrossLightweightViews),
    "purged-without-receipts": Mutant(daemon=PurgedWithoutReceipts),
    "resumed-without-the-rest": Mutant(host=ResumedWithoutTheRest),
    "resumed-from-the-last-taken": Mutant(host=ResumedFromTheLastTaken),
    "view-named-after-leave": Mutant(host=ViewNamedAfterLeave),
}
