"""How a member multicasts (3.1): at once, in runs that fill a frame, as far as nothing is in the way.

In the way are its loggers, when it is a window beyond what they have (`sender.py`); most receivers, when they
cannot follow (`rate.py`); and its own program, when that does not read. No single receiver ever is.
"""

from collections.abc import Callable, Sequence

from semcast.core.annotations import Annotation, Item
from semcast.core.events import Blocked, Note, Sent, Unblocked
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.reader import Reader
from semcast.protocols.gossip.data import data_of
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.frames import Idle
from semcast.protocols.gossip.joining import Joining
from semcast.protocols.gossip.rate import Rate
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.settings import GossipSettings, Protocol
from semcast.protocols.gossip.streamruns import item_bytes
from semcast.protocols.gossip.timers import GossipTimer
from semcast.protocols.semantic.answers import LENGTH
from semcast.protocols.semantic.exchange import frame_end
from semcast.wire.limits import check_item, check_message

Hindrance = Callable[[], str | None]


class Sending:
    """Of one member.

    Args:
        settings: of the group.
        sender: its stream.
        rate: how fast it sends.
        desk: what the parts of the member share.
        reader: its program.
        hindrance: what else is in the way, if anything.
    """

    def __init__(
        self,
        settings: GossipSettings,
        sender: Sender,
        rate: Rate,
        desk: Desk,
        reader: Callable[[], Reader],
        hindrance: Hindrance,
    ) -> None:
        self._settings = settings
        self._sender = sender
        self._rate = rate
        self._desk = desk
        self._receiver = desk.receiver
        self._stats = desk.stats
        self._out = desk.out
        self._joining = Joining(desk.out, settings.frame_bytes)
        self._reader = reader
        self._hindrance = hindrance
        self.blocked = False
        """Whether a message was refused, and its program waits to be told that there is room."""

    def multicast(self, now: Nanos, payloads: Sequence[bytes], annotation: Annotation | None) -> int:
        """As many as may be sent now; returns how many."""
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        sizes = list(map(len, payloads))
        check_message(payloads[sizes.index(max(sizes))], annotation)

        def batch(start: int, end: int) -> Batch:
            return batch_of(self._sender.me, self._sender.seq + 1, list(payloads[start:end]), annotation)

        return self._in_runs(now, sizes, batch)

    def multicast_updates(self, now: Nanos, payloads: Sequence[bytes], items: Sequence[str]) -> int:
        """The same for updates of items."""
        check_message(max(payloads, key=len), None)
        for item in dict.fromkeys(items):
            check_item(item)
        sizes = [len(payload) + item_bytes(item) for payload, item in zip(payloads, items, strict=True)]

        def batch(start: int, end: int) -> Batch:
            me, first, some = self._sender.me, self._sender.seq + 1, list(payloads[start:end])
            if end == start + 1:
                return batch_of(me, first, some, Item(items[start]))
            return Batch(me, first, some, size=sum(map(len, some)), items=list(items[start:end]))

        return self._in_runs(now, sizes, batch)

    def _in_runs(self, now: Nanos, sizes: Sequence[int], batch: Callable[[int, int], Batch]) -> int:
        """Send messages of these sizes, as many to a frame as fit, while there is room; returns how many."""
        taken, count = 0, len(sizes)
        while taken < count:
            room = self._room(now, count - taken)
            if room < 1:
                self._stats.refused += 1
                break
            end = min(taken + room, frame_end(sizes, taken, self._settings.frame_bytes, LENGTH))
            self._send(now, batch(taken, end))
            taken = end
        return taken

    def _send(self, now: Nanos, batch: Batch) -> None:
        me, desk = self._sender.me, self._desk
        self._sender.sent(now, batch)
        self._rate.sent(len(batch.payloads))
        self._stats.sent += len(batch.payloads)
        desk.idle.data(me, batch.last)
        desk.buffer.add(batch, desk.round)
        self._out.deliver(Sent(batch, 1))
        self._joining.multicast(batch)
        self._receiver.take_own(self._receiver.streams[me], batch)
        if self._settings.protocol is not Protocol.PBCAST:
            self._out.set_timer(GossipTimer.HEARTBEAT, now + self._settings.heartbeat_least)

    # What is in the way

    def _room(self, now: Nanos, wanted: int) -> int:
        """How many messages may be sent now; says what they wait for if none may."""
        waits_for = self.waits_for()
        room = min(wanted, self._sender.room())
        if waits_for is None and self._rate.limit is not None:
            room = min(room, self._rate.room(now))
            if room < 1:
                waits_for = "rate"
                self._out.set_timer(GossipTimer.RATE, now + self._rate.pause())
        if waits_for is not None:
            self._block(waits_for)
            return 0
        return room if self._drops() else min(room, self._receiver.room(wanted, self._reserve()))

    def waits_for(self) -> str | None:
        """Who keeps this member from sending, besides most receivers: its logger, or its own program."""
        hindrance = self._hindrance()
        if hindrance is not None:
            return hindrance
        if self._sender.room() < 1:
            return "logger"
        return None if self._drops() or self._receiver.room(reserve=self._reserve()) else "program"

    def _drops(self) -> bool:
        """Whether nothing waits for the program."""
        reader = self._reader()
        return not reader.receives or reader.closing

    def _reserve(self) -> int:
        """Room for own messages beyond the queue."""
        return self._settings.reserve_messages if self._reader().waits else 0

    def _block(self, why: str) -> None:
        if not self.blocked:
            self.blocked = True
            self._stats.blocked += 1
            self._out.deliver(Note("blocked", level=why))
            self._out.deliver(Blocked())

    def unblock(self) -> None:
        """There may be room again."""
        if self.blocked and self.waits_for() is None:
            self.blocked = False
            self._out.deliver(Unblocked())

    def held_back(self, logger: MemberId | None) -> HeldBack | None:
        """Its logger, most receivers, or its own program; no single receiver ever."""
        if not self.blocked:
            return None
        if self._sender.room() < 1:
            return HeldBack(logger, "it has not logged what was sent")
        if self._rate.limit is not None and self.waits_for() is None:
            return HeldBack(None, "most receivers cannot follow")
        return HeldBack(self._sender.me, "its program does not read")

    # What is said again

    def see_logged(self) -> None:
        """What is logged need not be kept, and makes room for more."""
        span = self._sender.acknowledged(self._desk.logged.upto(self._sender.me))
        if span is not None:
            self._out.deliver(Note("letgo", sender=self._sender.me, seq=span[0], count=span[1] - span[0] + 1))
            self.unblock()

    def resend(self, now: Nanos, loggers: Sequence[MemberId]) -> None:
        """3.1: to the loggers that have not acknowledged it."""
        for batch in self._sender.overdue(now):
            for logger in loggers:
                if self._desk.logged.at(logger.name, self._sender.me) < batch.last:
                    self._stats.retransmitted += len(batch.payloads)
                    self._out.send(logger, data_of(batch))

    def heartbeat(self, now: Nanos, *, repeats: bool) -> None:
        """3.1 tick, 5.1: an idle sender says its number; once, where hashes spread it."""
        self._stats.control_frames += 1
        self._desk.idle.mark(self._sender.me, self._sender.seq)
        self._out.multicast(Idle(self._sender.seq))
        if repeats:
            self._out.set_timer(GossipTimer.HEARTBEAT, now + self._sender.pause())
