"""S-RM, broken on purpose."""

from collections.abc import Iterable, Sequence
from random import Random

from semcast.core.annotations import KEnumeration
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox
from semcast.obsolescence import OperationTracker, obsoletes
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Exchange
from semcast.protocols.semantic.frames import Data, Gossip
from semcast.sim.mutants.contents import changed


class _NaiveBuffers(Buffers):
    def reliable_upto(self, rank: int) -> int:
        return self.queued[rank]


class PurgeWithoutSafety(SemanticMulticast):
    """Purges retransmission buffers at once (the naive version of appendix A.2)."""

    buffers_kind = _NaiveBuffers


class _EarlyBuffers(Buffers):
    def purged_between(self, rank: int, first: int, last: int) -> list[int]:
        doomed = [seq for seq in self._doomed(rank) if first <= seq <= last]
        return sorted({*super().purged_between(rank, first, last), *doomed})

    def held_between(self, rank: int, first: int, last: int) -> list[Batch]:
        doomed = self._doomed(rank)
        return [part for part in super().held_between(rank, first, last) if part.first not in doomed]

    def _doomed(self, rank: int) -> set[int]:
        held = [message for batch in self.retained[rank] for message in batch.messages()]
        return {old.id.seq for old in held if any(obsoletes(new, old) for new in held)}


class PurgeAnnouncedEarly(SemanticMulticast):
    """Tells others that a message is purged while its replacement is not safe yet."""

    buffers_kind = _EarlyBuffers


class _HopefulBuffers(Buffers):
    def known_purged(self, rank: int, seq: int) -> bool:
        return super().known_purged(rank, seq) or any(later > seq for later in self.pending[rank])


class SkipOnGap(SemanticMulticast):
    """Takes a gap for a purged message as soon as something later is there."""

    buffers_kind = _HopefulBuffers


class SafetyWithFVotes(SemanticMulticast):
    """Calls a message safe when f members have it: all of them may crash."""

    def votes_needed(self) -> int:
        return max(self.f, 1)


class SafetyCountsReceived(SemanticMulticast):
    """Vouches for what it received out of order, before it has what comes before."""

    def safety_vote(self) -> list[int]:
        buffers = self.buffers
        rows = zip(buffers.queued, buffers.pending, strict=True)
        return [max([queued, *pending]) for queued, pending in rows]


class SuspectedMember(SemanticMulticast):
    """Goes on without a member it has not heard from for a while, alive though it may be."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: Settings, rng: Random, out: Outbox
    ) -> None:
        super().__init__(me, members, settings, rng, out)
        self._heard: dict[MemberId, Nanos] = {}

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        self._heard[source] = now
        super().on_frames(now, source, frames)
        for member in self.members:
            if now - self._heard.get(member, now) > 4 * self.settings.gossip_period:
                self.stability.forget(self.members.index(member))


class OutOfOrder(SemanticMulticast):
    """Delivers what waits for a predecessor before it."""

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        return super().deliver(now, most)[::-1]


class DeliverTwice(SemanticMulticast):
    """Does not recognise a message it already has."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: Settings, rng: Random, out: Outbox
    ) -> None:
        super().__init__(me, members, settings, rng, out)
        self._again: list[Batch] = []

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if isinstance(frame, Data) and frame.first <= self.buffers.queued[frame.sender]:
                self._again.append(Batch(self.members[frame.sender], frame.first, frame.payloads[:1]))
        super().on_frames(now, source, frames)

    def deliverable(self) -> bool:
        return bool(self._again) or super().deliverable()

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        again, self._again = self._again, []
        return super().deliver(now, most) + again


class ChangedPayload(SemanticMulticast):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        return list(map(changed, super().deliver(now, most)))


class _DeafExchange(Exchange):
    def hear_of(self, now: Nanos, received: Sequence[int]) -> None:
        pass


class LostLastMessage(SemanticMulticast):
    """Learns of a gap only from a later message: nothing comes after the last one."""

    exchange_kind = _DeafExchange


class _EndlessBuffers(Buffers):
    def room(self, rank: int) -> int:  # noqa: ARG002
        return 1 << 20


class UnboundedBuffer(SemanticMulticast):
    """Accepts whatever comes."""

    buffers_kind = _EndlessBuffers


class PrintedOperationTracker(OperationTracker):
    """The server of figure 3.8 as printed: the shift of line 10 puts the commit's map off by one."""

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self._k_mask = (1 << k) - 1
        self._seq = 0
        self._bits = 0
        self._iseq: dict[str, int] = {}

    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]:
        updates = []
        for item in items:
            self._seq += 1
            self._bits = (self._bits << 1 | 1 << (self._seq - self._iseq.get(item, 0))) & self._k_mask
            self._iseq[item] = self._seq
            updates.append(KEnumeration(self._seq, 0))
        self._seq += 1
        self._bits = self._bits << 1 & self._k_mask
        commit = KEnumeration(self._seq, self._bits)
        self._bits = (self._bits << 1 | 1) & self._k_mask
        return updates, commit


class TermsIgnored(SemanticMulticast):
    """Takes part with whoever is on the list, whatever they have set."""

    def _agrees(self, source: int, frame: Gossip) -> bool:  # noqa: ARG002
        return True


class ConfirmedSafeAtOnce(SemanticMulticast):
    """Says that all have a message as soon as it was sent."""

    def settle_confirmations(self) -> None:
        sent = self.buffers.queued[self._me]
        self._confirming.settle(self.view(), delivered=sent, safe=sent)
