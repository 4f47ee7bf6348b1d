"""Recovery, broken: members that go on together deliver the same of the old configuration.

That rests on obligation sets, on holes that are agreed, and on a transitional configuration.
"""

from semcast.core.events import TransitionalView
from semcast.protocols.ring import Ring
from semcast.protocols.ring.delivery import Change, DeliveryQueue
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.forming import Forming
from semcast.protocols.ring.frames import ConfRecord, Packet
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.recovery import Recovery
from semcast.protocols.ring.states import State
from semcast.sim.mutants.mutant import Mutant


class _RegularOnly(DeliveryQueue):
    def change(self, change: Change) -> None:
        if not isinstance(change, TransitionalView):
            super().change(change)


class _RegularOnlyHandover(Outlet):
    queue_kind = _RegularOnly


class _NoTransitionalConfiguration(Operation):
    outlet_kind = _RegularOnlyHandover


class NoTransitionalConfiguration(Ring):
    """Delivers what is left of the old configuration as if everybody got it."""

    operation_kind = _NoTransitionalConfiguration


class _Forgetful(Forming):
    def _give_up_recovery(self, record: ConfRecord) -> None:
        self._promised = False
        super()._give_up_recovery(record)


class _ObligationSetForgotten(Formation):
    forming_kind = _Forgetful


class ObligationSetForgotten(Ring):
    """A failure in the EVS state frees it of what it promised there."""

    formation_kind = _ObligationSetForgotten


class _Everything(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        regular, _ = super().split()
        order = self.order
        rest = range(order.delivered + len(regular) + 1, self.record.highest_seq + 1)
        return regular, [order.store[seq] for seq in rest if seq not in self.holes]


class _EverythingForming(Forming):
    recovery_kind = _Everything


class _DeliveredAfterAHole(Formation):
    forming_kind = _EverythingForming


class DeliveredAfterAHole(Ring):
    """Delivers messages of anybody after a hole, though they may depend on what is missing."""

    formation_kind = _DeliveredAfterAHole


class _ObligedOnly(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        regular, transitional = super().split()
        members = self.order.members
        obliged = set(self.record.obligation_set)
        return regular, [packet for packet in transitional if members[packet.sender] in obliged]


class _ObligedOnlyForming(Forming):
    recovery_kind = _ObligedOnly


class _DiscardedBeforeAHole(Formation):
    forming_kind = _ObligedOnlyForming


class DiscardedBeforeAHole(Ring):
    """Discards messages of others than the obligation set even where no hole precedes them (as printed)."""

    formation_kind = _DiscardedBeforeAHole


class _OwnHoles(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        self.holes = {seq for seq in self.holes if seq not in self.order.store}
        return super().split()


class _OwnHolesForming(Forming):
    recovery_kind = _OwnHoles


class _HolesNotAgreed(Formation):
    forming_kind = _OwnHolesForming


class HolesNotAgreed(Ring):
    """Takes for a hole what is missing here in the end, not what was agreed to be missing everywhere."""

    formation_kind = _HolesNotAgreed


class _Impatient(Outlet):
    def _withheld(self) -> bool:
        return self._standing.state is State.EVS


class _LatePacketsDelivered(Operation):
    outlet_kind = _Impatient


class LatePacketsDelivered(Ring):
    """Goes on delivering in Form, after it has said what it knows."""

    operation_kind = _LatePacketsDelivered


MUTANTS = {
    "no-transitional-configuration": Mutant(NoTransitionalConfiguration),
    "obligation-set-forgotten": Mutant(ObligationSetForgotten, by_chance=False),
    "delivered-after-a-hole": Mutant(DeliveredAfterAHole),
    "discarded-before-a-hole": Mutant(DiscardedBeforeAHole),
    "holes-not-agreed": Mutant(HolesNotAgreed, by_chance=False),
    "late-packets-delivered": Mutant(LatePacketsDelivered, by_chance=False),
}
