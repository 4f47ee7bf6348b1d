"""S-RM: semantically reliable multicast (Pereira 2002, 4.3, appendix A, mechanisms of 5.2).

Messages are multicast once, optimistically. Receivers ask for what they miss; anybody who holds a message
answers. Gossip finds what is stable (everybody queued it: it may be forgotten) and what is safe (f+1
queued it: it may replace others in retransmission buffers). With no annotations it is plain FIFO
reliable multicast.

Deviations: purge knowledge travels in the answers to requests (a hole between what is stable and what
is queued is a purged message) instead of by faked stability; safety rides in the same frame as
stability; gossip may be more frequent while there is something to say. Membership is static: without
`member_failed` a crashed member stops stability, and senders block.
"""

from collections.abc import Sequence
from random import Random

from semcast.core.annotations import Annotation
from semcast.core.events import ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox
from semcast.core.stack import Stack
from semcast.obsolescence import Purging
from semcast.protocols.semantic.dissemination import Dissemination, SrmTimer
from semcast.protocols.semantic.frames import Gossip
from semcast.protocols.semantic.rounds import SafetyRounds, StabilityRounds
from semcast.protocols.semantic.settings import Settings


class SemanticMulticast(Dissemination, Stack):
    """One member of a group with static membership; `members` is the same list everywhere."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: Settings, rng: Random, out: Outbox
    ) -> None:
        super().__init__(me, members, settings, rng, out)
        size = len(self.members)
        self.stability = StabilityRounds(self._me, size)
        self.safety: SafetyRounds | None = None
        if settings.uniform or settings.purging is not Purging.OFF:
            self.safety = SafetyRounds(self._me, size, self.votes_needed())
        self._failed = [False] * size
        self._gossip_at: Nanos = 0

    def start(self, now: Nanos) -> None:
        """Announce the static view and begin to gossip, out of step with the others."""
        self.out.deliver(ViewChange(self.view(), joined=self.members))
        self._plan_gossip(now + self._rng.randrange(self.settings.gossip_period))

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast in order what flow control allows; an annotation speaks for a single payload."""
        accepted = super().multicast(now, payloads, annotation, safe=safe)
        self._hurry(now)
        return accepted

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member in a row."""
        super().on_frames(now, source, frames)
        self._hurry(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Take a crashed member out of stability."""
        rank = self._ranks.get(member)
        if rank is None or self._failed[rank]:
            return
        self._failed[rank] = True
        self.stability.forget(rank)
        self.repairs.forget(now, rank)
        self._track(now)
        self._room_freed(now)
        self._wake()

    # How messages become safe

    def safety_vote(self) -> list[int]:
        """What this member vouches for: contiguous prefixes queued for delivery, not mere receipt."""
        return self.queued

    # Stability, safety, purging of the retransmission buffers

    def _gossip(self, now: Nanos) -> None:
        self.stability.vote(self.queued)
        if self.safety is not None:
            self.safety.vote(self.safety_vote())
        self._track(now)
        frame = Gossip(
            list(self.queued), self.stability.frame(), None if self.safety is None else self.safety.frame()
        )
        others = [rank for rank in range(len(self.members)) if rank != self._me and not self._failed[rank]]
        for rank in self._rng.sample(others, min(self.settings.gossip_fanout, len(others))):
            self.stats.control_frames += 1
            self.out.send(self.members[rank], frame)
        self._plan_gossip(now + self.settings.gossip_period)
        self._hurry(now)

    def _plan_gossip(self, at: Nanos) -> None:
        self._gossip_at = at
        self.out.set_timer(SrmTimer.GOSSIP, at)

    def _hurry(self, now: Nanos) -> None:
        """Somebody may wait to hear that everybody has what is kept here."""
        soon = now + self.settings.gossip_busy
        if self.settings.gossip_busy and self.occupancy.messages and soon < self._gossip_at:
            self._plan_gossip(soon)

    def _on_tracking(self, now: Nanos, source: int, frame: Frame) -> None:
        if not isinstance(frame, Gossip) or not self._credible(frame):
            self.stats.malformed += 1
            return
        self.repairs.received[source] = frame.received
        self._hear_of(now, frame.received)
        self.stability.merge(frame.stability, self.queued)
        if self.safety is not None and frame.safety is not None:
            self.safety.merge(frame.safety, self.safety_vote())
        self._track(now)

    def _credible(self, frame: Gossip) -> bool:
        """Nobody can have queued what is far beyond us, nor found stable what we have not queued."""
        size = len(self.members)
        if len(frame.received) != size or not self.stability.well_formed(frame.stability):
            return False
        window = self.settings.window
        most = [seq + window for seq in self.queued]
        most[self._me] = self.queued[self._me]
        if any(map(int.__gt__, frame.received, most)):
            return False
        if any(map(int.__gt__, frame.stability.result, self.queued)):
            return False
        if frame.safety is None or self.safety is None:
            return True
        return self.safety.well_formed(frame.safety) and not any(map(int.__gt__, frame.safety.result, most))

    def _track(self, now: Nanos) -> None:
        """Conclude rounds and act on what they decided."""
        self.stability.conclude(self.queued)
        if self.safety is not None:
            self.safety.conclude(self.safety_vote())
            self.safe = self.safety.result
        held = self.occupancy.messages
        stable = list(self.stable)
        for rank, upto in enumerate(self.stability.result):
            if upto > self.stable[rank]:
                self._trim(rank, min(upto, self.queued[rank]))
        self._purge_retained()
        if self.occupancy.messages < held or self.stable != stable:
            self._room_freed(now)
