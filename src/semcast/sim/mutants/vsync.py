"""Virtual synchrony, broken on purpose."""

from collections.abc import Collection, Sequence
from typing import ClassVar

import msgspec

from semcast.core.events import Delivery, Purged
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame
from semcast.core.quorum import is_quorum
from semcast.core.views import View
from semcast.obsolescence import obsoletes
from semcast.protocols.backoff import FIRST, Backoff
from semcast.protocols.pieces import Courier
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Exchange
from semcast.protocols.semantic.frames import Notice
from semcast.protocols.semantic.retention import Retention
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.batches import BatchOrder, Standing
from semcast.protocols.vsync.candidates import Candidates, Suspects
from semcast.protocols.vsync.causes import Causes
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.consensus import Consensus
from semcast.protocols.vsync.flush import ViewChange
from semcast.protocols.vsync.founding import Founding
from semcast.protocols.vsync.frames import Hello, Known, Pred, StateChunk, Welcome
from semcast.protocols.vsync.ledger import Agreed, Ledger, Record, Then
from semcast.protocols.vsync.ledger import Installed as Entered
from semcast.protocols.vsync.orders import CausalOrder
from semcast.protocols.vsync.serving import Serving
from semcast.protocols.vsync.stream import OrderFactory, ViewStream
from semcast.protocols.vsync.token import TokenOrder
from semcast.protocols.vsync.tracking import Tracker
from semcast.protocols.vsync.transfer import StateTransfer
from semcast.sim.mutants.contents import changed


