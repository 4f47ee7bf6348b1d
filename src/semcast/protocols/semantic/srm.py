"""S-RM: semantically reliable multicast (Pereira 2002, 4.3, appendix A, mechanisms of 5.2).

Messages are multicast once, optimistically. Receivers ask for what they miss; anybody who holds a message
answers. Gossip finds what is stable (everybody queued it: it may be forgotten) and what is safe (f+1
queued it: it may replace others in retransmission buffers). With no annotations it is plain FIFO
reliable multicast.

Deviations: purge knowledge travels in the answers to requests (a hole between what is stable and what
is queued is a purged message) instead of by faked stability; safety rides in the same frame as
stability; gossip may be more frequent while there is something to say, says what all must have set alike, and
travels in pieces where it exceeds a datagram. Membership is static: without `member_failed` a crashed member
stops stability, and senders block; so they do where somebody has set otherwise what must be alike.
"""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.confirming import Asked, Confirming
from semcast.core.events import NotAdmitted, ViewChange
from semcast.core.heldback import HeldBack
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.reader import Reader
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.obsolescence import Purging
from semcast.protocols.pieces import Piece, Puzzles, in_pieces
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Exchange, SrmTimer, Window
from semcast.protocols.semantic.frames import Gossip
from semcast.protocols.semantic.rounds import SafetyRounds, StabilityRounds
from semcast.protocols.semantic.settings import Settings
from semcast.protocols.semantic.stops import Stops
from semcast.wire.limits import check_message

STOP_LASTS: Nanos = SECOND
"""How long a stop counts that is not repeated: whoever said it may have crashed."""
_SLOWEST = 8
"""Doublings after which gossip in vain is as slow as it gets; its ordinary period is shorter than that."""


