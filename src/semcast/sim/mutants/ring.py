"""The ring, broken on purpose: each mutant replaces one part, or one method of one part."""

from collections.abc import Sequence

from semcast.core.events import Delivery, TransitionalView
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import PurgingBuffer, obsoletes
from semcast.protocols.ring import Ring
from semcast.protocols.ring.backoff import FIRST, Backoff
from semcast.protocols.ring.delivery import Change, DeliveryQueue
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.forming import Forming
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    ConfRecord,
    Join,
    Packet,
    Piece,
    Presence,
    Token,
)
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.packing import Assembly
from semcast.protocols.ring.pieces import Puzzles
from semcast.protocols.ring.recovery import Recovery
from semcast.protocols.ring.rotation import Rotation
from semcast.protocols.ring.sending import Sending
from semcast.protocols.ring.states import State
from semcast.sim.mutants.contents import changed


class _HastyOrder(RingOrder):
    def release(self, aru: int) -> None:
        self._released_aru = aru
        super().release(aru)


class _SafeAfterOneRotation(Operation):
    order_kind = _HastyOrder


class SafeAfterOneRotation(Ring):
    """Takes the first `aru` it releases for confirmed."""

    operation_kind = _SafeAfterOneRotation


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


class ChangedPayload(Ring):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


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


class _OneBuffer(DeliveryQueue):
    def _append(self, buffer: PurgingBuffer, batches: Sequence[Batch]) -> None:
        super()._append(buffer, batches)
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer) and segment is not buffer:
                self._messages -= sum(_purge(segment, batch) for batch in batches)


class _OneBufferHandover(Outlet):
    queue_kind = _OneBuffer


class _PurgeAcrossConfigurations(Operation):
    outlet_kind = _OneBufferHandover


class PurgeAcrossConfigurations(Ring):
    """Purges a message for one of a later configuration."""

    operation_kind = _PurgeAcrossConfigurations


class _Boastful(RingOrder):
    def lower_aru(self, token: Token, seq: int, held_at: int) -> tuple[int, int]:
        aru, lowered_by = super().lower_aru(token, seq, held_at)
        return max(aru, min(self.my_aru, held_at)), lowered_by


class _AruRaisedTooEarly(Operation):
    order_kind = _Boastful


class AruRaisedTooEarly(Ring):
    """Raises `aru` to what it has itself, though it was somebody else who lowered it."""

    operation_kind = _AruRaisedTooEarly


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


class _Gullible(Rotation):
    def on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        self._passing.number = 0
        super().on_token(now, source, token)


class _OldTokenAccepted(Operation):
    rotation_kind = _Gullible


class OldTokenAccepted(Ring):
    """Does not look at the number of a token."""

    operation_kind = _OldTokenAccepted


class _ConfIdReused(Operation):
    def conf_id(self, number: int) -> ConfId:
        return ConfId(number, MemberId(self._member.me.name))


class ConfIdReused(Ring):
    """Names configurations without the incarnation of who formed them: a restart counts from the start."""

    operation_kind = _ConfIdReused


class _Anticipating(Rotation):
    def on_packets(self, now: Nanos, packets: Sequence[Packet]) -> None:
        super().on_packets(now, packets)
        queue = self._outlet.queue
        tail = queue._tail
        for packet in packets:
            if packet.seq > self.order.delivered and tail is not None:
                early = Assembly(self._settings.max_message)
                for batch in early.batches(self.order.members[packet.sender], packet.parts):
                    queue._messages -= _purge(tail, batch)


class _PurgeWithoutReplacement(Operation):
    rotation_kind = _Anticipating


class PurgeWithoutReplacement(Ring):
    """Purges for a message that has arrived but is not in the queue yet."""

    operation_kind = _PurgeWithoutReplacement


class _Impatient(Outlet):
    def _withheld(self) -> bool:
        return self._standing.state is State.EVS


