"""How messages get around: they are multicast once, receivers ask for what they miss, anybody answers.

The part of S-RM (Pereira 2002, 4.3 and 5.2.1) that does not depend on how a member learns what others
have: multicast and reception, receiver-initiated repair, purge knowledge in the answers, flow control.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Blocked, Unblocked
from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.statistics import Statistics
from semcast.protocols.semantic.answers import LENGTH, answers, merged
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.frames import Data, Notice, Request
from semcast.protocols.semantic.repair import Repairs
from semcast.protocols.semantic.stops import Stops
from semcast.wire.annotations import from_wire, to_wire
from semcast.wire.limits import MAX_BITMAP, MAX_HEADS

_GUESS = 100
"""Bytes of a message of whom nothing has come."""


class SrmTimer(Timer):
    """What S-RM waits for."""

    GOSSIP = "gossip"
    REQUEST = "request"


class Window:
    """How far a sender may be ahead of what everybody has, and whether it may send at all."""

    def __init__(self, me: int, buffers: Buffers, stops: Stops) -> None:
        self._me = me
        self._buffers = buffers
        self._stops = stops

    def allowance(self) -> int:
        """How many more messages of this member may be under way, whether there is room for them or not."""
        if self._stops.binding() is not None:
            return 0
        me, buffers = self._me, self._buffers
        return buffers.stable[me] + buffers.settings.window - buffers.queued[me]


class Exchange:
    """One member's part in it.

    Args:
        me: rank of this member.
        buffers: where messages are kept.
        window: how many may be under way.
        rng: where chance comes from.
        out: what it wants from the world.
        stats: where to count.
        reach: how far a correct member can be ahead of another.
        announce: told of messages of this member when they have left.
    """

    def __init__(
        self,
        me: int,
        buffers: Buffers,
        window: Window,
        rng: Random,
        out: Outbox,
        stats: Statistics,
        reach: int,
        announce: Callable[[Batch], None] | None = None,
    ) -> None:
        self.reach = reach
        self.refuses = False
        """Whether a multicast was refused and its sender waits to be told to try again."""
        self._turned_away: Batch | None = None  # the message that was refused
        self._me = me
        self._members = buffers.members
        self._settings = buffers.settings
        self._buffers = buffers
        self._window = window
        self._rng = rng
        self._out = out
        self._stats = stats
        self._announce = announce
        size = len(buffers.members)
        self.repairs = Repairs(me, size, self._settings, rng)
        self._request_at: Nanos | None = None
        self._weights = [_GUESS] * size  # by rank, bytes of a message, as the last ones were
        self._rests: dict[int, Nanos] = {}  # by rank, until when nothing is asked for

    # Multicast

    def check(self, payloads: Sequence[bytes], annotation: Annotation | None, *, safe: bool) -> list[int]:
        """Raise ValueError for what nobody can send; returns the sizes of the messages."""
        if safe:
            raise ValueError("safe delivery is a matter of the whole group here: see uniform agreement")
        if self._me not in self._buffers.senders:
            raise ValueError(f"{self._members[self._me]} is not among the senders of this group")
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        return list(map(len, payloads))

    def multicast_in_frames(
        self, payloads: Sequence[bytes], sizes: Sequence[int], annotation: Annotation | None
    ) -> int:
        """As many as flow control allows, in order; returns how many."""
        accepted = 0
        while accepted < len(payloads):
            end = frame_end(sizes, accepted, self._settings.frame_bytes, LENGTH)
            accepted += self.multicast(list(payloads[accepted:end]), annotation, sum(sizes[accepted:end]))
            if accepted < end:
                self.refuse()
                break
        return accepted

    def multicast(
        self, payloads: list[bytes], annotation: Annotation | None, size: int, items: list[str] | None = None
    ) -> int:
        """One frame of so many bytes: queue here first (t1, t3 for itself), then send to everybody."""
        rank, buffers = self._me, self._buffers
        first = buffers.queued[rank] + 1
        head = buffers.order.head()
        batch = Batch(self._members[rank], first, payloads, annotation, size, head, None, 0, items)
        allowed = min(self._window.allowance(), len(payloads))
        taken = buffers.enqueue(rank, batch.cut(first, first + allowed - 1)) if allowed > 0 else 0
        if taken:
            self.send(batch.cut(first, first + taken - 1))
        if taken < len(payloads):
            self._turned_away = batch.cut(first + taken, first + taken)
        return taken

    def send(self, batch: Batch) -> None:
        """Messages of this member are queued here: send them to everybody at once."""
        self.transmit(batch)
        self._buffers.order.sent()
        if self._announce is not None:
            self._announce(batch)

    def transmit(self, batch: Batch) -> None:
        """The same for pieces of a message, that mean nothing by themselves."""
        self._buffers.high[self._me] = self._buffers.queued[self._me]
        self._stats.sent += len(batch.payloads)
        self._out.multicast(_data(self._me, batch))

    def refuse(self) -> None:
        """Say that who sends must wait."""
        if not self.refuses:
            self.refuses = True
            self._stats.blocked += 1
            self._out.deliver(Blocked())

    # Reception

    def on_frame(self, now: Nanos, source: int, frame: Frame) -> bool:
        """Messages, requests and what is known of purged ones; False for any other frame."""
        if isinstance(frame, Data):
            self.on_data(now, frame)
        elif isinstance(frame, Request):
            self._on_request(source, frame)
        elif isinstance(frame, Notice):
            self.on_notice(now, frame)
        else:
            return False
        return True

    def on_data(self, now: Nanos, frame: Data) -> None:
        """Messages of somebody; what no correct member sends is dropped and counted."""
        batch, buffers = self._batch(frame), self._buffers
        if batch is None:
            self._stats.malformed += 1
            return
        rank = frame.sender
        if buffers.frozen:
            buffers.lay_aside(rank, batch)
        else:
            refused, here = self._stats.refused, buffers.here_upto(rank)
            batch = self._receive(rank, batch)
            if self._stats.refused > refused and buffers.here_upto(rank) == here:
                self._rest(now, rank)
        # What came and finds no room was not lost: to wait for it would starve what does find room.
        self.repairs.arrived(now, rank, range(batch.first, batch.last + 1))
        buffers.advance(rank)
        if buffers.lacks(rank):
            self._plan_repair(now, rank)

    def _receive(self, rank: int, batch: Batch) -> Batch:
        """Queue or cache messages; returns those that were not queued before."""
        buffers = self._buffers
        buffers.high[rank] = max(buffers.high[rank], batch.last)
        following = buffers.here_upto(rank) + 1
        if batch.first <= following <= batch.last and buffers.order.ready(rank, batch.head):
            batch = batch.cut(following, batch.last)
            taken = 0 if buffers.door[rank] else buffers.enqueue(rank, batch)
            if taken < len(batch.payloads):
                buffers.keep_at_door(rank, batch.cut(following + taken, batch.last))
        else:
            buffers.cache(rank, batch)
        return batch

    def _batch(self, frame: Data) -> Batch | None:
        """What a frame brings; None if no correct member can have sent it."""
        if not self._plausible(frame):
            return None
        annotation, payloads = from_wire(frame.annotation), frame.payloads
        size, limit = sum(map(len, payloads)), self._settings.max_message
        if size > limit and max(map(len, payloads)) > limit:
            return None
        self._weights[frame.sender] = size // len(payloads)
        sender = self._members[frame.sender]
        return Batch(
            sender, frame.first, payloads, annotation, size, frame.head, None, frame.left, frame.items
        )

    def _plausible(self, frame: Data) -> bool:
        """Whether a correct member can have sent this."""
        rank, first, count, buffers = frame.sender, frame.first, len(frame.payloads), self._buffers
        if rank not in buffers.senders or first < 1:
            return False
        if (frame.annotation is not None or frame.left) and (count != 1 or frame.items is not None):
            return False
        if frame.items is not None and len(frame.items) != count:
            return False
        most = buffers.queued[rank] if rank == self._me else buffers.queued[rank] + self.reach
        return first + count - 1 <= most and buffers.order.sound(frame.head)

    def on_notice(self, now: Nanos, frame: Notice) -> None:
        """Messages that others purged behind safe ones."""
        rank, buffers = frame.sender, self._buffers
        bits = int.from_bytes(frame.bitmap, "little")
        last = frame.base + bits.bit_length() - 1
        known_upto = max(last, frame.known)
        known = rank in buffers.senders and rank != self._me and frame.base >= 1 and bits > 0
        known = known and all(buffers.order.sound(head) for _, head in frame.heads)
        if not known or known_upto > buffers.queued[rank] + self.reach:
            self._stats.malformed += 1
            return
        buffers.replaced_upto[rank] = max(buffers.replaced_upto[rank], known_upto)
        skips = buffers.skips[rank]
        for offset in range(bits.bit_length()):
            seq = frame.base + offset
            if bits >> offset & 1 and seq > buffers.queued[rank]:
                skips.add(seq)
        self.repairs.arrived(now, rank, skips)
        buffers.heads[rank].update((seq, head) for seq, head in frame.heads if seq in skips)
        buffers.high[rank] = max(buffers.high[rank], last)
        buffers.advance(rank)
        if buffers.high[rank] > buffers.queued[rank]:
            self.plan_request(now)

    def hear_of(self, now: Nanos, received: Sequence[int]) -> None:
        """What others have queued exists: so the last message of a sender is missed, too."""
        buffers = self._buffers
        behind = False
        for rank, seq in enumerate(received):
            buffers.high[rank] = max(buffers.high[rank], seq)
            behind = behind or buffers.high[rank] > buffers.queued[rank]
        if behind:
            self.plan_request(now + self._settings.request_delay)

    # Repair

    def plan_request(self, at: Nanos) -> None:
        """Ask for what is missing then, at the latest."""
        if self._request_at is None or at < self._request_at:
            self._request_at = at
            self._out.set_timer(SrmTimer.REQUEST, at)

    def _plan_repair(self, now: Nanos, rank: int) -> None:
        """Answers are followed by the next request at once; else a gap may be mere reordering."""
        self.plan_request(now if self.repairs.busy(rank) else now + self._settings.request_delay)

    def _rest(self, now: Nanos, rank: int) -> None:
        """A message came, and the program has no room for it: asked for again at once it would come in vain.

        Only for a while: what comes next may replace what waits for the program.
        """
        if self._buffers.backlog.full():
            self._rests[rank] = now + self._settings.gossip_period

    def _end_rests(self, now: Nanos) -> None:
        if self._buffers.frozen:
            self._rests.clear()
        for rank in [rank for rank, until in self._rests.items() if until <= now]:
            del self._rests[rank]

    def request(self, now: Nanos) -> None:
        """The time has come: ask for what is missing and could be accepted, in turn among the senders."""
        self._request_at = None
        self.repairs.expire(now)
        if self._rests:
            self._end_rests(now)
        buffers, size = self._buffers, len(self._members)
        start = self._rng.randrange(size)
        for rank in [*range(start, size), *range(start)]:
            if buffers.high[rank] > buffers.queued[rank] and rank not in self._rests:
                missing, handful = self._missing(rank), self._handful(rank)
                for whom, request in self.repairs.ask(now, rank, missing, handful):
                    self._stats.requested += sum(last - first + 1 for first, last in request.spans)
                    self._out.send(self._members[whom], request)
        self._stats.request_timeouts = self.repairs.timeouts
        due = min((at for at in (self.repairs.due(), *self._rests.values()) if at is not None), default=None)
        if due is not None:
            self.plan_request(max(due, now + 1))

    @property
    def requests(self) -> bool:
        """Whether something will be asked for."""
        return self._request_at is not None

    def _handful(self, rank: int) -> int:
        """Messages of `rank` that a frame carries, about."""
        return max(1, self._settings.frame_bytes // (self._weights[rank] + LENGTH))

    def _room_for_repairs(self, rank: int) -> int:
        """As many messages of `rank` as may be queued, or as are likely to fit."""
        buffers = self._buffers
        if not self._settings.hopeful:
            return buffers.room(rank)
        likely = min(max(self._weights[rank], 1), self._settings.max_message)
        return max(buffers.room(rank), buffers.occupancy.room(rank, size=likely))

    def _missing(self, rank: int) -> list[int]:
        """The next messages that are missing, no more than there is room for, or can be asked for soon."""
        buffers = self._buffers
        if buffers.frozen:
            return buffers.lacking(rank)
        missing: list[int] = []
        seq = buffers.here_upto(rank)
        room = self._room_for_repairs(rank) - (seq - buffers.queued[rank])
        most = 2 * self._settings.repair_frames() * self._handful(rank)
        last = min(buffers.high[rank], buffers.queued[rank] + self.reach)
        pending = buffers.pending[rank]
        skips = buffers.skips[rank]
        while seq < last and room > 0 and len(missing) < most:
            seq += 1
            if seq not in skips:
                room -= 1
                if seq not in pending:
                    missing.append(seq)
        return missing

    def _on_request(self, source: int, frame: Request) -> None:
        rank = frame.sender
        if rank >= len(self._members):
            self._stats.malformed += 1
            return
        spans = merged(frame.spans)
        if not spans:
            return
        first, last = spans[0][0], spans[-1][1]
        held = self._buffers.held_between(rank, first, last)
        for part in answers(held, spans, self._settings.frame_bytes, self._settings.repair_bytes):
            self._stats.retransmitted += len(part.payloads)
            self._out.send(self._members[source], _data(rank, part))
        self._announce_purged(source, rank, first)

    def _announce_purged(self, dest: int, rank: int, first: int) -> None:
        """Purge knowledge for one who still misses the messages."""
        purged = self._buffers.purged_between(rank, first, first + 8 * MAX_BITMAP - 1)
        heads: list[tuple[int, bytes]] = []
        if self._buffers.heads[rank]:
            purged, heads = self._with_heads(rank, purged)
        if purged:
            base = purged[0]
            bits = sum(1 << (seq - base) for seq in purged)
            bitmap = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
            known = max(self._buffers.queued[rank], self._buffers.replaced_upto[rank])
            self._out.send(self._members[dest], Notice(rank, base, bitmap, heads, known))

    def _with_heads(self, rank: int, purged: list[int]) -> tuple[list[int], list[tuple[int, bytes]]]:
        """As many of the purged messages as have room in a frame, with their heads, and these."""
        known = self._buffers.heads[rank]
        heads: list[tuple[int, bytes]] = []
        used = 0
        for place, seq in enumerate(purged):
            head = known.get(seq)
            used += 0 if head is None else len(head) + 8
            full = used + (seq - purged[0]) // 8 > self._settings.frame_bytes
            if heads and (full or len(heads) == MAX_HEADS):
                return purged[:place], heads
            if head is not None:
                heads.append((seq, head))
        return purged, heads

    # The end of a view

    def hurry(self, resend: Nanos) -> None:
        """Everybody waits for who lacks something: ask impatiently from now on."""
        impatient = msgspec.structs.replace(self._settings, rto_initial=resend, rto_max=8 * resend)
        received = self.repairs.received
        self.repairs = Repairs(self._me, len(self._members), impatient, self._rng)
        self.repairs.received = received

    def want(self, now: Nanos, upto: Sequence[int], of: int | None) -> None:
        """Fetch what is missing up to there, and lay it aside. The member of rank `of` has it."""
        if of is not None:
            self.repairs.received[of] = list(map(max, self.repairs.received[of], upto))
        if self._buffers.want(upto):
            self.plan_request(now)

    # Flow control

    def room_freed(self, now: Nanos) -> None:
        """What was missing for want of room may be asked for again."""
        if any(map(int.__gt__, self._buffers.high, self._buffers.queued)):
            if self._rests and self._buffers.backlog.room(1, 0):
                self._rests.clear()
            self.plan_request(now)

    def wake(self) -> None:
        """After every input: whoever waited for room, or for another message, and has it now goes on."""
        self._buffers.advance_all()
        if self.refuses and self._may_multicast():
            self.refuses, self._turned_away = False, None
            self._out.deliver(Unblocked())

    def _may_multicast(self) -> bool:
        """Whether the message that was refused would be taken now."""
        buffers, refused = self._buffers, self._turned_away
        if buffers.frozen or self._window.allowance() <= 0:
            return False
        return buffers.room(self._me) > 0 if refused is None else buffers.fits(self._me, refused)


def _data(rank: int, batch: Batch) -> Data:
    note = to_wire(batch.annotation)
    return Data(rank, batch.first, batch.payloads, note, batch.head, batch.left, batch.items)


def frame_end(sizes: Sequence[int], start: int, room: int, overhead: int) -> int:
    """Where the frame ends that begins with message `start`: at least one is in it.

    As many are tried as find room if all are like the first: what is refused is not measured in vain.

    >>> [frame_end([10, 10, 10, 80, 10], start, 30, 1) for start in (0, 2, 3, 4)]
    [2, 3, 4, 5]
    """
    most = max(1, room // (sizes[start] + overhead))
    tried = sizes[start : start + most]
    if tried.count(tried[0]) == len(tried):
        return start + len(tried)
    ends = list(accumulate(map(overhead.__add__, tried)))
    return start + max(bisect_right(ends, room), 1)
