"""The messages of one view: figure 4.3 over datagrams, and t5 and t7 of figure 4.4.

A stream has the buffers of the view, an exchange of messages with the others, an order that lines them up,
and a tracker of what others have: everybody tells everybody what it has queued (`Received`), which is also a
sign of life. When the view is about to change its stream is *frozen*: nothing more is sent or accepted; what
others accepted and this member lacks is fetched and laid aside, until it is agreed what belongs to the view.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import ClassVar

from semcast.core.annotations import Annotation, Item
from semcast.core.certificates import Certificates
from semcast.core.events import Sent
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.semantic.answers import LENGTH
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Exchange, SrmTimer, frame_end
from semcast.protocols.semantic.stops import Stops
from semcast.protocols.vsync.bulk import is_wide, most_bytes
from semcast.protocols.vsync.causes import Causes
from semcast.protocols.vsync.flow import FairWindow
from semcast.protocols.vsync.frames import Received
from semcast.protocols.vsync.orders import FifoOrder, Lines
from semcast.protocols.vsync.pieces import Assembly, cut
from semcast.protocols.vsync.settings import Agreement, VsyncSettings
from semcast.protocols.vsync.tracking import Tracker
from semcast.wire.limits import MAX_MESSAGE, check_item, check_message

OrderFactory = Callable[[Lines, int, int], FifoOrder]


class StreamTimer(Timer):
    """What a stream waits for besides S-RM's timers."""

    ORDER = "order"
    TELL = "tell"