class _LatePacketsDelivered(Operation):
    outlet_kind = _Impatient


class LatePacketsDelivered(Ring):
    """Goes on delivering in Form, after it has said what it knows."""

    operation_kind = _LatePacketsDelivered


class _GoesOn(Sending):
    def begin(self) -> None:
        self.last_sent = self.last_safe = 0


class _HalfSentGoesOn(Operation):
    sending_kind = _GoesOn


class HalfSentGoesOn(Ring):
    """Sends only the rest of a message that was cut off by a change of configuration."""

    operation_kind = _HalfSentGoesOn


class _Hoarding(Outlet):
    def begin(self, change: Change) -> None:
        kept = self._assembly
        super().begin(change)
        self._assembly = kept


class _FragmentsKept(Operation):
    outlet_kind = _Hoarding


class FragmentsKept(Ring):
    """Keeps fragments across a change of configuration: the message that begins again loses its head."""

    operation_kind = _FragmentsKept


class _AnyOrder(Forming):
    def _least_number(self) -> int:
        return 0


class _FormTokensInAnyOrder(Formation):
    forming_kind = _AnyOrder


class FormTokensInAnyOrder(Ring):
    """Follows a Form token though it has followed a later one since."""

    formation_kind = _FormTokensInAnyOrder


class _AnyConfiguration(Forming):
    def _still_in(self, conf: ConfId) -> bool:  # noqa: ARG002
        return True


class _FormTokenOfAnotherConfiguration(Formation):
    forming_kind = _AnyConfiguration


class FormTokenOfAnotherConfiguration(Ring):
    """Follows a Form token that lists it under a configuration it has left."""

    formation_kind = _FormTokenOfAnotherConfiguration


class _Lenient(Forming):
    def _to_blame(self, now: Nanos) -> list[MemberId]:  # noqa: ARG002
        return []

    def _take_stock(self, now: Nanos, old: Sequence[MemberId], new: Sequence[MemberId]) -> None:
        """Nor is anybody held off."""


class _NobodyFails(Formation):
    forming_kind = _Lenient


class NobodyFails(Ring):
    """Tries again with the same members when the Form token is lost."""

    formation_kind = _NobodyFails


class _PieceForWhole(Puzzles):
    def _complete(self, piece: Piece, pieces: dict[int, bytes]) -> bool:  # noqa: ARG002
        return True


class PieceTakenForTheWhole(Ring):
    """Does not wait for the other pieces of a frame."""

    puzzles_kind = _PieceForWhole


class _Mixed(Puzzles):
    def _belongs(self, piece: Piece, digest: bytes, count: int) -> bool:  # noqa: ARG002
        return piece.count == count

    def _genuine(self, data: bytes, digest: bytes) -> bool:  # noqa: ARG002
        return True


class PiecesMixed(Ring):
    """Puts pieces of two attempts together."""

    puzzles_kind = _Mixed


class _Unforgiving(Backoff):
    def _wait(self, count: int) -> Nanos:
        return FIRST << count


class _UnforgivingForming(Forming):
    backoff_kind = _Unforgiving


class _BackoffWithoutCap(Formation):
    forming_kind = _UnforgivingForming


class BackoffWithoutCap(Ring):
    """Holds off who keeps failing for longer and longer."""

    formation_kind = _BackoffWithoutCap


class _AnyTerms(Formation):
    def agrees(self, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:  # noqa: ARG002
        return True


class TermsIgnored(Ring):
    """Forms rings with members that have set something else."""

    formation_kind = _AnyTerms


def _purge(buffer: PurgingBuffer, batch: Batch) -> int:
    """Purge what a batch that is not in the buffer makes obsolete there; returns how many."""
    held = [message for entry in buffer for message in entry.messages()]
    victims = [old.id for new in batch.messages() for old in held if obsoletes(new, old)]
    return sum(buffer.discard(victim.sender, victim.seq) is not None for victim in victims)
