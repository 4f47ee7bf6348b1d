"""Virtual synchrony with one rule of flow control left out (`docs/flow-control.md`).

None of these breaks a promise about messages: somebody stands still, or memory has no bound. Directed scripts
catch them, with the smallest queues there are.
"""

from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.stops import Stops
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.provision import Provision
from semcast.protocols.vsync.readership import Readership
from semcast.protocols.vsync.stream import ViewStream
from semcast.protocols.vsync.token import TokenOrder
from semcast.protocols.vsync.total import TotalOrder
from semcast.sim.mutants.vsync import OtherOrder


class _OneAccountBuffers(Buffers):
    def room(self, rank: int) -> int:
        return max(super().room(rank) - self._only_waiting(), 0)

    def _keeps(self, rank: int, batch: Batch) -> bool:
        return self.room(rank) >= len(batch.payloads)

    def _only_waiting(self) -> int:
        return sum(batch.last <= self.stable[self.ranks[batch.sender]] for batch in self.to_deliver)


class _OneAccountStream(ViewStream):
    buffers_kind = _OneAccountBuffers


class OneAccount(VirtualSynchrony):
    """What waits for the program takes room from what others need."""

    view_stream = _OneAccountStream


class _CrowdedBuffers(Buffers):
    def waiting(self) -> tuple[int, int]:
        order = self.order
        assert isinstance(order, TotalOrder)
        messages, size = super().waiting()
        return messages + sum(len(batch.payloads) for held in order._held for batch in held), size


class _CrowdedStream(ViewStream):
    buffers_kind = _CrowdedBuffers


class UnplacedTakesRoom(VirtualSynchrony):
    """What has no place in the total order yet takes room in the program's queue."""

    view_stream = _CrowdedStream


class _NoReserve(Backlog):
    def waits(self) -> bool:
        return False


class NoReserve(VirtualSynchrony):
    """Whether a program waits in `send` or not, no more is received for it."""

    backlog_kind = _NoReserve


class _Weightless(Backlog):
    def _held(self) -> tuple[int, int]:
        return super()._held()[0], 0


class BytesUncounted(VirtualSynchrony):
    """Takes messages of any size until there are too many of them."""

    backlog_kind = _Weightless


class _SlotlessBuffers(Buffers):
    def room(self, rank: int) -> int:  # noqa: ARG002
        return max(self.settings.buffer_messages - self.occupancy.messages, 0)

    def _keeps(self, rank: int, batch: Batch) -> bool:
        return self.room(rank) >= len(batch.payloads)


class _SlotlessStream(ViewStream):
    buffers_kind = _SlotlessBuffers


class NoSlots(VirtualSynchrony):
    """No sender has a slot of its own in the buffers of others."""

    view_stream = _SlotlessStream


class _NobodyExempt(Stops):
    def exempt(self) -> bool:
        return False


class NobodyExempt(VirtualSynchrony):
    """A stop binds also those whose programs wait for what they send."""

    stops_kind = _NobodyExempt


class _EarlyStop(Backlog):
    def over(self) -> bool:
        return self.full()


class StopWhenFull(VirtualSynchrony):
    """Says stop at a full queue, so that nothing comes that could replace what is in it."""

    backlog_kind = _EarlyStop


class _NeverStop(Backlog):
    def over(self) -> bool:
        return False


class NobodyStops(VirtualSynchrony):
    """Whoever uses its reserve lets the others go on."""

    backlog_kind = _NeverStop


class _QueuedCommands(TokenOrder):
    def accept(self, rank: int, part: Batch) -> None:
        super().accept(rank, part)
        if self.is_command(part):
            self._held[rank].append(part.cut(part.first, part.first))


class _CommandStream(ViewStream):
    def deliver(self, most: int) -> list[Batch]:
        return [batch for batch in super().deliver(most) if not self.order.is_command(batch)]


class CommandsInQueue(OtherOrder):
    """Commands of the token order wait for a program that does not want them."""

    instead: ClassVar = {TokenOrder: _QueuedCommands}
    view_stream = _CommandStream


class _Impatient(Readership):
    def look(self, now: Nanos) -> None:
        reader = self._backlog.reader
        before, reader.stopped = reader.stopped, True
        super().look(now)
        reader.stopped = before


class LeavesWhileWaiting(VirtualSynchrony):
    """The clock of the policy `leave` runs also while the program waits in `send`."""

    readership_kind = _Impatient


class _Deaf(Stops):
    def heard(self, now: Nanos, member: MemberId, *, stop: bool) -> None:
        pass


class StopNotHeard(VirtualSynchrony):
    """Nobody cares who says stop."""

    stops_kind = _Deaf


class _Unbounded(Readership):
    def overfull(self, now: Nanos) -> bool:  # noqa: ARG002
        return False


class OverfullGoesOn(VirtualSynchrony):
    """Each view adds to what waits for a program that has stopped."""

    readership_kind = _Unbounded


class _Persistent(Readership):
    def starves(self, now: Nanos) -> bool:  # noqa: ARG002
        return False


class NeverGivesUp(VirtualSynchrony):
    """Who waits for a state with its reserve full waits for ever."""

    readership_kind = _Persistent


class _Patient(Provision):
    def gives_late(self, now: Nanos) -> bool:  # noqa: ARG002
        return False


class ProviderAwaited(VirtualSynchrony):
    """Nobody else is asked for the state where the program that was asked has stopped."""

    provision_kind = _Patient