class ViewStream:
    """One member's part in the messages of one view."""

    buffers_kind: ClassVar[type[Buffers]] = Buffers
    exchange_kind: ClassVar[type[Exchange]] = Exchange
    tracker_kind: ClassVar[type[Tracker]] = Tracker
    causes_kind: ClassVar[type[Causes]] = Causes

    def __init__(
        self,
        me: MemberId,
        view: View,
        base: Sequence[int],
        settings: VsyncSettings,
        rng: Random,
        order: OrderFactory,
        suspects: Callable[[MemberId], bool],
        stats: Statistics,
        backlog: Backlog,
        stops: Stops,
        position: int = 0,
        newcomers: Collection[MemberId] = (),
    ) -> None:
        self.members = view.members
        self.vsync = settings
        self.settings = settings.stream()
        self.out = Outbox()
        self.stats = stats
        self._view = view
        self._rng = rng
        self._suspects = suspects
        self._stops = stops
        self.buffers = self.buffers_kind(view.members, self.settings, stats, self.out, base, backlog)
        ranks = self.buffers.ranks
        self.rank = ranks[me]
        self.wide = is_wide(len(view.members))
        self.most_bytes = most_bytes(settings.frame_bytes)
        """Of a frame that is sent as one."""
        self.reach = 2 * self.settings.window  # commands may go beyond the window
        self.window = FairWindow(
            self.rank, self.buffers, settings, stops, [ranks[member] for member in newcomers if member != me]
        )
        self.exchange = self.exchange_kind(
            self.rank, self.buffers, self.window, rng, self.out, stats, self.reach, self._announce
        )
        self.exchange.repairs.received = [list(base) for _ in view.members]
        oracle = settings.agreement is Agreement.ORACLE
        self._tracker = self.tracker_kind(self.rank, self.buffers, self.reach, oracle=oracle)
        self._assembly = Assembly(self.largest)
        self.heard: set[int] = set()
        """Ranks of those who have been in this view."""
        self.stopping = False
        """Whether the others were told to stop."""
        self._taken_in_time = 0  # messages that an application which is not behind has taken by now
        self._told = self._told_bytes = 0  # messages queued when the others were last told
        self._awaited = 0  # up to where own messages are to be known as stable soon
        self._asked: dict[int, int] = {}  # by rank, up to where others want to know that their messages came
        self._telling = False
        self._prompt = settings.uniform or settings.prompt
        self.order = self.buffers.order = order(self, view.id, position)
        self._base = tuple(base)
        self._causes: Causes | None = None

    def certify(self, certificates: Certificates) -> None:
        """Somebody records: note what comes before each message, where the order knows that."""
        causes = self.causes_kind(self.members, self._base, self.rank, certificates)
        if self.order.keep_causes(causes):
            self._causes = causes

    @property
    def largest(self) -> int:
        """Bytes of the largest message: its pieces must find room together."""
        pieces = min(self.settings.window, self.settings.buffer_messages - len(self.members)) // 2
        return min(MAX_MESSAGE, self.settings.frame_bytes * max(pieces, 1))

    @property
    def queued(self) -> list[int]:
        """By rank, up to where messages are queued here."""
        return self.buffers.queued

    @property
    def base(self) -> tuple[int, ...]:
        """By rank, up to where messages belong to the views before."""
        return self._base

    @property
    def delivered(self) -> list[int]:
        """By rank, up to where the application was given them."""
        return self.buffers.delivered

    @property
    def frozen(self) -> bool:
        """Whether nothing more is sent or accepted."""
        return self.buffers.frozen

    @property
    def refuses(self) -> bool:
        """Whether a multicast was refused and its sender waits to be told to try again."""
        return self.exchange.refuses

    def view(self) -> View:
        """Whose messages these are."""
        return self._view

    def start(self, now: Nanos) -> None:
        """Say hello to the others, and go on doing so, out of step with them."""
        self.window.begin(now + self.vsync.greeting)
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
            self.exchange.refuse()
            return 0
        sizes = self.exchange.check(payloads, annotation, safe=safe)
        return self.multicast_measured(now, payloads, sizes, annotation)

    def multicast_measured(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        sizes: Sequence[int],
        annotation: Annotation | None = None,
    ) -> int:
        """The same in an open view, with the size of each message."""
        if sum(sizes) > self.settings.max_message < max(sizes):
            taken = self._multicast_large(payloads, annotation)
        else:
            if annotation is not None:
                check_message(payloads[0], annotation)
            taken = self.exchange.multicast_in_frames(payloads, sizes, annotation)
        self._after_multicast(now)
        return taken

    def multicast_updates(self, now: Nanos, payloads: Sequence[bytes], items: Sequence[str]) -> int:
        """Updates, each of an item, in as few frames as they need."""
        for item in dict.fromkeys(items):
            check_item(item)
        sizes = list(map(len, payloads))
        coded = items if "".join(items).isascii() else list(map(str.encode, items))
        weights = list(map(int.__add__, sizes, map(len, coded)))
        if max(weights) > self.settings.max_message:
            return self._multicast_one_by_one(now, payloads, items)
        taken = 0
        while taken < len(payloads) and not self.frozen:
            end = frame_end(weights, taken, self.settings.frame_bytes, 2 * LENGTH)
            some, size = list(payloads[taken:end]), sum(sizes[taken:end])
            taken += self.exchange.multicast(some, None, size, list(items[taken:end]))
            if taken < end:
                break
        if taken < len(payloads):
            self.exchange.refuse()
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

    def _announce(self, batch: Batch) -> None:
        """Messages left."""
        if not self.order.is_command(batch):
            self._left(batch)

    def _left(self, batch: Batch) -> None:
        if self._causes is not None:
            self._causes.sent(batch.first, batch.last)
        self.out.deliver(Sent(batch, self._view.id))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of another member in a row; look after the order once they are all in."""
        rank = self.buffers.ranks[source]
        for frame in frames:
            if not self.exchange.on_frame(now, rank, frame):
                self._on_received(now, rank, frame)
        self.exchange.wake()
        self.order.settle(now)
        if self.buffers.accepted > self._told or self._owes_word():
            self._plan_to_tell(now)

    def _owes_word(self) -> bool:
        """Whether others wait to hear that something came which is here."""
        return any(upto <= self.queued[rank] for rank, upto in self._asked.items())

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """S-RM's timers, and the order's."""
        if timer is StreamTimer.ORDER:
            self.order.tick(now)
        elif timer is StreamTimer.TELL:
            self._telling = False
            if self.buffers.accepted > self._told or self._owes_word():
                self.tell()
        else:
            if timer is SrmTimer.GOSSIP:
                self._gossip(now)
            else:
                assert timer is SrmTimer.REQUEST
                self._request(now)
            self.exchange.wake()
        self.order.settle(now)

    def deliver(self, most: int) -> list[Batch]:
        """Hand over messages."""
        batches = self.buffers.take(most)
        if self._causes is not None:
            self._causes.delivered(batches)
        return batches

    def deliver_run(self, rank: int, last: int) -> list[Batch]:
        """Hand over what waits of one member up to `last`, whatever was lined up before it."""
        batches = self.buffers.take_run(rank, last)
        if self._causes is not None:
            self._causes.delivered(batches)
        return batches

    def room_freed(self, now: Nanos) -> None:
        """More is welcome here, or this member may send more."""
        self.exchange.room_freed(now)
        self.exchange.wake()
        self.order.settle(now)

    def deliverable(self) -> bool:
        """Whether a message waits for the application and may be handed over."""
        return self.buffers.deliverable()

    def buffered(self) -> int:
        """Distinct messages in all buffers, counted anew in the buffers themselves."""
        return self.buffers.buffered()

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
                if not self.exchange.multicast_in_frames([payload], [len(payload)], annotation):
                    return place
            elif not self._multicast_pieces(payload, annotation):
                self.exchange.refuse()
                return place
        return len(payloads)

    def _multicast_pieces(self, payload: bytes, annotation: Annotation | None) -> bool:
        """All pieces of a message, or none if there is no room for them together."""
        pieces = cut(payload, self.settings.frame_bytes)
        me, buffers = self.rank, self.buffers
        beyond = buffers.queued[me] - buffers.stable[me] + len(pieces) > self.settings.window
        if beyond or buffers.room(me) < len(pieces) or self.window.allowance() <= 0:
            return False
        sender, head = self.members[me], self.order.head()
        if not buffers.fits(me, batch_of(sender, buffers.queued[me] + 1, [payload], annotation)):
            return False
        for left, piece in zip(range(len(pieces), 0, -1), pieces, strict=True):
            note = annotation if left == 1 else None
            batch = Batch(sender, buffers.queued[me] + 1, [piece], note, len(piece), head, None, left)
            buffers.admit(me, batch)
            self.exchange.transmit(batch)
            head = b""
        self.stats.sent -= len(pieces) - 1
        self.order.sent()
        self._left(batch_of(sender, buffers.queued[me], [payload], annotation))
        return True

    # What others have

    def _gossip(self, now: Nanos) -> None:
        self.window.tick(now)
        self._purge_where_late()
        self._track(now)
        self.tell()
        self.out.set_timer(SrmTimer.GOSSIP, now + self.settings.gossip_period)

    def _purge_where_late(self) -> None:
        """Once a heartbeat, for who is lazy: is the application behind, or the group?"""
        buffers = self.buffers
        if buffers.backlog.hurried() and (self.vsync.lag or self.stats.delivered < self._taken_in_time):
            buffers.purge_late()
        self._taken_in_time = self.stats.delivered + len(buffers.to_deliver)
        if self.refuses or 2 * buffers.occupancy.messages > self.settings.buffer_messages:
            for retained in buffers.retained:
                retained.mature()

    def tell(self) -> None:
        """Say what is queued here, and whether the others shall stop."""
        self._told, self._told_bytes = self.buffers.accepted, self.buffers.accepted_bytes
        self.stats.control_frames += 1
        self.stopping = self.buffers.backlog.over()
        if self.stopping and self.buffers.backlog.hurried():
            self.buffers.purge_late()
            self.stopping = self.buffers.backlog.over()
        asks = self._awaited > self.buffers.stable[self.rank]
        queued = list(self.queued)
        self._asked = {rank: upto for rank, upto in self._asked.items() if upto > queued[rank]}
        self.out.multicast(Received(self._view.id, queued, self.order.settled, self.stopping, asks))

    def ask(self, upto: int) -> None:
        """Somebody waits until all have the messages of this member up to there: the next `tell` says so."""
        self._awaited = max(self._awaited, upto)

    def _plan_to_tell(self, now: Nanos) -> None:
        """At once if much has come; soon if others wait for it."""
        shares, buffers = self.window.shares, self.buffers
        unheard, size = buffers.accepted - self._told, buffers.accepted_bytes - self._told_bytes
        if unheard >= shares.tell_every or size >= shares.tell_bytes:
            self.tell()
        elif (self._prompt or self._asked) and not self._telling:
            self._telling = True
            self.out.set_timer(StreamTimer.TELL, now + self.vsync.ack_delay)

    def _on_received(self, now: Nanos, source: int, frame: Frame) -> None:
        if not isinstance(frame, Received) or not self.credible(frame.upto):
            self.stats.malformed += 1
            return
        self.heard.add(source)
        if frame.asks:
            self._asked[source] = frame.upto[source]
        self._stops.heard(now, self.members[source], stop=frame.stop)
        self.window.heard(source)
        self.order.heard(source, frame.settled)
        received = self.exchange.repairs.received
        if frame.upto != received[source]:
            received[source] = list(map(max, received[source], frame.upto))
            self._track(now)
        self.exchange.hear_of(now, frame.upto)

    def credible(self, upto: Sequence[int]) -> bool:
        """Whether a correct member can have queued this."""
        return self._tracker.credible(upto)

    def _track(self, now: Nanos) -> None:
        """What is laid aside is neither stable nor safe."""
        if not self.frozen and self._tracker.track(self.exchange.repairs.received):
            self.exchange.room_freed(now)

    def laggards(self, since: Sequence[int]) -> list[MemberId]:
        """Who has not queued yet what this member had queued at some time."""
        ranks = self._tracker.laggards(self.exchange.repairs.received, since)
        return [self.members[rank] for rank in ranks]

    def _request(self, now: Nanos) -> None:
        """Ask for what is missing. Whoever is suspected is not asked, as long as that lasts."""
        repairs = self.exchange.repairs
        for rank in range(len(self.members)):
            if rank != self.rank and self.suspects(rank) != repairs.is_failed(rank):
                if self.suspects(rank):
                    repairs.forget(now, rank)
                else:
                    repairs.recall(rank)
        self.exchange.request(now)
        if self.frozen and not self.exchange.requests and self.buffers.lacks_anything():
            self.exchange.plan_request(now + self.vsync.resend)  # all who have it are suspected: not for ever

    # For the order

    def due_upto(self, rank: int) -> int:
        """Messages of `rank` up to here may be delivered."""
        return self.buffers.certain_upto(rank) if self.vsync.uniform else self.queued[rank]

    def replaced_upto(self, rank: int) -> int:
        """What replaces skipped messages of `rank` is among those up to here."""
        return self.buffers.replaced_upto[rank]

    def append(self, batch: Batch) -> None:
        """Line up for the application: messages that were cut, once they are whole."""
        whole = self._assembly.whole(batch)
        if whole is not None:
            self.buffers.append(whole)
            self.order.lined_up(whole)

    def waits(self, rank: int, seq: int) -> bool:
        """Whether an annotated message is lined up."""
        return self.buffers.to_deliver.holds(self.members[rank], seq)

    def replace(self, rank: int, seq: int, by: Batch) -> None:
        """Purge a message that is lined up because of one of another sender."""
        self.buffers.replace(rank, seq, by)

    def may_command(self) -> bool:
        """Whether a command would not be too far ahead of what the others have."""
        return self.queued[self.rank] - self.buffers.stable[self.rank] < self.reach

    def command(self, head: bytes) -> None:
        """Multicast a message that only the order reads; there is always room for it."""
        batch = batch_of(self.members[self.rank], self.queued[self.rank] + 1, [b""], None, head)
        self.buffers.admit(self.rank, batch)
        self.exchange.send(batch)
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

    # The end of the view

    def freeze(self) -> None:
        """Accept nothing more (t5). Everybody waits for who lacks something, so it asks impatiently."""
        self.buffers.freeze()
        self.exchange.hurry(self.vsync.resend)

    def want(self, now: Nanos, upto: Sequence[int], of: int | None = None) -> None:
        """Fetch what is missing up to there, and lay it aside. The member of rank `of` has it."""
        self.exchange.want(now, upto, of)

    def has(self, upto: Sequence[int]) -> bool:
        """Whether everything up to there is queued, laid aside, or known to be purged."""
        return self.buffers.has(upto)

    def finish(self, cut: Sequence[int], report: bytes) -> None:
        """This, and nothing else, belongs to the view: queue what was laid aside (t7)."""
        self.buffers.complete(cut)
        self.order.finish(report)
        self.exchange.repairs.received = [list(self.queued) for _ in self.members]