class ChangedPayload(VirtualSynchrony):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> list[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


class _HastyConsensus(Consensus):
    def enough(self, ranks: Collection[int]) -> bool:
        return 2 * len(ranks) >= self.size


class _HastyChange(ViewChange):
    consensus = _HastyConsensus


class DecisionWithoutMajority(VirtualSynchrony):
    """Consensus is content with half of the members."""

    view_change = _HastyChange


class _LonelyConsensus(Consensus):
    def enough(self, ranks: Collection[int]) -> bool:
        return bool(ranks)


class _LonelyChange(ViewChange):
    consensus = _LonelyConsensus


class MinorityGoesOn(VirtualSynchrony):
    """Whoever is left goes on, however few."""

    view_change = _LonelyChange


class _ForgetfulChange(ViewChange):
    def pred(self) -> Pred:
        return msgspec.structs.replace(super().pred(), upto=list(self._stream.delivered))


class PredOmitsUndelivered(VirtualSynchrony):
    """PRED names what was delivered, not what was accepted."""

    view_change = _ForgetfulChange


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


class _EarlyChange(ViewChange):
    def has(self, change: Change) -> bool:
        return self._consensus.decided is not None or super().has(change)


class _GapStream(ViewStream):
    def finish(self, cut: Sequence[int], report: bytes) -> None:
        super().finish([self._here(rank, last) for rank, last in enumerate(cut)], report)

    def _here(self, rank: int, last: int) -> int:
        buffers, upto = self.buffers, self.queued[rank]
        while upto < last and (upto + 1 in buffers.pending[rank] or buffers.known_purged(rank, upto + 1)):
            upto += 1
        return upto


class InstalledTooEarly(VirtualSynchrony):
    """Installs the next view before the agreed messages are there."""

    view_change = _EarlyChange
    view_stream = _GapStream


class _PrintedBuffers(Buffers):
    """Remembers what was purged from delivery."""

    gone: frozenset[tuple[MemberId, int]] = frozenset()

    def purged_from_delivery(self, victim: Batch, by: Batch) -> None:
        super().purged_from_delivery(victim, by)
        self.gone = self.gone | {(victim.sender, victim.first)}


class _PrintedStream(ViewStream):
    """Delivers, at the end, what is agreed on and was purged here."""

    buffers_kind = _PrintedBuffers
    _again: list[Batch] = []  # noqa: RUF012

    def finish(self, cut: Sequence[int], report: bytes) -> None:
        super().finish(cut, report)
        buffers = self.buffers
        assert isinstance(buffers, _PrintedBuffers)
        self._again = [
            batch
            for retained in buffers.retained
            for batch in retained
            if batch.annotation is not None
            and not buffers.to_deliver.holds(batch.sender, batch.first)
            and (batch.sender, batch.first) in buffers.gone
        ]

    def deliver(self, most: int) -> list[Batch]:
        batches = super().deliver(most)
        if self.frozen and not len(self.buffers.to_deliver):
            batches += self._again
            self._again = []
        return batches


class T7AsPrinted(VirtualSynchrony):
    """t7 of figure 4.4 as printed: whatever is agreed on and in no queue is delivered."""

    view_stream = _PrintedStream


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


class _TirelessOrder(BatchOrder):
    def takes_part(self) -> bool:
        return True


class AcknowledgedAfterPred(OtherOrder):
    """Who has reported what it adopted, and said PRED, goes on adopting what is proposed."""

    instead: ClassVar = {BatchOrder: _TirelessOrder}


class _RoundlessOrder(BatchOrder):
    def last_adopted(self, standings: Sequence[Standing]) -> Standing:
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


class JoinerWithoutState(VirtualSynchrony):
    """Who joins delivers messages before its state is there."""

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        super()._begin(now, welcome, event)
        for epoch in self._epochs:
            epoch.awaits = False


class _TimelessTransfer(StateTransfer):
    def on_chunk(self, source: MemberId, frame: StateChunk) -> bytes | None:
        if self._wanted is not None:
            frame = msgspec.structs.replace(frame, view=self._wanted[0])
        return super().on_chunk(source, frame)


class OldChunkAccepted(VirtualSynchrony):
    """A part of the state at the beginning of an earlier view is taken for one of the state wanted now."""

    transfer_kind = _TimelessTransfer


class _StaleTransfer(StateTransfer):
    def offer(self, view: int, state: bytes) -> None:
        if self._chunks:
            self._view = view
        else:
            super().offer(view, state)


class OldStateHandedOver(VirtualSynchrony):
    """Whoever joins is given the state that was handed over first."""

    transfer_kind = _StaleTransfer


class _HeadlessRetention(Retention):
    def taken_apart(self, batch: Batch) -> list[Batch]:
        return [batch] if batch.items is None else batch.singles()


class _HeadlessBuffers(Buffers):
    retention: type[Retention] = _HeadlessRetention


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


class _ForgetfulCut(ViewChange):
    def cut_of(self, used: dict[int, Pred]) -> list[int]:
        staying = {rank: pred for rank, pred in used.items() if self._members[rank] not in self._leave}
        return super().cut_of(staying or used)


class LeaverNotInCut(VirtualSynchrony):
    """What only a member has that leaves does not belong to the view."""

    view_change = _ForgetfulCut


class _HastyLedger(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        super().write(now, record, lambda _: None, anew=anew)
        then(now)


class PromiseNotSynced(VirtualSynchrony):
    """Says what it promised or accepted before that is on its disk."""

    ledger_kind = _HastyLedger


class _HastyAcceptance(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        if isinstance(record, Agreed):
            super().write(now, record, lambda _: None, anew=anew)
            then(now)
        else:
            super().write(now, record, then, anew=anew)


class AcceptanceNotSynced(VirtualSynchrony):
    """Says what it accepted before that is on its disk; promises wait."""

    ledger_kind = _HastyAcceptance


class _TaillessLedger(Ledger):
    def recover(self, records: Sequence[bytes]) -> list[Record]:
        return super().recover(records[:-1])


class TailIgnored(VirtualSynchrony):
    """Reads all that its disk kept but for the last record."""

    ledger_kind = _TaillessLedger


class _ViewlessLedger(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        if isinstance(record, Entered):
            then(now)
        else:
            super().write(now, record, then, anew=anew)


class LastViewNotWritten(VirtualSynchrony):
    """Enters a view without writing that down."""

    ledger_kind = _ViewlessLedger


class _DeafFounding(Founding):
    def learn(self, known: Known) -> None:
        """Whatever others say."""

    def saw_view(self, now: Nanos) -> None:
        """Whoever is there."""


class FoundedBesideAView(VirtualSynchrony):
    """Founds the group though it has heard of a view."""

    founding_kind = _DeafFounding


class _HopelessCandidates(Candidates):
    def back(self, members: Sequence[MemberId], suspects: Suspects) -> list[MemberId]:
        return [member for member in members if suspects(member)]


class ReformedWithoutAccounting(VirtualSynchrony):
    """Takes the silent for dead, and goes on without them."""

    candidates_kind = _HopelessCandidates


class _Careless(Backoff):
    def holds(self, now: Nanos, member: MemberId) -> bool:  # noqa: ARG002
        return False

    def suspects(self, member: MemberId) -> bool:  # noqa: ARG002
        return False


class _CarelessCandidates(Candidates):
    backoff_kind = _Careless


class FlappingLetIn(VirtualSynchrony):
    """Lets in at once whoever comes back, however often it was put out."""

    candidates_kind = _CarelessCandidates


class _Unforgiving(Backoff):
    def _wait(self, count: int) -> Nanos:
        return FIRST << count


class _UnforgivingCandidates(Candidates):
    backoff_kind = _Unforgiving


class HeldOffForEver(VirtualSynchrony):
    """Holds off who keeps failing for longer and longer."""

    candidates_kind = _UnforgivingCandidates


class _SelfishChange(ViewChange):
    def cut_of(self, used: dict[int, Pred]) -> list[int]:
        if is_quorum(len(self._members), used):
            return super().cut_of(used)
        return [min(column) for column in zip(*(pred.upto for pred in used.values()), strict=True)]


class ReformedWithOlderState(VirtualSynchrony):
    """Re-forms a view with what all survivors have, not with what any of them has."""

    view_change = _SelfishChange


class _DeafServing(Serving):
    def is_over(self, now: Nanos) -> bool:  # noqa: ARG002
        return True


class LeaverDeafAtOnce(VirtualSynchrony):
    """Is gone as soon as it knows that it is not in the next view."""

    serving_kind = _DeafServing


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


class ConfirmedInTheNextView(VirtualSynchrony):
    """Says of what is confirmed when a view ends that it is delivered in the next."""

    def _end_confirmations(self, old: ViewStream, change: Change) -> None:
        sent = old.queued[old.rank]
        following = View(old.view().id + 1, tuple(change.members))
        self.confirming.settle(following, delivered=sent, safe=sent, position=old.order.position_of)


class _WholeCourier(Courier):
    def send(self, dest: MemberId, frame: Frame) -> None:
        self._out.send(dest, frame)

    def multicast(self, frame: Frame) -> None:
        self._out.multicast(frame)

    def announce(self, frame: Frame) -> None:
        self._out.announce(frame)


class NeverInPieces(VirtualSynchrony):
    """Sends control frames as they are, however large."""

    courier_kind = _WholeCourier


class TermsIgnored(VirtualSynchrony):
    """Lets in whoever has set otherwise what must be alike."""

    def _on_hello(self, now: Nanos, source: MemberId, frame: Hello) -> None:
        super()._on_hello(now, source, msgspec.structs.replace(frame, terms=self._terms))


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
