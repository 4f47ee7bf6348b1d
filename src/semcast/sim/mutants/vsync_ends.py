"""Mistakes at the end of a view: who agrees to the next, and with which messages."""

from collections.abc import Collection, Sequence

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.quorum import is_quorum
from semcast.core.views import View
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.consensus import Consensus
from semcast.protocols.vsync.flush import ViewChange
from semcast.protocols.vsync.frames import Pred
from semcast.protocols.vsync.serving import Serving
from semcast.protocols.vsync.stream import ViewStream


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


class _ForgetfulCut(ViewChange):
    def cut_of(self, used: dict[int, Pred]) -> list[int]:
        staying = {rank: pred for rank, pred in used.items() if self._members[rank] not in self._leave}
        return super().cut_of(staying or used)


class LeaverNotInCut(VirtualSynchrony):
    """What only a member has that leaves does not belong to the view."""

    view_change = _ForgetfulCut


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


class ConfirmedInTheNextView(VirtualSynchrony):
    """Says of what is confirmed when a view ends that it is delivered in the next."""

    def _end_confirmations(self, old: ViewStream, change: Change) -> None:
        sent = old.queued[old.rank]
        following = View(old.view().id + 1, tuple(change.members))
        self.confirming.settle(following, delivered=sent, safe=sent, position=old.order.position_of)
