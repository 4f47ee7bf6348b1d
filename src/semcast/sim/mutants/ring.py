"""The ring, broken on purpose: each mutant replaces one part, or one method of one part."""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.events import Delivery, Merged, TransitionalView, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.obsolescence import PurgingBuffer, obsoletes
from semcast.protocols.backoff import FIRST, Backoff
from semcast.protocols.pieces import Piece
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.ring.backlog import Backlog
from semcast.protocols.ring.confirming import Answers
from semcast.protocols.ring.delivery import Change, DeliveryQueue
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.forming import Forming
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    ConfRecord,
    FormToken,
    Join,
    NameTaken,
    Packet,
    Presence,
    Token,
)
from semcast.protocols.ring.leaving import Leaving
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


class _ConfirmedWhenSent(Answers):
    def settle(self, order: RingOrder, view: View) -> None:
        self._sent.settle(view, delivered=self._sent.last, safe=order.confirmed_aru)


class _ConfirmedWhenSentSending(Sending):
    answers_kind = _ConfirmedWhenSent


class _ConfirmedWhenSentOperation(Operation):
    sending_kind = _ConfirmedWhenSentSending


class ConfirmedWhenSent(Ring):
    """Says that a message is delivered as soon as it has left, whatever is missing before it."""

    operation_kind = _ConfirmedWhenSentOperation


class _SafeWhenDelivered(Answers):
    def settle(self, order: RingOrder, view: View) -> None:
        delivered = order.in_order(self._sent.last)
        self._sent.settle(view, delivered=delivered, safe=delivered)


class _SafeWhenDeliveredSending(Sending):
    answers_kind = _SafeWhenDelivered


class _SafeWhenDeliveredOperation(Operation):
    sending_kind = _SafeWhenDeliveredSending


class SafeWhenDelivered(Ring):
    """Says that all have a message as soon as it is delivered here."""

    operation_kind = _SafeWhenDeliveredOperation


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


class _AnyName(Formation):
    def admits(self, now: Nanos, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:  # noqa: ARG002
        return True


class NamesakesLetIn(Ring):
    """Lets newcomers in that have the name of a living member."""

    formation_kind = _AnyName


class _Obedient(Formation):
    def on_name_taken(self, now: Nanos, source: MemberId, frame: NameTaken) -> None:  # noqa: ARG002
        if frame.lives:
            self._operation.leaving.refuse("its name is taken", self._operation.order)


class NamesakesPutOut(Ring):
    """Two sides of a partition that have somebody of one name put each other out when they meet."""

    formation_kind = _Obedient


def _purge(buffer: PurgingBuffer, batch: Batch) -> int:
    """Purge what a batch that is not in the buffer makes obsolete there; returns how many."""
    held = [message for entry in buffer for message in entry.messages()]
    victims = [old.id for new in batch.messages() for old in held if obsoletes(new, old)]
    return sum(buffer.discard(victim.sender, victim.seq) is not None for victim in victims)


class _MergesAll(DeliveryQueue):
    def _may_merge(self) -> bool:
        return True

    def _merge(self, change: ViewChange) -> ViewChange:
        for passed in [each for each in self._segments if not isinstance(each, PurgingBuffer)][-2:]:
            self._segments.remove(passed)
        self._changes -= 1
        self._segments.append(Merged(1))
        return change


class _MergingOutlet(Outlet):
    queue_kind = _MergesAll


class _MergedWithMessages(Operation):
    outlet_kind = _MergingOutlet


class MergedWithMessages(Ring):
    """Merges configurations that had messages, which are then delivered in the one before."""

    operation_kind = _MergedWithMessages


# Flow control


class _QueueOnly(Outlet):
    def _take(self, now: Nanos, batch: Batch) -> int:
        return self.queue.add(batch, behind=self._hurried(now))


class _NoReserve(Operation):
    outlet_kind = _QueueOnly


class NoReserve(Ring):
    """Takes nothing beyond its queue, though its program waits in `send`."""

    operation_kind = _NoReserve


class _Equal(Rotation):
    def _comes_first(self) -> bool:
        return False


class _NobodyExempt(Operation):
    rotation_kind = _Equal


class NobodyExempt(Ring):
    """Sends nothing during a stop, though its own program waits in `send`."""

    operation_kind = _NobodyExempt


class _Boundless(Backlog):
    @property
    def stops(self) -> bool:
        return False


class _NeverFull(Outlet):
    backlog_kind = _Boundless


class _NobodySaysStop(Operation):
    outlet_kind = _NeverFull


class NobodySaysStop(Ring):
    """Lets the others send new messages, though it already receives into its reserve."""

    operation_kind = _NobodySaysStop


class _Cautious(Backlog):
    @property
    def stops(self) -> bool:
        return self.full


class _FullAtOnce(Outlet):
    backlog_kind = _Cautious


class _StopAtFullQueue(Operation):
    outlet_kind = _FullAtOnce


class StopAtFullQueue(Ring):
    """Says stop when its queue is full: then nothing comes that replaces what is obsolete."""

    operation_kind = _StopAtFullQueue


class _StopForgetful(Forming):
    def _stop_on(self, now: Nanos, token: FormToken, members: Sequence[MemberId]) -> int:  # noqa: ARG002
        return -1


class _StopForgotten(Formation):
    forming_kind = _StopForgetful


class StopForgotten(Ring):
    """A stop ends with the configuration in which it was said."""

    formation_kind = _StopForgotten


class _Silent(Operation):
    def behind(self) -> bool:
        return False


class ViewSeenByReaderOnly(Ring):
    """Waits until its program reads on before it sends in a new configuration."""

    operation_kind = _Silent


class _Small(Backlog):
    @property
    def overfull(self) -> bool:
        return self.stops


class _QueueIsAll(Outlet):
    backlog_kind = _Small


class _ChangeOnlyBelowQueue(Operation):
    outlet_kind = _QueueIsAll


class ChangeOnlyBelowQueue(Ring):
    """Takes no part in a change of configuration while it uses its reserve."""

    operation_kind = _ChangeOnlyBelowQueue


class _Strict(Leaving):
    def _stopped(self) -> bool:
        return True


class _LeaveClockRunsInSend(Operation):
    leaving_kind = _Strict


class LeaveClockRunsInSend(Ring):
    """Leaves because of a full queue, though its program waits in `send`."""

    operation_kind = _LeaveClockRunsInSend


class _Narrow(RingSettings, frozen=True, kw_only=True):
    def window_of(self, size: int) -> int:  # noqa: ARG002
        return self.window


class WindowBelowMembers(Ring):
    """Takes the window as it was set, however many members share it."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, _Narrow(**msgspec.structs.asdict(settings)), rng, out)


class _ShiftedOutlet(Outlet):
    def _note_places(self, members: tuple[MemberId, ...], packets: Sequence[Packet]) -> None:
        shifted = [msgspec.structs.replace(packet, seq=packet.seq + packet.seq % 2) for packet in packets]
        super()._note_places(members, shifted)


class _ShiftedOperation(Operation):
    outlet_kind = _ShiftedOutlet


class PositionRecordedWrong(Ring):
    """Deliveries are recorded at the packet after theirs, every other time."""

    operation_kind = _ShiftedOperation
