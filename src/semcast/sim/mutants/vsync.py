"""Mistakes in the messages of a view: their order, what is purged, what is safe."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from semcast.core.events import Delivery, Purged
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import obsoletes
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Exchange
from semcast.protocols.semantic.frames import Notice
from semcast.protocols.semantic.retention import Retention
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.batches import BatchOrder, InstanceStanding
from semcast.protocols.vsync.causes import Causes
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.orders import CausalOrder
from semcast.protocols.vsync.stream import OrderFactory, ViewStream
from semcast.protocols.vsync.token import TokenOrder
from semcast.protocols.vsync.tracking import Tracker
from semcast.sim.mutants.contents import changed


class ChangedPayload(VirtualSynchrony):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> list[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


class PurgeAcrossViews(VirtualSynchrony):
    """Purges what waits in an older view because of a message of the next one."""

    def deliver(self, now: Nanos, most: int) -> list[Delivery]:
        for older in self._epochs:
            if older.stream is not self.stream and self.stream is not None:
                self._purge(older.stream, self.stream)
        return super().deliver(now, most)

    def _purge(self, old: ViewStream, new: ViewStream) -> None:
        later = [message for batch in new.buffers.to_deliver for message in batch.messages()]
        for batch in [batch for batch in old.buffers.to_deliver if batch.annotation is not None]:
            victim = batch.messages()[0]
            by = next((message for message in later if obsoletes(message, victim)), None)
            if by is not None:
                old.buffers.to_deliver.discard(batch.sender, batch.first)
                self.out.deliver(Purged(victim.id, by.id))


class _StamplessExchange(Exchange):
    def on_notice(self, now: Nanos, frame: Notice) -> None:
        super().on_notice(now, msgspec.structs.replace(frame, heads=[]))


class _StamplessStream(ViewStream):
    exchange_kind = _StamplessExchange


class StampLostWithPurged(VirtualSynchrony):
    """A notice of a purged message does not say what its timestamp was."""

    view_stream = _StamplessStream


class _StaleClock(CausalOrder):
    def sent(self) -> None:
        self.stamped = list(map(max, self.stamped, self.lines.delivered))


class ClockNotReset(VirtualSynchrony):
    """What was said in the last view is not said again in this one, where ranks mean other members."""

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        before = None if self.stream is None else self.stream.order
        if self._order is CausalOrder:
            self._order = _StaleClock
        super()._begin(now, welcome, event)
        after = None if self.stream is None else self.stream.order
        if isinstance(before, CausalOrder) and isinstance(after, CausalOrder):
            size = len(after.stamped)
            after.stamped = [*before.stamped, *after.stamped[len(before.stamped) :]][:size]


class _ObedientOrder(TokenOrder):
    def speaker(self) -> int | None:
        return next((rank for number, rank in self._said if number == self._number + 1), None)

    def _must_speak(self) -> bool:
        held = self.holder == self.lines.rank or self._number > 0
        return held and self.unassigned() and not self.lines.frozen and self.lines.may_command()


class OtherOrder(VirtualSynchrony):
    """Another order stands in for one."""

    instead: ClassVar[dict[OrderFactory, OrderFactory]]

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        self._order = self.instead.get(self._order, self._order)
        super()._begin(now, welcome, event)


class OldHolderObeyed(OtherOrder):
    """Who gave the token away goes on speaking, and is obeyed."""

    instead: ClassVar = {TokenOrder: _ObedientOrder}


class _UnsafeOrders(TokenOrder):
    def may_follow(self, rank: int, upto: int, by_rank: int, by: int) -> bool:  # noqa: ARG002
        return self.lines.queued[rank] >= upto and self.lines.due_upto(rank) >= upto


class SetsOrderNotSafe(OtherOrder):
    """In uniform mode messages must be safe, but what says their order need not."""

    instead: ClassVar = {TokenOrder: _UnsafeOrders}


class _HastyOrder(TokenOrder):
    def ready(self, rank: int, head: bytes) -> bool:  # noqa: ARG002
        return True


class CausesNotAwaited(OtherOrder):
    """In total order a message is received where its causes, or their order, are not known."""

    instead: ClassVar = {TokenOrder: _HastyOrder}


class _TirelessOrder(BatchOrder):
    def takes_part(self) -> bool:
        return True


class AcknowledgedAfterPred(OtherOrder):
    """Who has reported what it adopted, and said PRED, goes on adopting what is proposed."""

    instead: ClassVar = {BatchOrder: _TirelessOrder}


class _RoundlessOrder(BatchOrder):
    def last_adopted(self, standings: Sequence[InstanceStanding]) -> InstanceStanding:
        return next((standing for standing in standings if standing.value is not None), standings[0])


class RoundIgnoredInReports(OtherOrder):
    """At the end of a view any value that was adopted will do, not the one adopted last."""

    instead: ClassVar = {BatchOrder: _RoundlessOrder}


class _HastyBuffers(Buffers):
    def certain_upto(self, rank: int) -> int:
        return self.queued[rank]


class _HastyStream(ViewStream):
    buffers_kind = _HastyBuffers


class DeliveredBeforeSafe(VirtualSynchrony):
    """Uniform or not, messages are delivered when they arrive."""

    view_stream = _HastyStream


class _HeadlessRetention(Retention):
    def taken_apart(self, batch: Batch) -> list[Batch]:
        return [batch] if batch.items is None else batch.singles()


class _HeadlessBuffers(Buffers):
    retention: ClassVar[type[Retention]] = _HeadlessRetention


class _HeadlessStream(ViewStream):
    buffers_kind = _HeadlessBuffers


class StampLostWithRun(VirtualSynchrony):
    """Where a run of updates is taken apart, nobody keeps its timestamp."""

    view_stream = _HeadlessStream


class _GullibleTracker(Tracker):
    def safe_upto(self, column: Sequence[int]) -> int:
        f = (len(column) - 1) // 2
        return sorted(column, reverse=True)[max(f, 1) - 1]


class _GullibleStream(ViewStream):
    tracker_kind = _GullibleTracker


class SafeWithFVotes(VirtualSynchrony):
    """Calls a message safe when f members have it: all of them may crash."""

    view_stream = _GullibleStream


class _SkippingBuffers(Buffers):
    def may_skip(self, rank: int, seq: int) -> bool:
        return self.known_purged(rank, seq)


class _SkippingStream(ViewStream):
    buffers_kind = _SkippingBuffers


class SkippedBeforeCauses(VirtualSynchrony):
    """A purged message is skipped at once, also before what it had to come after."""

    view_stream = _SkippingStream


class ConfirmedSafeAtOnce(VirtualSynchrony):
    """Says that all have a message as soon as it has its place here."""

    def settle_confirmations(self) -> None:
        stream = self.stream
        if self.confirming and stream is not None:
            order = stream.order
            placed = order.placed()
            self.confirming.settle(stream.view(), delivered=placed, safe=placed, position=order.position_of)


class _ForgetfulCauses(Causes):
    def sent(self, first: int, last: int) -> None:
        times = self._times[self._me]
        whole = times[-1]
        if whole is not None:
            times[-1] = (*whole[:-1], 0)
        super().sent(first, last)
        times[-1] = whole


class _ForgetfulCertificates(ViewStream):
    causes_kind = _ForgetfulCauses


class VectorTooSmall(VirtualSynchrony):
    """A sender records vector times without what it has of the last member."""

    view_stream = _ForgetfulCertificates
