"""Broken policies of causal domains: epochs and blocks, each without one of its rules."""

from collections.abc import Iterable

from semcast.protocols.isis.blocks import Blocks
from semcast.protocols.isis.epochs import Epochs
from semcast.protocols.isis.frames import Marker
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.stamps import Audience, Time
from semcast.protocols.vsync.stream import ViewStream
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants.mutant import Mutant


class _LastMessage(Epochs):
    _last = ""

    def delivered(self, ticket: Ticket) -> None:
        super().delivered(ticket)
        seat = ticket.order.seat
        if ticket.rank != ticket.order.lines.rank:
            self._last = seat.name

    def unsafe(self, seat: Audience) -> bool:
        return self._last not in ("", seat.name)


class EpochByLastMessage(DomainProcess):
    """6.7 as printed: only the group of the last message that was received counts."""

    epochs_kind = _LastMessage


class _OwnGroup(Epochs):
    def asked(self, own: Seat | None) -> Iterable[Seat]:
        return () if own is None else (own,)


class EpochOfOwnGroupOnly(DomainProcess):
    """Marks are waited for in the group of the message, and not in the others."""

    epochs_kind = _OwnGroup


class _Countless(Epochs):
    def _marker(self, stream: ViewStream) -> Marker:
        return Marker(stream.view().id, 0, self.epoch)


class MarkerWithoutCount(DomainProcess):
    """A marker overtakes the messages that its sender sent before it."""

    epochs_kind = _Countless


class _Unmoved(Epochs):
    def left(self, seat: Seat) -> None:
        self._since.discard(seat.name)


class LeaverKeepsItsEpoch(DomainProcess):
    """Who has left a group, and sends in another one, is a way round that nobody sees."""

    epochs_kind = _Unmoved


class _OwnTimes(Blocks):
    def _times(self, seat: Audience) -> list[tuple[str, Time]]:
        return self._own_times(seat)


class AcyclicRuleWithCycles(DomainProcess):
    """Lemma 3 where groups are in a cycle: times of own groups only."""

    blocks_kind = _OwnTimes


class _Ungated(Blocks):
    def lets_through(self, ticket: AnyTicket, line: Iterable[AnyTicket]) -> bool:  # noqa: ARG002
        return True


class JoinerForgetsWhatWasSaid(DomainProcess):
    """Lemma 3 for joiners: what was said in the group before does not hold for them."""

    blocks_kind = _Ungated


POLICY_MUTANTS: dict[str, Mutant] = {
    "epoch-by-last-message": Mutant(EpochByLastMessage, by_chance=False),
    "epoch-of-own-group-only": Mutant(EpochOfOwnGroupOnly, by_chance=False),
    "marker-without-count": Mutant(MarkerWithoutCount, by_chance=False),
    "leaver-keeps-its-epoch": Mutant(LeaverKeepsItsEpoch, by_chance=False),
    "acyclic-rule-with-cycles": Mutant(AcyclicRuleWithCycles, by_chance=False),
    "joiner-forgets-what-was-said": Mutant(JoinerForgetsWhatWasSaid, by_chance=False),
}