class SemanticMulticast(Stack):
    """One member of a group with static membership; `members` is the same list everywhere."""

    buffers_kind: ClassVar[type[Buffers]] = Buffers
    exchange_kind: ClassVar[type[Exchange]] = Exchange

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: Settings, rng: Random, out: Outbox
    ) -> None:
        self.members = tuple(members)
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.buffers = self.buffers_kind(members, settings, self.stats, out)
        if me not in self.buffers.ranks:
            raise ValueError(f"{me} is not among the members: membership is static here")
        size = len(self.members)
        self.f = (size - 1) // 2
        self._me = self.buffers.ranks[me]
        self._rng = rng
        self.backlog = self.buffers.backlog
        self.stops = Stops(me, self.backlog, lambda _member: False)
        window = Window(self._me, self.buffers, self.stops)
        self.exchange = self.exchange_kind(
            self._me, self.buffers, window, rng, out, self.stats, settings.window
        )
        self.stability = StabilityRounds(self._me, size)
        self.safety: SafetyRounds | None = None
        if settings.uniform or settings.purging is not Purging.OFF:
            self.safety = SafetyRounds(self._me, size, self.votes_needed())
        self._confirming = Confirming(out)
        self._terms = settings.terms()
        self._misfits: dict[int, str] = {}  # by rank, what they have set otherwise
        self._puzzles = Puzzles(Gossip)
        self._failed = [False] * size
        self._gossip_at: Nanos = 0
        self._told = 0  # what was known when that grew last
        self._in_vain = 0  # gossip since
        self._over = False  # the others were told to stop

    @property
    def reader(self) -> Reader:
        """The program."""
        return self.backlog.reader

    @reader.setter
    def reader(self, reader: Reader) -> None:
        self.backlog.reader = reader

    def phase(self) -> str:
        """Membership is static: there is only one."""
        return "operational"

    def view(self) -> View:
        """And one view."""
        return View(1, self.members)

    def start(self, now: Nanos) -> None:
        """Announce the static view and begin to gossip, out of step with the others."""
        self.out.deliver(ViewChange(self.view(), joined=self.members))
        self._plan_gossip(now + self._rng.randrange(self.settings.gossip_period))

    # Inputs

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast in order what flow control allows; an annotation speaks for a single payload."""
        sizes = self.exchange.check(payloads, annotation, safe=safe)
        if sum(sizes) > self.settings.max_message < (largest := max(sizes)):
            raise ValueError(f"payload of {largest} bytes: max_message is {self.settings.max_message}")
        if annotation is not None:
            check_message(payloads[0], annotation)
        accepted = self.exchange.multicast_in_frames(payloads, sizes, annotation)
        self._look_at_backlog(now)
        self._hurry(now)
        return accepted

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:  # noqa: ARG002
        """About the message taken last; positions are those among the messages of this member."""
        self._confirming.ask(Asked(ticket, self.buffers.queued[self._me], safe))

    def settle_confirmations(self) -> None:
        """Its own messages are queued at once; uniform delivery waits until they are safe."""
        buffers, me = self.buffers, self._me
        delivered = buffers.certain_upto(me) if self.settings.uniform else buffers.queued[me]
        self._confirming.settle(self.view(), delivered=delivered, safe=buffers.stable[me])

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """One frame."""
        self.on_frames(now, source, (frame,))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member in a row; what no correct member sends is dropped and counted."""
        rank = self.buffers.ranks.get(source)
        if rank is None or rank == self._me:
            self.stats.malformed += len(frames)
        else:
            for frame in frames:
                heard = rank not in self._misfits and self.exchange.on_frame(now, rank, frame)
                if not heard:
                    self._on_other_frame(now, rank, frame)
            self.exchange.wake()
            self._look_at_backlog(now)
        self._hurry(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Gossip, or ask for what is missing."""
        if timer is SrmTimer.GOSSIP:
            self._gossip(now)
        else:
            assert timer is SrmTimer.REQUEST
            self.exchange.request(now)
        self.exchange.wake()
        self._look_at_backlog(now)

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        """Hand over up to `most` messages (t4, TP3)."""
        batches = self.buffers.take(most)
        if batches:
            self._room_freed(now)
        return batches

    def on_reader(self, now: Nanos) -> None:
        """The program waits, or does not any more: there is more room, or less."""
        self._room_freed(now)

    def behind(self) -> bool:
        """There is only one view."""
        return False

    def queued(self) -> int:
        """D: messages that wait for the program here, and what its mailbox holds beyond its bound."""
        return self.backlog.messages

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits for the program."""
        self.buffers.purge_late()

    def queued_bytes(self) -> int:
        """Bytes of these."""
        return self.backlog.bytes

    def overflowing(self) -> bool:
        """Whether queue and reserve are full of what waits for the program."""
        return self.backlog.overflowing()

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending, if it has been refused."""
        if not self.exchange.refuses:
            return None
        if self._misfits:
            rank, difference = next(iter(self._misfits.items()))
            return HeldBack(self.members[rank], f"its settings differ: {difference}")
        by = self.stops.binding()
        if by is not None or (self.backlog.full() and not self.backlog.waits()):
            return HeldBack(by or self.members[self._me], "its program does not read")
        last = self.buffers.queued[self._me]
        lacking = [rank for rank, row in enumerate(self.exchange.repairs.received) if row[self._me] < last]
        others = [rank for rank in lacking if rank != self._me and not self._failed[rank]]
        return HeldBack(self.members[others[0]] if others else None, "it lacks messages")

    def _room_freed(self, now: Nanos) -> None:
        self.exchange.room_freed(now)
        self.exchange.wake()
        self._look_at_backlog(now)

    def deliverable(self) -> bool:
        """Whether a message waits for the application and may be handed over."""
        return self.buffers.deliverable()

    def buffered(self) -> int:
        """Distinct messages in all buffers, counted anew in the buffers themselves."""
        return self.buffers.buffered()

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Take a crashed member out of stability."""
        rank = self.buffers.ranks.get(member)
        if rank is None or self._failed[rank]:
            return
        self._failed[rank] = True
        self.stability.forget(rank)
        self.exchange.repairs.forget(now, rank)
        self._track(now)
        self.exchange.room_freed(now)
        self.exchange.wake()

    # How messages become safe

    def votes_needed(self) -> int:
        """Members that must have queued a message before it is safe."""
        return self.f + 1

    def safety_vote(self) -> list[int]:
        """What this member vouches for: contiguous prefixes queued for delivery, not mere receipt."""
        return self.buffers.queued

    # Stability, safety, purging of the retransmission buffers

    def _gossip(self, now: Nanos) -> None:
        self.stops.expire(now - STOP_LASTS)
        self.stability.vote(self.buffers.queued)
        if self.safety is not None:
            self.safety.vote(self.safety_vote())
        self._track(now)
        safety = None if self.safety is None else self.safety.frame()
        if self.backlog.over():
            self.buffers.purge_late()
        before, self._over = self._over, self.backlog.over()
        queued = list(self.buffers.queued)
        parts = in_pieces(Gossip(queued, self.stability.frame(), self._terms, safety, self._over))
        others = [rank for rank in range(len(self.members)) if rank != self._me and not self._failed[rank]]
        fanout = self.settings.gossip_fanout if self._over == before else len(others)  # a stop is for all
        for rank in self._rng.sample(others, min(fanout, len(others))):
            self.stats.control_frames += 1
            for part in parts:
                self.out.send(self.members[rank], part)
        self._plan_gossip(now + self.settings.gossip_period)
        self._in_vain += 1
        self._hurry(now)

    def _plan_gossip(self, at: Nanos) -> None:
        self._gossip_at = at
        self.out.set_timer(SrmTimer.GOSSIP, at)

    def _hurry(self, now: Nanos) -> None:
        """Somebody may wait to hear that everybody has what is kept here; less and less often in vain."""
        busy = self.settings.gossip_busy
        if not busy or not self.buffers.occupancy.messages:
            return
        known = self._known()
        if known != self._told:
            self._told, self._in_vain = known, 0
        beyond = self._in_vain - len(self.members)  # a round takes some gossip of everybody
        soon = now + (busy << min(max(beyond, 0), _SLOWEST))
        if soon < self._gossip_at:
            self._plan_gossip(soon)

    def _known(self) -> int:
        """Grows with whatever is queued here, and found stable or safe."""
        safe = 0 if self.safety is None else sum(self.safety.result)
        return sum(self.buffers.queued) + sum(self.stability.result) + safe

    def _look_at_backlog(self, now: Nanos) -> None:
        """Tell the others to stop, or that they need not any more."""
        over = self.backlog.over()
        if over:
            self.buffers.purge_late()
            over = self.backlog.over()
        if over != self._over and self._gossip_at > now:
            self._plan_gossip(now)

    def _on_other_frame(self, now: Nanos, source: int, frame: Frame) -> None:
        """Gossip, whole or in pieces. Of who is refused nothing else is heard: it may have been set right."""
        whole: Frame | None = frame
        if isinstance(frame, Piece):
            data = self._puzzles.add(self.members[source], frame)
            if data is None:
                return
            whole = self._puzzles.whole(data, frame.digest)
        if isinstance(whole, Gossip):
            if self._agrees(source, whole):
                self._on_gossip(now, source, whole)
        elif source in self._misfits:
            self.stats.stale += 1
        else:
            self.stats.malformed += 1

    def _agrees(self, source: int, frame: Gossip) -> bool:
        """Whether somebody has set alike what must be alike; who has not is refused until it has."""
        difference = self._terms.differs(frame.terms)
        if difference is None:
            self._misfits.pop(source, None)
            return True
        self.stats.refused_members += 1
        self._misfits[source] = difference
        self.out.deliver(NotAdmitted(self.members[source], f"its settings differ: {difference}"))
        return False

    def _on_gossip(self, now: Nanos, source: int, frame: Gossip) -> None:
        if not self._credible(frame):
            self.stats.malformed += 1
            return
        self.stops.heard(now, self.members[source], stop=frame.stop)
        self.exchange.repairs.received[source] = frame.received
        self.exchange.hear_of(now, frame.received)
        self.stability.merge(frame.stability, self.buffers.queued)
        if self.safety is not None and frame.safety is not None:
            self.safety.merge(frame.safety, self.safety_vote())
        self._track(now)

    def _credible(self, frame: Gossip) -> bool:
        """Nobody can have queued what is far beyond us, nor found stable what we have not queued."""
        size = len(self.members)
        if len(frame.received) != size or not self.stability.well_formed(frame.stability):
            return False
        window = self.settings.window
        most = [seq + window for seq in self.buffers.queued]
        most[self._me] = self.buffers.queued[self._me]
        if any(map(int.__gt__, frame.received, most)):
            return False
        if any(map(int.__gt__, frame.stability.result, self.buffers.queued)):
            return False
        if frame.safety is None or self.safety is None:
            return True
        return self.safety.well_formed(frame.safety) and not any(map(int.__gt__, frame.safety.result, most))

    def _track(self, now: Nanos) -> None:
        """Conclude rounds and act on what they decided."""
        self.stability.conclude(self.buffers.queued)
        if self.safety is not None:
            self.safety.conclude(self.safety_vote())
            self.buffers.safe = self.safety.result
        held = self.buffers.occupancy.messages
        stable = list(self.buffers.stable)
        for rank, upto in enumerate(self.stability.result):
            if upto > self.buffers.stable[rank]:
                self.buffers.trim(rank, min(upto, self.buffers.queued[rank]))
        self.buffers.purge_retained()
        if self.buffers.occupancy.messages < held or self.buffers.stable != stable:
            self.exchange.room_freed(now)
