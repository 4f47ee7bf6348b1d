"""What waits for the program, broken: it gives way only to what replaces it in the same configuration."""

from collections.abc import Sequence

from semcast.core.events import Merged, ViewChange
from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import PurgingBuffer, obsoletes
from semcast.protocols.ring import Ring
from semcast.protocols.ring.delivery import DeliveryQueue
from semcast.protocols.ring.frames import Packet
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.packing import Assembly
from semcast.protocols.ring.rotation import Rotation
from semcast.sim.mutants.mutant import Mutant


class _OneBuffer(DeliveryQueue):
    def _append(self, buffer: PurgingBuffer, batches: Sequence[Batch]) -> None:
        super()._append(buffer, batches)
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer) and segment is not buffer:
                self.messages -= sum(_purge(segment, batch) for batch in batches)
                self.purged += segment.take_purged()


class _OneBufferHandover(Outlet):
    queue_kind = _OneBuffer


class _PurgeAcrossConfigurations(Operation):
    outlet_kind = _OneBufferHandover


class PurgeAcrossConfigurations(Ring):
    """Purges a message for one of a later configuration."""

    operation_kind = _PurgeAcrossConfigurations


class _Anticipating(Rotation):
    def on_packets(self, now: Nanos, packets: Sequence[Packet]) -> None:
        super().on_packets(now, packets)
        queue = self._outlet.queue
        tail = queue._tail
        for packet in packets:
            if packet.seq > self.order.delivered and tail is not None:
                early = Assembly(self._settings.max_message)
                for batch in early.batches(self.order.members[packet.sender], packet.parts):
                    queue.messages -= _purge(tail, batch)
                queue.purged += tail.take_purged()


class _PurgeWithoutReplacement(Operation):
    rotation_kind = _Anticipating


class PurgeWithoutReplacement(Ring):
    """Purges for a message that has arrived but is not in the queue yet."""

    operation_kind = _PurgeWithoutReplacement


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


def _purge(buffer: PurgingBuffer, batch: Batch) -> int:
    """Purge what a batch that is not in the buffer makes obsolete there; returns how many."""
    held = [message for entry in buffer for message in entry.messages()]
    victims = [old.id for new in batch.messages() for old in held if obsoletes(new, old)]
    return sum(buffer.discard(victim.sender, victim.seq) is not None for victim in victims)


MUTANTS = {
    "purge-across-configurations": Mutant(PurgeAcrossConfigurations),
    "purge-without-replacement": Mutant(PurgeWithoutReplacement),
    "merged-with-messages": Mutant(MergedWithMessages, by_chance=False),
}
