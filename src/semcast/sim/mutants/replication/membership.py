"""Replication servers that let in, keep or hear whom they should not."""

from collections.abc import Collection, Mapping

import msgspec

from semcast.core.ids import MemberId
from semcast.replication.actions import CHANGE
from semcast.replication.books import Books
from semcast.replication.exchanging import Exchanging
from semcast.replication.ids import Server, Weighted, servers_of
from semcast.replication.knowledge import (
    Prim,
    Vulnerable,
)
from semcast.replication.machine import Machine
from semcast.replication.making import Making
from semcast.replication.messages import Installed, State
from semcast.replication.plan import Planner, States
from semcast.replication.primaries import Primaries
from semcast.replication.states import State as Where


class _GuestForgets(Primaries):
    def record_of_attempt(self) -> Vulnerable | None:
        return None if self.guest else self.next


class GuestWithoutRecord(Machine):
    """A removed server takes part in an attempt and does not remember it."""

    primaries_kind = _GuestForgets


class _GuestsDoNotCount(Primaries):
    def awaited(self) -> Collection[Server]:
        assert self.next is not None
        return servers_of(self.next.servers)


class GuestNotAwaited(Machine):
    """A primary is installed before the guests have the attempt on their disks."""

    primaries_kind = _GuestsDoNotCount


class _GuestsToo(Primaries):
    def agreed(self) -> None:
        standing = self._standing
        if standing.state is Where.CONSTRUCT and self.guest:
            self.install()
            standing.state = Where.REG_PRIM
            standing.notes.phase(standing.state.value)
        else:
            super().agreed()


class GuestInstalls(Machine):
    """A removed server installs the primary that it is not in."""

    primaries_kind = _GuestsToo


class _StopsWhenAgreed(Primaries):
    def agreed(self) -> None:
        guest = self.guest and self._standing.server in self._books.members.removed
        super().agreed()
        if guest:
            self.stop()

    def on_installed(self, _sender: MemberId, _installed: Installed) -> None:
        pass


class GuestStopsEarly(Machine):
    """A removed server stops when everybody has agreed, before the primary is on a disk."""

    primaries_kind = _StopsWhenAgreed


class _NoFounders(Exchanging):
    def learn_founders(self, founders: Weighted) -> None:
        pass


class FoundersNotTold(Machine):
    """Who learns of the first primary from others does not learn who is in the group."""

    exchanging_kind = _NoFounders


class _BooksEditingBase(Books):
    def _mind(self, action: bytes, position: int) -> None:
        super()._mind(action, position)
        if action[0] == CHANGE and self.prim.index:
            self.prim = msgspec.structs.replace(self.prim, servers=self.members.weighted())


class QuorumBaseEditedOnLeave(Machine):
    """What is a quorum changes with the green action, not with an installation."""

    books_kind = _BooksEditingBase


class _EverybodyKnown(Planner):
    def known(self, states: States, top: State) -> dict[Server, State]:  # noqa: ARG002
        return dict(states)


class _EverybodyTakesPart(Exchanging):
    def participants(self, prim: Prim) -> Weighted:  # noqa: ARG002
        weights = self._books.members.weights
        return tuple((server, weights.get(server, 1)) for server in self._standing.counted)


class JoinerVotesWithoutState(Machine):
    """A store that nobody let in is in the next primary."""

    planner_kind = _EverybodyKnown
    exchanging_kind = _EverybodyTakesPart


class BehindServerVotes(Machine):
    """Servers that count as absent are counted for the quorum."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        assert self.exchange is not None
        return super().is_quorum(prim, {*here, *self.exchange.states})


class ForgetByQuorum(Machine):
    """After an operator gave up servers, a quorum of the rest is enough."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        return super().is_quorum(msgspec.structs.replace(prim, whole=False), here)


class _EstrangedCount(Planner):
    def kin(self, states: States, top: State) -> dict[Server, State]:  # noqa: ARG002
        return dict(states)


class _NeverStops(Exchanging):
    def stop_for(self, prim: Prim) -> bool:  # noqa: ARG002
        return False


class EstrangedTakesPart(Machine):
    """A server that follows an order which an operator gave up is one like any other."""

    planner_kind = _EstrangedCount
    exchanging_kind = _NeverStops


class RolledBackVotes(Machine):
    """A server whose disk is an old copy is one like any other."""

    def rolled_back(self, states: Mapping[Server, State]) -> Mapping[Server, str]:  # noqa: ARG002
        return {}


class _AcceptsEarly(Making):
    @property
    def accepts(self) -> bool:
        return self._standing.state in (Where.NON_PRIM, Where.REG_PRIM)


class WritesBeforeFounding(Machine):
    """A server that knows no primary takes requests."""

    making_kind = _AcceptsEarly
