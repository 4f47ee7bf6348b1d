"""One client of a server: what it was fed, what it has, and what it waits for."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.isis.client_frames import (
    ClientHeard,
    Done,
    Farewell,
    Flushed,
    FlushWanted,
    Item,
    Said,
    Settled,
    ViewItem,
    encode,
)
from semcast.protocols.isis.flushing import Snapshot
from semcast.protocols.isis.log import Entry, Log, behind, covered, hear
from semcast.protocols.isis.pipe import Pipe
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import IsisSettings
from semcast.protocols.isis.stamps import Time, Times

if TYPE_CHECKING:
    from semcast.protocols.isis.serving import RelayTicket, Serving

_ROOM = 1 << 16
"""Bytes of what is in a pipe besides payloads, at most."""
_AHEAD = 256
"""Pieces that wait in a pipe, at most."""


class Contact:
    """As its contact knows it.

    Args:
        client: who that is.
        session: of the client.
        settings: of the domain.
        post: sends a frame to it.
    """

    def __init__(
        self, client: MemberId, session: int, settings: IsisSettings, post: Callable[[Frame], None]
    ) -> None:
        self.client = client
        self.session = session
        self.post = post
        self.pipe = Pipe(
            session,
            up=False,
            frame_bytes=settings.vsync.frame_bytes,
            most=settings.run_bytes * 2 + _ROOM,
            post=post,
        )
        self.heard_at: Nanos = 0
        self.arrived: deque[RelayTicket] = deque()
        """What it sent and has not had its turn in the line."""
        self.open = 0
        """What it sent that had its turn, and was not multicast."""
        self.relays: deque[tuple[int, int]] = deque()
        """What was multicast for it, and not taken by all servers: its number, and that in the group."""
        self.cast = False
        """Whether the other servers were told of it."""
        self.came_at: tuple[int, int] | None = None
        """The view and number of the message that told them; nothing is fed before that is safe."""
        self.seen: Time | None = None
        """What it had before this server was its contact (D)."""
        self.settling: tuple[int, Time | None] | None = None
        """What it asked about, and how far all have to be."""
        self.flushes: deque[FlushWanted] = deque()
        """What it wants to know that the programs of all servers have taken."""
        self.bye = False
        self.feeds = False
        self.acked = 0
        """The number of the first entry that it is not known to have."""
        self.has = Time(0, {})
        """So far this server was with what it is known to have."""
        self._cursor = 0
        self._time = Time(0, {})
        self._told: Times = {}  # what it is yet to be told of other groups
        self.begun = False
        """Whether it is known where it goes on."""
        self._fed: deque[tuple[int, int, Time]] = deque()

    def begin(self, log: Log, index: int) -> None:
        """It is fed from an entry on."""
        self.begun = True
        self._cursor = self.acked = index
        self._time = self.has = log.at(index)
        self._told = log.told(index)

    def start(self, log: Log) -> None:
        """From now on."""
        self.feeds = True
        if self.begun:
            self.pipe.push(encode(Done(0)))  # it waits for a word that it is served, and may lack nothing
            return
        self.begin(log, log.end)
        if log.view is not None:
            self._push(encode(log.view))

    def feed(self, log: Log) -> None:
        """What it lacks, as much as it takes."""
        while self._cursor < log.end and len(self.pipe) < _AHEAD:
            entry = log.entries[self._cursor - log.first]
            self._cursor += 1
            self._time = behind(self._time, entry)
            hear(self._told, entry)
            if self._lacks(entry):
                self._push(encode(entry if isinstance(entry, ViewItem) else self._item(entry)))
        self._skip()

    def _lacks(self, entry: Entry | ViewItem) -> bool:
        if isinstance(entry, Entry) and (
            not entry.payloads or (not entry.everybody and entry.to != self.client)
        ):
            return False
        return self.seen is None or not covered(self.seen, entry)

    def _item(self, entry: Entry) -> Item:
        others = [Said(name, time.view, sorted(time.counts.items())) for name, time in self._told.items()]
        self._told = {}
        skip = 0
        if self.seen is not None and self.seen.view == entry.view:
            skip = max(0, self.seen.counts.get(entry.rank, 0) - entry.first + 1)
        counts = sorted(self._time.counts.items())
        items = None if entry.items is None else list(entry.items[skip:])
        payloads = [bytes(each) for each in entry.payloads[skip:]]
        first = entry.number + skip
        return Item(
            entry.view,
            counts,
            entry.sender,
            first,
            payloads,
            items,
            entry.marked,
            others,
            entry.epoch,
            entry.lamport,
        )

    def _push(self, data: bytes) -> None:
        nth = self.pipe.push(data)
        self._fed.append((nth, self._cursor, self._time))

    def on_heard(self, frame: ClientHeard) -> None:
        """It has so much."""
        self.pipe.on_heard(frame)
        while self._fed and self._fed[0][0] <= self.pipe.acked:
            _, self.acked, self.has = self._fed.popleft()
        self._skip()

    def _skip(self) -> None:
        """What is not for it counts as had."""
        if not self._fed and self.feeds:
            self.acked, self.has = self._cursor, self._time

    def say_farewell(self) -> None:
        """Its contact leaves, and all have what it was fed."""
        if self.feeds:
            self.pipe.push(encode(Farewell()))

    def settle(self, seat: Seat, serving: "Serving") -> None:
        """Tell it what has become of what it sent and asked."""
        done = 0
        while self.relays and seat.taken_by_all(self.relays[0][1]):
            done = self.relays.popleft()[0]
        if done:
            self.pipe.push(encode(Done(done)))
        while self.flushes and _has_taken(seat, self.flushes[0]):
            self.pipe.push(encode(Flushed(self.flushes.popleft().nth)))
        if self.settling is None or self.open or self.arrived:
            return
        nth, time = self.settling
        if time is None:
            time = serving.log.time
            self.settling = nth, time
        if seat.all_have(time.view, sorted(time.counts.items())) and not serving.holdings.lags(time):
            self.settling = None
            self.pipe.push(encode(Settled(nth)))


def _has_taken(seat: Seat, wanted: FlushWanted) -> bool:
    """Whether the programs of all servers have what a client was given, that of this process included."""
    stream = seat.member.stream
    if stream is None or seat.member.is_out or wanted.view > stream.view().id:
        return False
    senders = stream.members
    if wanted.view < stream.view().id:
        senders = seat.ended.get(wanted.view, ((), ()))[0]
        if not senders:  # so long ago: it counts who was told of a later view
            return all(seat.taking.told_of.get(member, 0) > wanted.view for member in stream.members)
    counts = {senders[rank]: count for rank, count in wanted.counts if rank < len(senders)}
    return Snapshot(seat, wanted.view, counts).taken_by(stream.members)
