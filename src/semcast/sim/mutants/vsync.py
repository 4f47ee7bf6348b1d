"""Virtual synchrony, broken on purpose."""

from collections.abc import Sequence

import msgspec

from semcast.core.events import Delivery, Purged
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import obsoletes
from semcast.protocols.semantic.frames import Notice
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.consensus import Consensus
from semcast.protocols.vsync.ending import ViewStream
from semcast.protocols.vsync.flush import ViewChange
from semcast.protocols.vsync.frames import Change, Pred, Welcome
from semcast.protocols.vsync.orders import CausalOrder
from semcast.protocols.vsync.token import TokenOrder
from semcast.sim.mutants.contents import changed


class ChangedPayload(VirtualSynchrony):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> list[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


class _HastyConsensus(Consensus):
    @property
    def majority(self) -> int:
        return max(self.size // 2, 1)


class _HastyChange(ViewChange):
    consensus = _HastyConsensus


class DecisionWithoutMajority(VirtualSynchrony):
    """Consensus is content with half of the members."""

    view_change = _HastyChange


class _LonelyConsensus(Consensus):
    @property
    def majority(self) -> int:
        return 1


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
        later = [message for batch in new.to_deliver for message in batch.messages()]
        for batch in [batch for batch in old.to_deliver if batch.annotation is not None]:
            victim = batch.messages()[0]
            by = next((message for message in later if obsoletes(message, victim)), None)
            if by is not None:
                old.to_deliver.discard(batch.sender, batch.first)
                self.out.deliver(Purged(victim.id, by.id))


class _EarlyChange(ViewChange):
    def has(self, change: Change) -> bool:
        return self._consensus.decided is not None or super().has(change)


class _GapStream(ViewStream):
    def finish(self, cut: Sequence[int], report: bytes) -> None:
        super().finish([self._here(rank, last) for rank, last in enumerate(cut)], report)

    def _here(self, rank: int, last: int) -> int:
        upto = self.queued[rank]
        while upto < last and (upto + 1 in self.pending[rank] or self.known_purged(rank, upto + 1)):
            upto += 1
        return upto


class InstalledTooEarly(VirtualSynchrony):
    """Installs the next view before the agreed messages are there."""

    view_change = _EarlyChange
    view_stream = _GapStream


class _PrintedStream(ViewStream):
    """Delivers, at the end, what is agreed on and was purged here."""

    def finish(self, cut: Sequence[int], report: bytes) -> None:
        super().finish(cut, report)
        self._again = [
            batch
            for rank, retained in enumerate(self.retained)
            for batch in retained
            if batch.annotation is not None and not self._waits(rank, batch) and batch.first in self._purged
        ]

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        batches = super().deliver(now, most)
        if self.frozen and not len(self.to_deliver):
            batches += self._again
            self._again = []
        return batches

    _again: list[Batch] = []  # noqa: RUF012
    _purged: frozenset[int] = frozenset()

    def _account_purged_from_delivery(self) -> None:
        known = len(self.out.events)
        super()._account_purged_from_delivery()
        purged = {event.id.seq for event in self.out.events[known:] if isinstance(event, Purged)}
        self._purged = self._purged | purged


class T7AsPrinted(VirtualSynchrony):
    """t7 of figure 4.4 as printed: whatever is agreed on and in no queue is delivered."""

    view_stream = _PrintedStream


class _StamplessStream(ViewStream):
    def _on_notice(self, now: Nanos, frame: Notice) -> None:
        super()._on_notice(now, msgspec.structs.replace(frame, heads=[]))


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


class OldHolderObeyed(VirtualSynchrony):
    """Who gave the token away goes on speaking, and is obeyed."""

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        if self._order is TokenOrder:
            self._order = _ObedientOrder
        super()._begin(now, welcome, event)


class _HastyStream(ViewStream):
    def due_upto(self, rank: int) -> int:
        return self.queued[rank]

    def certain_upto(self, rank: int) -> int:
        return self.queued[rank]


class DeliveredBeforeSafe(VirtualSynchrony):
    """Uniform or not, messages are delivered when they arrive."""

    view_stream = _HastyStream


class JoinerWithoutState(VirtualSynchrony):
    """Who joins delivers messages before its state is there."""

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        super()._begin(now, welcome, event)
        for epoch in self._epochs:
            epoch.awaits = False
