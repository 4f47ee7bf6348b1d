"""The ring, broken on purpose."""

from collections.abc import Sequence

from semcast.core.events import Delivery, TransitionalView
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import Purging, PurgingBuffer, obsoletes
from semcast.protocols.ring import Ring
from semcast.protocols.ring.delivery import Change, DeliveryQueue
from semcast.protocols.ring.frames import ConfId, ConfRecord, Packet, Token
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.packing import Assembly
from semcast.protocols.ring.recovery import Recovery
from semcast.sim.mutants.contents import changed


class _HastyOrder(RingOrder):
    def release(self, aru: int) -> None:
        self._released_aru = aru
        super().release(aru)


class SafeAfterOneRotation(Ring):
    """Takes the first `aru` it releases for confirmed."""

    def _order(self, conf: ConfId, members: tuple[MemberId, ...]) -> RingOrder:
        return _HastyOrder(conf, members, self.me, self.settings.window)


class _RegularOnly(DeliveryQueue):
    def change(self, change: Change) -> None:
        if not isinstance(change, TransitionalView):
            super().change(change)


class NoTransitionalConfiguration(Ring):
    """Delivers what is left of the old configuration as if everybody got it."""

    def _delivery_queue(self, purging: Purging) -> DeliveryQueue:
        return _RegularOnly(self.settings.queue_messages, purging)


class ChangedPayload(Ring):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


class ObligationSetForgotten(Ring):
    """A failure in the EVS state frees it of what it promised there."""

    def _give_up_recovery(self) -> None:
        self._promised = False
        super()._give_up_recovery()


class _Everything(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        regular, _ = super().split()
        order = self.order
        rest = range(order.delivered + len(regular) + 1, self.record.highest_seq + 1)
        return regular, [order.store[seq] for seq in rest if seq not in self.holes]


class DeliveredAfterAHole(Ring):
    """Delivers messages of anybody after a hole, though they may depend on what is missing."""

    def _recovery_of(self, record: ConfRecord) -> Recovery:
        return _Everything(self.order, record)


class _ObligedOnly(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        regular, transitional = super().split()
        members = self.order.members
        obliged = set(self.record.obligation_set)
        return regular, [packet for packet in transitional if members[packet.sender] in obliged]


class DiscardedBeforeAHole(Ring):
    """Discards messages of others than the obligation set even where no hole precedes them (as printed)."""

    def _recovery_of(self, record: ConfRecord) -> Recovery:
        return _ObligedOnly(self.order, record)


class _OneBuffer(DeliveryQueue):
    def _append(self, buffer: PurgingBuffer, batches: Sequence[Batch]) -> None:
        super()._append(buffer, batches)
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer) and segment is not buffer:
                self._messages -= sum(_purge(segment, batch) for batch in batches)


class PurgeAcrossConfigurations(Ring):
    """Purges a message for one of a later configuration."""

    def _delivery_queue(self, purging: Purging) -> DeliveryQueue:
        return _OneBuffer(self.settings.queue_messages, purging)


class _Boastful(RingOrder):
    def lower_aru(self, token: Token, seq: int, held_at: int) -> tuple[int, int]:
        aru, lowered_by = super().lower_aru(token, seq, held_at)
        return max(aru, min(self.my_aru, held_at)), lowered_by


class AruRaisedTooEarly(Ring):
    """Raises `aru` to what it has itself, though it was somebody else who lowered it."""

    def _order(self, conf: ConfId, members: tuple[MemberId, ...]) -> RingOrder:
        return _Boastful(conf, members, self.me, self.settings.window)


class _OwnHoles(Recovery):
    def split(self) -> tuple[list[Packet], list[Packet]]:
        self.holes = {seq for seq in self.holes if seq not in self.order.store}
        return super().split()


class HolesNotAgreed(Ring):
    """Takes for a hole what is missing here in the end, not what was agreed to be missing everywhere."""

    def _recovery_of(self, record: ConfRecord) -> Recovery:
        return _OwnHoles(self.order, record)


class OldTokenAccepted(Ring):
    """Does not look at the number of a token."""

    def _on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        self._token_number = 0
        super()._on_token(now, source, token)


class ConfIdReused(Ring):
    """Names configurations without the incarnation of who formed them: a restart counts from the start."""

    def _conf_id(self, number: int) -> ConfId:
        return ConfId(number, MemberId(self.me.name))


class PurgeWithoutReplacement(Ring):
    """Purges for a message that has arrived but is not in the queue yet."""

    def _on_packet(self, now: Nanos, packet: Packet) -> None:
        super()._on_packet(now, packet)
        tail = self._queue._tail
        if packet.seq > self.order.delivered and tail is not None:
            early = Assembly(self.settings.max_message)
            for batch in early.batches(self.order.members[packet.sender], packet.parts):
                self._queue._messages -= _purge(tail, batch)


def _purge(buffer: PurgingBuffer, batch: Batch) -> int:
    """Purge what a batch that is not in the buffer makes obsolete there; returns how many."""
    held = [message for entry in buffer for message in entry.messages()]
    victims = [old.id for new in batch.messages() for old in held if obsoletes(new, old)]
    return sum(buffer.discard(victim.sender, victim.seq) is not None for victim in victims)
