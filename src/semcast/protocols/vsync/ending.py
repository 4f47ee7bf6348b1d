"""The end of the messages of one view.

When the view is about to change its stream is *frozen*: nothing more is sent or accepted; what others
accepted and this member lacks is fetched and laid aside, until it is agreed what belongs to the view.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.protocols.semantic.frames import Data
from semcast.protocols.semantic.repair import Repairs
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.stream import OpenStream, OrderFactory


class ViewStream(OpenStream):
    """One member's part in the messages of one view, to its end."""

    def __init__(
        self,
        me: MemberId,
        view: View,
        base: Sequence[int],
        settings: VsyncSettings,
        rng: Random,
        order: OrderFactory,
        suspects: Callable[[MemberId], bool],
        position: int = 0,
        newcomers: Collection[MemberId] = (),
    ) -> None:
        super().__init__(me, view, base, settings, rng, order, suspects, position, newcomers)
        self._wanted = list(self.queued)

    def freeze(self) -> None:
        """Accept nothing more (t5). Everybody waits for who lacks something, so it asks impatiently."""
        self.frozen = True
        resend = self.vsync.resend
        impatient = msgspec.structs.replace(self.settings, rto_initial=resend, rto_max=8 * resend)
        received = self.repairs.received
        self.repairs = Repairs(self._me, len(self.members), impatient, self._rng)
        self.repairs.received = received

    def want(self, now: Nanos, upto: Sequence[int], of: int | None = None) -> None:
        """Fetch what is missing up to there, and lay it aside. The member of rank `of` has it."""
        if of is not None:
            self.repairs.received[of] = list(map(max, self.repairs.received[of], upto))
        if any(map(int.__lt__, self._wanted, upto)):
            self._wanted = list(map(max, self._wanted, upto))
            self.high = list(map(max, self.high, upto))
            self._plan_request(now)

    def has(self, upto: Sequence[int]) -> bool:
        """Whether everything up to there is queued, laid aside, or known to be purged."""
        return not any(
            seq not in self.pending[rank] and not self.known_purged(rank, seq)
            for rank, last in enumerate(upto)
            for seq in range(self.queued[rank] + 1, last + 1)
        )

    def finish(self, cut: Sequence[int], report: bytes) -> None:
        """This, and nothing else, belongs to the view: queue what was laid aside (t7)."""
        assert self.frozen
        assert self.has(cut)
        before = None
        while before != self.queued:
            before = list(self.queued)
            for rank, last in enumerate(cut):
                self._complete(rank, last)
        assert all(map(int.__ge__, self.queued, cut)), (
            "what a message must come after belongs to the view, too"
        )
        self.safe = list(map(max, self.safe, cut))
        self.order.finish(report)
        self.repairs.received = [list(self.queued) for _ in self.members]

    def _complete(self, rank: int, last: int) -> None:
        while self.queued[rank] < last:
            seq = self.queued[rank] + 1
            batch = self.pending[rank].get(seq)
            if batch is None:
                assert self.known_purged(rank, seq)
                if not self.may_skip(rank, seq):
                    break
                self._skip(rank, seq)
            elif not self.ready(rank, batch.head):
                break
            else:
                del self.pending[rank][seq]
                self.occupancy.cache(-1, -batch.size)
                self._admit(rank, batch)

    def _on_data(self, now: Nanos, frame: Data) -> None:
        if not self.frozen:
            super()._on_data(now, frame)
            return
        batch = self._batch(frame)
        if batch is None:
            self.stats.malformed += 1
            return
        rank = frame.sender
        for seq in range(max(batch.first, self.queued[rank] + 1), min(batch.last, self._wanted[rank]) + 1):
            if seq not in self.pending[rank]:
                one = self.pending[rank][seq] = batch.cut(seq, seq)
                self.occupancy.cache(1, one.size)
        self.repairs.arrived(now, rank, range(batch.first, batch.last + 1))
        if any(map(int.__gt__, self._wanted, self.queued)):
            self._plan_repair(now, rank)

    def _held_between(self, rank: int, first: int, last: int) -> list[Batch]:
        """What was laid aside can be sent again, too."""
        held = super()._held_between(rank, first, last)
        if self.frozen:
            aside = self.pending[rank]
            held += [aside[seq] for seq in sorted(aside) if first <= seq <= last]
        return held

    def purged_between(self, rank: int, first: int, last: int) -> list[int]:
        """And so can what is known of purged messages."""
        purged = super().purged_between(rank, first, last)
        if self.frozen:
            purged += [seq for seq in sorted(self.skips[rank]) if first <= seq <= last]
        return purged

    def _advance(self, rank: int) -> None:
        if not self.frozen:
            super()._advance(rank)

    def _evict(self, count: int, size: int) -> None:
        """What was laid aside for the end of the view is no mere cache."""
        if not self.frozen:
            super()._evict(count, size)

    def _request(self, now: Nanos) -> None:
        """Whoever is suspected is not asked, as long as that lasts."""
        for rank in range(len(self.members)):
            if rank != self._me and self.suspects(rank) != self.repairs.is_failed(rank):
                if self.suspects(rank):
                    self.repairs.forget(now, rank)
                else:
                    self.repairs.recall(rank)
        super()._request(now)
        if self.frozen and self._request_at is None and any(map(self._missing, range(len(self.members)))):
            self._plan_request(now + self.vsync.resend)  # everybody who has it is suspected: not for ever

    def _missing(self, rank: int) -> list[int]:
        if not self.frozen:
            return super()._missing(rank)
        pending, last = self.pending[rank], self._wanted[rank]
        span = range(self.queued[rank] + 1, last + 1)
        return [seq for seq in span if seq not in pending and not self.known_purged(rank, seq)]

    def _may_multicast(self) -> bool:
        return not self.frozen and super()._may_multicast()
