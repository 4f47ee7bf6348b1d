"""The messages of one view: figure 4.3 over dissemination by datagrams.

Everybody tells everybody what it has queued (`Received`), which is also a sign of life: what all have queued
is stable, what f+1 have is safe. How it ends is in `ending.py`.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random

from semcast.core.annotations import Annotation, Item
from semcast.core.events import Purged, Sent
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.views import View
from semcast.obsolescence import Purging
from semcast.protocols.semantic.answers import LENGTH
from semcast.protocols.semantic.dissemination import Dissemination, SrmTimer, frame_end
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync.flow import Shares
from semcast.protocols.vsync.frames import Received
from semcast.protocols.vsync.orders import FifoOrder, Lines
from semcast.protocols.vsync.pieces import Assembly, cut
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.wire.limits import MAX_MESSAGE, check_message

OrderFactory = Callable[[Lines, int, int], FifoOrder]


class StreamTimer(Timer):
    """What a stream waits for besides S-RM's timers."""

    ORDER = "order"
    TELL = "tell"


class OpenStream(Dissemination):
    """One member's part in the messages of one view, until that is about to end."""

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
        super().__init__(me, view.members, settings.stream(), rng, Outbox(), base)
        self.vsync = settings
        self.frozen = False
        self._view = view
        self._suspects = suspects
        self._assembly = Assembly(self.largest)
        self.heard: set[int] = set()
        """Ranks of those who have been in this view."""
        self._shares = Shares(settings, len(view.members))
        self._greeted = {self._ranks[member] for member in newcomers if member != me}  # and not heard yet
        self._greeted_until: Nanos = 0
        self._taken_in_time = 0  # messages that an application which is not behind has taken by now
        self._unheard = 0  # messages queued since the others were told
        self._unheard_bytes = 0
        self._telling = False
        self.reach = 2 * self.settings.window  # commands may go beyond the window
        self._prompt = settings.uniform
        self.repairs.received = [list(base) for _ in view.members]
        self.order = order(self, view.id, position)

    @property
    def largest(self) -> int:
        """Bytes of the largest message: its pieces must find room together."""
        pieces = min(self.settings.window, self.settings.buffer_messages - len(self.members)) // 2
        return min(MAX_MESSAGE, self.settings.frame_bytes * max(pieces, 1))

    @property
    def rank(self) -> int:
        """Of this member."""
        return self._me

    def view(self) -> View:
        """Whose messages these are."""
        return self._view

    def start(self, now: Nanos) -> None:
        """Say hello to the others, and go on doing so, out of step with them."""
        self._greeted_until = now + self.vsync.greeting
        self._gossip(now)
        self.out.set_timer(SrmTimer.GOSSIP, now + 1 + self._rng.randrange(self.settings.gossip_period))

    # Inputs

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Nothing, once the view is about to change (t1)."""
        if self.frozen:
            self._block()
            return 0
        if self._check(payloads, annotation, safe=safe) > self.settings.max_message:
            taken = self._multicast_large(payloads, annotation)
        else:
            if annotation is not None:
                check_message(payloads[0], annotation)
            taken = self._multicast_in_frames(payloads, annotation)
        self._after_multicast(now)
        return taken

    def multicast_updates(self, now: Nanos, payloads: Sequence[bytes], items: Sequence[str]) -> int:
        """Updates, each of an item, in as few frames as they need."""
        for item in dict.fromkeys(items):
            check_message(b"", Item(item))
        weights = list(map(int.__add__, map(len, payloads), map(len, map(str.encode, items))))
        if max(weights) > self.settings.max_message:
            return self._multicast_one_by_one(now, payloads, items)
        taken = 0
        while taken < len(payloads) and not self.frozen:
            end = frame_end(weights, taken, self.settings.frame_bytes, 2 * LENGTH)
            taken += self._multicast(list(payloads[taken:end]), None, list(items[taken:end]))
            if taken < end:
                break
        if taken < len(payloads):
            self._block()
        self._after_multicast(now)
        return taken

    def _multicast_one_by_one(self, now: Nanos, payloads: Sequence[bytes], items: Sequence[str]) -> int:
        for taken, (payload, item) in enumerate(zip(payloads, items, strict=True)):
            if not self.multicast(now, [payload], Item(item)):
                return taken
        return len(payloads)

    def _after_multicast(self, now: Nanos) -> None:
        if len(self.members) == 1:
            self._track(now)  # nobody else will say anything
        self.order.settle(now)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Dispatch, and look after the order once they are all in."""
        super().on_frames(now, source, frames)
        self.order.settle(now)
        if self._unheard:
            self._plan_to_tell(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """S-RM's timers, and the order's."""
        if timer is StreamTimer.ORDER:
            self.order.tick(now)
        elif timer is StreamTimer.TELL:
            self._telling = False
            if self._unheard:
                self._tell()
        else:
            super().on_timer(now, timer)
        self.order.settle(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Who is there is for the failure detector to say."""

    def deliver(self, now: Nanos, most: int) -> list[Batch]:
        """Hand over messages; what only the order reads is left out."""
        found: list[Batch] = []
        while not found and len(self.to_deliver):
            batches = super().deliver(now, most)
            if not batches:
                break
            self.order.settle(now)
            found = self._assembly.whole([batch for batch in batches if not self.is_command(batch)])
        return found

    def is_command(self, batch: Batch) -> bool:
        """Whether only the order reads it."""
        return self.order.is_command(batch)

    # Large messages

    def _multicast_large(self, payloads: Sequence[bytes], annotation: Annotation | None) -> int:
        """One after the other; what is larger than a frame is cut."""
        check_message(b"", annotation)
        for payload in payloads:
            if len(payload) > self.largest:
                raise ValueError(
                    f"payload of {len(payload)} bytes: at most {self.largest} fit in the buffers"
                )
        for place, payload in enumerate(payloads):
            if len(payload) <= self.settings.frame_bytes:
                if not self._multicast_in_frames([payload], annotation):
                    return place
            elif not self._multicast_pieces(payload, annotation):
                self._block()
                return place
        return len(payloads)

    def _multicast_pieces(self, payload: bytes, annotation: Annotation | None) -> bool:
        """All pieces of a message, or none if there is no room for them together."""
        pieces = cut(payload, self.settings.frame_bytes)
        beyond = self.queued[self._me] - self.stable[self._me] + len(pieces) > self.settings.window
        if beyond or self.room(self._me) < len(pieces) or self.allowance() <= 0:
            return False
        sender, head = self.members[self._me], self.order.head()
        for left, piece in zip(range(len(pieces), 0, -1), pieces, strict=True):
            note = annotation if left == 1 else None
            batch = Batch(sender, self.queued[self._me] + 1, [piece], note, len(piece), head, None, left)
            self._admit(self._me, batch)
            super()._sent(batch)
            head = b""
        self.stats.sent -= len(pieces) - 1
        self.order.sent()
        whole = batch_of(sender, self.queued[self._me], [payload], annotation)
        self.out.deliver(Sent(whole, self._view.id))
        return True

    # Flow control

    def allowance(self) -> int:
        """Nothing before who joined is there; then the share of one sender among those who send."""
        if self._greeted:
            return 0
        mine, senders = self.retained[self._me], self._sending()
        if mine.bytes >= self._shares.bytes(senders):
            return 0
        return min(super().allowance(), self._shares.messages(senders) - len(mine))

    def _sending(self) -> int:
        """Members that have messages under way, this one included."""
        idle = self.queued[self._me] == self.stable[self._me]
        return sum(map(int.__gt__, self.queued, self.stable)) + idle

    def _purge_where_late(self) -> None:
        """Once a heartbeat, for who is lazy: is the application behind, or the group?"""
        if self.stats.delivered < self._taken_in_time:
            self.to_deliver.reclaim(max(len(self.to_deliver) - 1, 1))
            self._account_purged_from_delivery()
        self._taken_in_time = self.stats.delivered + len(self.to_deliver)
        if self._blocked or 2 * self.occupancy.messages > self.settings.buffer_messages:
            for retained in self.retained:
                retained.mature()

    # What others have

    def _gossip(self, now: Nanos) -> None:
        if now >= self._greeted_until:
            self._greeted.clear()
        self._purge_where_late()
        self._track(now)
        self._tell()
        self.out.set_timer(SrmTimer.GOSSIP, now + self.settings.gossip_period)

    def _tell(self) -> None:
        self._unheard = self._unheard_bytes = 0
        self.stats.control_frames += 1
        self.out.multicast(Received(self._view.id, list(self.queued), self.order.settled))

    def _plan_to_tell(self, now: Nanos) -> None:
        """At once if much has come; soon if others wait for it."""
        shares = self._shares
        if self._unheard >= shares.tell_every or self._unheard_bytes >= shares.tell_bytes:
            self._tell()
        elif self._prompt and not self._telling:
            self._telling = True
            self.out.set_timer(StreamTimer.TELL, now + self.vsync.ack_delay)

    def _on_tracking(self, now: Nanos, source: int, frame: Frame) -> None:
        if not isinstance(frame, Received) or not self.credible(frame.upto):
            self.stats.malformed += 1
            return
        self.heard.add(source)
        self._greeted.discard(source)
        self.order.heard(source, frame.settled)
        before = self.repairs.received[source]
        if frame.upto != before:
            self.repairs.received[source] = list(map(max, before, frame.upto))
            self._track(now)
        self._hear_of(now, frame.upto)

    def credible(self, upto: Sequence[int]) -> bool:
        """Nobody can have what is far beyond us, nor more of ours than we sent."""
        if len(upto) != len(self.members) or upto[self._me] > self.queued[self._me]:
            return False
        return all(theirs <= ours + self.reach for theirs, ours in zip(upto, self.queued, strict=True))

    def _track(self, now: Nanos) -> None:
        """Find what is stable and what is safe; what is laid aside is neither."""
        if self.frozen:
            return
        rows = list(self.repairs.received)
        rows[self._me] = self.queued
        votes = self.votes_needed()
        safe, moved = [], False
        for rank, column in enumerate(zip(*rows, strict=True)):
            ranked = sorted(column, reverse=True)
            safe.append(ranked[votes - 1])
            if ranked[-1] > self.stable[rank]:
                self._trim(rank, ranked[-1])
                moved = True
        self.safe = list(map(max, self.safe, safe))
        self._purge_retained()
        if moved:
            self._room_freed(now)

    def laggards(self, since: Sequence[int]) -> list[MemberId]:
        """Who has not queued yet what this member had queued at some time."""
        return [
            self.members[rank]
            for rank, row in enumerate(self.repairs.received)
            if rank != self._me and any(map(int.__lt__, row, since))
        ]

    @property
    def refuses(self) -> bool:
        """Whether a multicast was refused and its sender waits to be told to try again."""
        return self._blocked

    # The order

    def ready(self, rank: int, head: bytes) -> bool:
        """Whether what must come before a message with this head is queued or known to be purged."""
        return self.order.ready(rank, head)

    def due_upto(self, rank: int) -> int:
        """Messages of `rank` up to here may be delivered."""
        return self.certain_upto(rank) if self.vsync.uniform else self.queued[rank]

    def append(self, batch: Batch) -> None:
        """Line up for the application. What is stable and waited for its turn takes up room again."""
        rank = self._ranks[batch.sender]
        stable = min(self.stable[rank], batch.last)
        if batch.first <= stable:
            part = batch.cut(batch.first, stable)
            self.occupancy.add(rank, len(part.payloads), part.size)
        self._line_up(batch)
        self._account_purged_from_delivery()

    def _trim(self, rank: int, stable: int) -> None:
        """What is stable and waits for its turn takes up no room, or its turn might never come."""
        before = self.stable[rank]
        super()._trim(rank, stable)
        for batch in self.order.waiting_between(rank, before + 1, stable):
            self.occupancy.remove(rank, len(batch.payloads), batch.size)

    def may_command(self) -> bool:
        """Whether a command would not be too far ahead of what the others have."""
        return self.queued[self._me] - self.stable[self._me] < self.reach

    def command(self, head: bytes) -> None:
        """Multicast a message that only the order reads; there is always room for it."""
        batch = batch_of(self.members[self._me], self.queued[self._me] + 1, [b""], None, head)
        self._admit(self._me, batch)
        self._sent(batch)
        self.stats.sent -= 1

    def send(self, rank: int | None, frame: Frame) -> None:
        """Send a frame about the order."""
        self.stats.control_frames += 1
        if rank is None:
            self.out.multicast(frame)
        else:
            self.out.send(self.members[rank], frame)

    def wake_at(self, at: Nanos) -> None:
        """Let the order's time come then."""
        self.out.set_timer(StreamTimer.ORDER, at)

    def suspects(self, rank: int) -> bool:
        """Whether a member is suspected."""
        return self._suspects(self.members[rank])

    def replace(self, rank: int, seq: int, by: Batch) -> None:
        """Purge a message that is lined up because of one of another sender."""
        if self.settings.purging is Purging.OFF:
            return
        victim = self.to_deliver.discard(self.members[rank], seq)
        if victim is not None:
            self.stats.purged_delivery += 1
            self.out.deliver(Purged(MessageId(victim.sender, seq), MessageId(by.sender, by.first)))
            self._forget(rank, victim, upto=self.stable[rank])
            if seq > self.stable[rank]:
                self._undeliverable[rank].add(seq)

    def _next_head(self) -> bytes:
        return self.order.head()

    def _sound(self, head: bytes) -> bool:
        return self.order.sound(head)

    def _plausible(self, frame: Data) -> bool:
        return super()._plausible(frame) and self.order.sound(frame.head)

    def _accept(self, rank: int, part: Batch) -> None:
        self._unheard += len(part.payloads)
        self._unheard_bytes += part.size
        self.order.accept(rank, part)

    def _waits(self, rank: int, batch: Batch) -> bool:
        return self.order.waits(rank, batch) or super()._waits(rank, batch)

    def _withdraw(self, rank: int, victim: Batch) -> bool:
        return self.order.withdraw(rank, victim) or super()._withdraw(rank, victim)

    def _sent(self, batch: Batch) -> None:
        super()._sent(batch)
        self.order.sent()
        if not self.is_command(batch):
            self.out.deliver(Sent(batch, self._view.id))

    def _wake(self) -> None:
        """One message may be what several others wait for."""
        before = None
        while not self.frozen and before != self.queued and self._held_back():
            before = list(self.queued)
            for rank, waiting in enumerate(self.pending):
                if waiting or self.skips[rank]:
                    self._advance(rank)
        super()._wake()

    def _held_back(self) -> bool:
        return bool(self.occupancy.cached) or any(self.skips)
