"""Dissemination: messages are multicast once, receivers ask for what they miss, anybody answers.

The part of S-RM (Pereira 2002, 4.3 and 5.2.1) that does not depend on how a member learns what others
have: multicast and reception, receiver-initiated repair, purge knowledge in the answers, flow control.
Subclasses track stability and safety, and say so in `_track`.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from semcast.core.annotations import Annotation
from semcast.core.events import Blocked, Unblocked
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.protocols.semantic.answers import LENGTH, answers, merged
from semcast.protocols.semantic.buffers import MemberBuffers
from semcast.protocols.semantic.frames import Data, Notice, Request
from semcast.protocols.semantic.repair import Repairs
from semcast.protocols.semantic.settings import Settings
from semcast.wire.annotations import from_wire, to_wire
from semcast.wire.limits import MAX_BITMAP, MAX_HEADS, check_message

_GUESS = 100
"""Bytes of a message of whom nothing has come."""


class SrmTimer(Timer):
    """What S-RM waits for."""

    GOSSIP = "gossip"
    REQUEST = "request"


class Dissemination(MemberBuffers, ABC):
    """One member among `members`, the same list everywhere."""

    def __init__(
        self,
        me: MemberId,
        members: Sequence[MemberId],
        settings: Settings,
        rng: Random,
        out: Outbox,
        base: Sequence[int] | None = None,
    ) -> None:
        super().__init__(members, settings, out, base)
        if me not in self._ranks:
            raise ValueError(f"{me} is not among the members: membership is static here")
        size = len(self.members)
        self.f = (size - 1) // 2
        self._me = self._ranks[me]
        self._rng = rng
        self.repairs = Repairs(self._me, size, settings, rng)
        self._blocked = False
        self._request_at: Nanos | None = None
        self._weights = [_GUESS] * size  # by rank, bytes of a message, as the last ones were
        self.reach = settings.window
        """How far a correct member can be ahead of another."""

    # Inputs

    def multicast(
        self,
        _now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast in order what flow control allows; an annotation speaks for a single payload."""
        largest = self._check(payloads, annotation, safe=safe)
        if largest > self.settings.max_message:
            raise ValueError(f"payload of {largest} bytes: max_message is {self.settings.max_message}")
        if annotation is not None:
            check_message(payloads[0], annotation)
        return self._multicast_in_frames(payloads, annotation)

    def _check(self, payloads: Sequence[bytes], annotation: Annotation | None, *, safe: bool) -> int:
        """Raise ValueError for what nobody can send; returns the size of the largest message."""
        if safe:
            raise ValueError("safe delivery is a matter of the whole group here: see uniform agreement")
        if self._me not in self._senders:
            raise ValueError(f"{self.members[self._me]} is not among the senders of this group")
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        return max(map(len, payloads), default=0)

    def _multicast_in_frames(self, payloads: Sequence[bytes], annotation: Annotation | None) -> int:
        sizes, accepted = list(map(len, payloads)), 0
        while accepted < len(payloads):
            end = frame_end(sizes, accepted, self.settings.frame_bytes, LENGTH)
            accepted += self._multicast(list(payloads[accepted:end]), annotation)
            if accepted < end:
                self._block()
                break
        return accepted

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """One frame."""
        self.on_frames(now, source, (frame,))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member in a row; what no correct member sends is dropped and counted."""
        rank = self._ranks.get(source)
        if rank is None or rank == self._me:
            self.stats.malformed += len(frames)
            return
        for frame in frames:
            if isinstance(frame, Data):
                self._on_data(now, frame)
            elif isinstance(frame, Request):
                self._on_request(rank, frame)
            elif isinstance(frame, Notice):
                self._on_notice(now, frame)
            else:
                self._on_tracking(now, rank, frame)
        self._wake()

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Gossip, or ask for what is missing."""
        if timer is SrmTimer.GOSSIP:
            self._gossip(now)
        else:
            assert timer is SrmTimer.REQUEST
            self._request_at = None
            self._request(now)
        self._wake()

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        """Hand over up to `most` messages (t4, TP3)."""
        batches = self._take(most)
        if batches:
            self._room_freed(now)
            self._wake()
        return batches

    # How a member learns what others have

    def votes_needed(self) -> int:
        """Members that must have queued a message before it is safe."""
        return self.f + 1

    @abstractmethod
    def _on_tracking(self, now: Nanos, source: int, frame: Frame) -> None:
        """A frame about what `source` has; any other is malformed."""

    @abstractmethod
    def _gossip(self, now: Nanos) -> None:
        """Tell others what this member has, and plan to do so again."""

    # Multicast and reception

    def _multicast(
        self, payloads: list[bytes], annotation: Annotation | None, items: list[str] | None = None
    ) -> int:
        """Queue here first (t1, t3 for itself), then send to everybody at once."""
        rank = self._me
        first = self.queued[rank] + 1
        allowed = self.allowance()
        if allowed <= 0:
            return 0
        head, size = self._next_head(), sum(map(len, payloads))
        batch = Batch(self.members[rank], first, payloads, annotation, size, head, None, 0, items)
        if allowed < len(payloads):
            batch = batch.cut(first, first + allowed - 1)
        taken = self._enqueue(rank, batch)
        if taken:
            self._sent(batch.cut(first, first + taken - 1))
        return taken

    def _sent(self, batch: Batch) -> None:
        """Messages of this member are queued here: send them to everybody at once."""
        self.high[self._me] = self.queued[self._me]
        self.stats.sent += len(batch.payloads)
        self.out.multicast(self._data(self._me, batch))

    def _data(self, rank: int, batch: Batch) -> Data:
        note = to_wire(batch.annotation)
        return Data(rank, batch.first, batch.payloads, note, batch.head, batch.left, batch.items)

    def _next_head(self) -> bytes:
        """The head of the next messages of this member."""
        return b""

    def _on_data(self, now: Nanos, frame: Data) -> None:
        batch = self._batch(frame)
        if batch is None:
            self.stats.malformed += 1
            return
        rank = frame.sender
        self.high[rank] = max(self.high[rank], batch.last)
        following = self.queued[rank] + 1
        if batch.first <= following <= batch.last and self.ready(rank, batch.head):
            batch = batch.cut(following, batch.last)
            taken = self._enqueue(rank, batch)
            self.stats.refused += len(batch.payloads) - taken
        else:
            self._cache(rank, batch)
        # What came and finds no room was not lost: to wait for it would starve what does find room.
        self.repairs.arrived(now, rank, range(batch.first, batch.last + 1))
        self._advance(rank)
        if self.high[rank] > self.queued[rank]:
            self._plan_repair(now, rank)

    def _batch(self, frame: Data) -> Batch | None:
        """What a frame brings; None if no correct member can have sent it."""
        if not self._plausible(frame):
            return None
        annotation, payloads = from_wire(frame.annotation), frame.payloads
        size, limit = sum(map(len, payloads)), self.settings.max_message
        if size > limit and max(map(len, payloads)) > limit:
            return None
        self._weights[frame.sender] = size // len(payloads)
        sender = self.members[frame.sender]
        return Batch(
            sender, frame.first, payloads, annotation, size, frame.head, None, frame.left, frame.items
        )

    def _plausible(self, frame: Data) -> bool:
        """Whether a correct member can have sent this."""
        rank, first, count = frame.sender, frame.first, len(frame.payloads)
        if rank not in self._senders or first < 1:
            return False
        if (frame.annotation is not None or frame.left) and (count != 1 or frame.items is not None):
            return False
        if frame.items is not None and len(frame.items) != count:
            return False
        most = self.queued[rank] if rank == self._me else self.queued[rank] + self.reach
        return first + count - 1 <= most

    # Repair

    def _plan_request(self, at: Nanos) -> None:
        if self._request_at is None or at < self._request_at:
            self._request_at = at
            self.out.set_timer(SrmTimer.REQUEST, at)

    def _plan_repair(self, now: Nanos, rank: int) -> None:
        """Answers are followed by the next request at once; else a gap may be mere reordering."""
        self._plan_request(now if self.repairs.busy(rank) else now + self.settings.request_delay)

    def _request(self, now: Nanos) -> None:
        """Ask for what is missing and could be accepted, in turn among the senders."""
        self.repairs.expire(now)
        size = len(self.members)
        start = self._rng.randrange(size)
        for rank in [*range(start, size), *range(start)]:
            if self.high[rank] > self.queued[rank]:
                missing, handful = self._missing(rank), self._handful(rank)
                for whom, request in self.repairs.ask(now, rank, missing, handful):
                    self.stats.requested += sum(last - first + 1 for first, last in request.spans)
                    self.out.send(self.members[whom], request)
        self.stats.request_timeouts = self.repairs.timeouts
        due = self.repairs.due()
        if due is not None:
            self._plan_request(max(due, now + 1))

    def _handful(self, rank: int) -> int:
        """Messages of `rank` that a frame carries, about."""
        return max(1, self.settings.frame_bytes // (self._weights[rank] + LENGTH))

    def _room_for_repairs(self, rank: int) -> int:
        """As many messages of `rank` as may be queued, or as are likely to fit."""
        if not self.settings.hopeful:
            return self.room(rank)
        likely = min(max(self._weights[rank], 1), self.settings.max_message)
        return max(self.room(rank), self.occupancy.room(rank, size=likely))

    def _missing(self, rank: int) -> list[int]:
        """The next messages that are missing, no more than there is room for, or can be asked for soon."""
        missing: list[int] = []
        room = self._room_for_repairs(rank)
        most = 2 * self.settings.repair_frames() * self._handful(rank)
        seq = self.queued[rank]
        last = min(self.high[rank], seq + self.reach)
        pending = self.pending[rank]
        skips = self.skips[rank]
        while seq < last and room > 0 and len(missing) < most:
            seq += 1
            if seq not in skips:
                room -= 1
                if seq not in pending:
                    missing.append(seq)
        return missing

    def _on_request(self, source: int, frame: Request) -> None:
        rank = frame.sender
        if rank >= len(self.members):
            self.stats.malformed += 1
            return
        spans = merged(frame.spans)
        if not spans:
            return
        first, last = spans[0][0], spans[-1][1]
        held = self._held_between(rank, first, last)
        for part in answers(held, spans, self.settings.frame_bytes, self.settings.repair_bytes):
            self.stats.retransmitted += len(part.payloads)
            self.out.send(self.members[source], self._data(rank, part))
        self._announce_purged(source, rank, first)

    def _sound(self, head: bytes) -> bool:
        """Whether a correct member can have written this head."""
        return not head

    def _announce_purged(self, dest: int, rank: int, first: int) -> None:
        """Purge knowledge for one who still misses the messages."""
        purged = self.purged_between(rank, first, first + 8 * MAX_BITMAP - 1)
        heads: list[tuple[int, bytes]] = []
        if self.heads[rank]:
            purged, heads = self._with_heads(rank, purged)
        if purged:
            base = purged[0]
            bits = sum(1 << (seq - base) for seq in purged)
            bitmap = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
            self.out.send(self.members[dest], Notice(rank, base, bitmap, heads))

    def _with_heads(self, rank: int, purged: list[int]) -> tuple[list[int], list[tuple[int, bytes]]]:
        """As many of the purged messages as have room for their heads in a frame, and these."""
        known = self.heads[rank]
        heads: list[tuple[int, bytes]] = []
        room = self.settings.frame_bytes
        for place, seq in enumerate(purged):
            if seq in known:
                room -= len(known[seq]) + 8
                if heads and (room < 0 or len(heads) == MAX_HEADS):
                    return purged[:place], heads
                heads.append((seq, known[seq]))
        return purged, heads

    def _on_notice(self, now: Nanos, frame: Notice) -> None:
        rank = frame.sender
        bits = int.from_bytes(frame.bitmap, "little")
        last = frame.base + bits.bit_length() - 1
        known = rank in self._senders and rank != self._me and frame.base >= 1 and bits > 0
        known = known and all(self._sound(head) for _, head in frame.heads)
        if not known or last > self.queued[rank] + self.reach:
            self.stats.malformed += 1
            return
        for offset in range(bits.bit_length()):
            seq = frame.base + offset
            if bits >> offset & 1 and seq > self.queued[rank]:
                self.skips[rank].add(seq)
        self.repairs.arrived(now, rank, self.skips[rank])
        self.heads[rank].update((seq, head) for seq, head in frame.heads if seq in self.skips[rank])
        self.high[rank] = max(self.high[rank], last)
        self._advance(rank)
        if self.high[rank] > self.queued[rank]:
            self._plan_request(now)

    def _hear_of(self, now: Nanos, received: list[int]) -> None:
        """What others have queued exists: so the last message of a sender is missed, too."""
        behind = False
        for rank, seq in enumerate(received):
            self.high[rank] = max(self.high[rank], seq)
            behind = behind or self.high[rank] > self.queued[rank]
        if behind:
            self._plan_request(now + self.settings.request_delay)

    # Flow control

    def _room_freed(self, now: Nanos) -> None:
        """What was missing for want of room may be asked for again."""
        if any(map(int.__gt__, self.high, self.queued)):
            self._plan_request(now)

    def _wake(self) -> None:
        """After every input: whoever waited for room and has it now goes on."""
        if self.occupancy.cached:
            for rank, pending in enumerate(self.pending):
                if self.queued[rank] + 1 in pending:
                    self._advance(rank)
        if self._blocked and self._may_multicast():
            self._blocked = False
            self.out.deliver(Unblocked())

    def allowance(self) -> int:
        """How many more messages of this member may be under way, whether there is room for them or not."""
        return self.stable[self._me] + self.settings.window - self.queued[self._me]

    def _may_multicast(self) -> bool:
        return self.allowance() > 0 and self.room(self._me) > 0

    def _block(self) -> None:
        if not self._blocked:
            self._blocked = True
            self.stats.blocked += 1
            self.out.deliver(Blocked())


def frame_end(sizes: Sequence[int], start: int, room: int, overhead: int) -> int:
    """Where the frame ends that begins with message `start`: at least one is in it.

    As many are tried as find room if all are like the first: what is refused is not measured in vain.

    >>> [frame_end([10, 10, 10, 80, 10], start, 30, 1) for start in (0, 2, 3, 4)]
    [2, 3, 4, 5]
    """
    most = max(1, room // (sizes[start] + overhead))
    ends = list(accumulate(map(overhead.__add__, sizes[start : start + most])))
    return start + max(bisect_right(ends, room), 1)
