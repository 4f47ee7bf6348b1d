"""All streams of a member, and the queue in which messages wait for the program.

A full queue takes nothing: what comes then is held as far as it goes, and beyond that dropped, to be asked
for again when there is room (`credit`). So a slow program costs its own member memory up to a bound, however
many streams there are, and nobody else anything; what it missed meanwhile is in the log. That is the policy
`spill`.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from semcast.core.events import Lost, Note, Purged
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.obsolescence import PurgingBuffer
from semcast.obsolescence.buffer import EAGER
from semcast.protocols.gossip.ended import Ended
from semcast.protocols.gossip.reading import matches
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.spans import Span, Spans
from semcast.protocols.gossip.streams import Stream

_OPEN = 64
"""Streams of one name at a time: a peer cannot make up more."""
_MOST = 8192
"""Streams in all."""
_OPEN_WITHOUT_LOGGER = 4
"""There nobody closes streams: the oldest is given up for the next."""
SKIPPED = 4096
"""Messages that one entry of a notice is believed about: each is a row of a history."""


class Receiver:
    """The receiving side of a member."""

    __slots__ = (
        "_durable",
        "_eager",
        "_handed",
        "_lagging",
        "_me",
        "_most",
        "_named",
        "_opened",
        "_out",
        "_senders",
        "_settings",
        "_stalled",
        "_stats",
        "_total",
        "ended",
        "is_over",
        "lost",
        "queue",
        "streams",
        "unread",
    )

    stream_kind: ClassVar[type[Stream]] = Stream

    def __init__(self, me: MemberId, settings: GossipSettings, stats: Statistics, out: Outbox) -> None:
        self._me = me
        self.streams: dict[MemberId, Stream] = {}
        self.ended = Ended()
        self._settings = settings
        self._durable = settings.logs
        self._eager = settings.purging is EAGER
        self._most = settings.queue_messages
        self._stats = stats
        self._out = out
        self.queue = PurgingBuffer(settings.purging)
        """What waits for the program."""
        self.lost: dict[tuple[MemberId, str], Spans] = {}
        """What will not come, by stream and cause, and the program has not been told."""
        self._opened = 0
        self._named: dict[str, list[MemberId]] = {}  # the open streams of each name
        self._senders: list[MemberId] = []  # of all open streams, sorted
        self._lagging: dict[MemberId, Stream] = {}  # all of which something may be missing, and some others
        self._stalled: dict[MemberId, Stream] = {}  # those that wait for room in the queue
        self._handed: deque[tuple[int, Stream, int]] = deque()  # the last of each list, and how many by then
        self._total = 0  # messages that were handed over
        self.is_over: Callable[[MemberId], None] = _ignore
        """To be told that a stream is over, and all of it settled here."""
        self.unread: Callable[[], int] = _nothing
        """How many of the messages that were handed over the program has not taken."""

    # Streams

    def open(self, sender: MemberId, start: int, level: str) -> Stream | None:
        """Begin to receive a stream after a number; None if its sender has too many."""
        same = sorted(other for other in self._named.get(sender.name, ()) if other != self._me)
        if len(same) >= (_OPEN if self._durable else _OPEN_WITHOUT_LOGGER):
            if self._durable or sender < same[0]:
                return None
            self.finish(same[0])
        if len(self.streams) >= _MOST:
            return None
        if sender not in self.streams:
            self._named.setdefault(sender.name, []).append(sender)
            insort(self._senders, sender)
        stream = self.streams[sender] = self._lagging[sender] = self.stream_kind(sender, start)
        stream.lagging = self._lagging
        self._opened += 1
        stream.number = self._opened
        self._out.deliver(Note("start", sender=sender, seq=start, level=level))
        return stream

    def finish(self, sender: MemberId) -> None:
        """A stream is over, and all of it is settled here."""
        stream = self.streams.pop(sender)
        self.end(sender, stream.next)
        self._lagging.pop(sender, None)
        self._stalled.pop(sender, None)
        del self._senders[bisect_left(self._senders, sender)]
        self._named[sender.name].remove(sender)
        if not self._named[sender.name]:
            del self._named[sender.name]

    def end(self, sender: MemberId, last: int) -> None:
        """Nothing more comes of a stream, which ended with this number."""
        self.ended.add(sender, last)
        self.is_over(sender)

    def lagging(self) -> list[Stream]:
        """Streams of which something is missing or held, as they were opened."""
        for sender in [each for each, stream in self._lagging.items() if stream.known <= stream.next]:
            del self._lagging[sender]
        return sorted(self._lagging.values(), key=_number)

    def lagging_from(self, turn: int) -> list[Stream]:
        """The same by name, those last that come before a place among all streams."""
        lagging = sorted(self.lagging(), key=_sender)
        if not lagging:
            return []
        first = self._senders[turn % len(self._senders)]
        before = bisect_left(lagging, first, key=_sender)
        return lagging[before:] + lagging[:before]

    def standing(self) -> list[tuple[MemberId, int, int]]:
        """Of every stream, by name: up to where the program is through with it, and what was heard of."""
        if not self._settings.explicit:
            self._see_what_was_taken()
        streams, through = self.streams, self.through
        return [(sender, through(sender), streams[sender].known) for sender in self._senders]

    def through(self, sender: MemberId) -> int:
        """The program is through with everything up to there, or will never be given it."""
        stream = self.streams[sender]
        return stream.through if stream.queued or stream.through < stream.taken else stream.next

    def was_taken(self, sender: MemberId, seq: int) -> bool:
        """Whether the program may be through with a stream up to there."""
        stream = self.streams.get(sender)
        return seq <= (0 if stream is None else stream.taken)

    def acknowledge(self, sender: MemberId, seq: int) -> None:
        """It says that it is."""
        stream = self.streams[sender]
        stream.through = max(stream.through, seq)

    def _see_what_was_taken(self) -> None:
        """Without a word, a program is through with what it took."""
        handed, taken = self._handed, self._total - self.unread()
        while handed and handed[0][0] <= taken:
            _, stream, last = handed.popleft()
            stream.through = last

    def waits_for(self, sender: MemberId) -> bool:
        """Whether messages of a stream wait for the program."""
        stream = self.streams.get(sender)
        return stream is not None and stream.queued > 0

    # In

    def take(self, stream: Stream, batch: Batch, number: int) -> list[Batch]:
        """Messages came in this round; returns those that were missing, and are here now."""
        count, filter_ = len(batch.payloads), self._settings.filter
        wanted = not filter_ or (batch.items is None and not self._is_unwanted(stream, batch))
        if wanted and stream.expects(batch) and self._fits(count):  # as most are
            self._enqueue(stream, batch)
            return [batch]
        stream.hear_of(batch.last, number)
        if batch.items is not None and filter_:  # each of them may be unwanted
            return [part for single in batch.singles() for part in self.take(stream, single, number)]
        following, hold = stream.next + 1, self._settings.hold
        most = hold - self.held()
        if batch.first <= following:  # what comes next is not held for long
            most = max(most, self.room(count))
        taken = stream.take(batch, following + max(hold, most) - 1, most)
        fresh = sum([len(part.payloads) for part in taken])
        self._stats.duplicates += count - fresh
        if taken:
            self.advance(stream)
        return taken

    def credit(self) -> int:
        """How many more messages may be asked for: those that would be queued, or held."""
        return max(0, self.room() + self._settings.hold - self.held())

    def take_own(self, stream: Stream, batch: Batch) -> None:
        """An own message is queued at once: nobody else could give it."""
        stream.hear_of(batch.last, 0)
        self._enqueue(stream, batch)

    def advance(self, stream: Stream) -> None:
        """Queue what comes next, as long as it is there and there is room."""
        while True:
            following = stream.next + 1
            batch = stream.held.get(following)
            if batch is not None:
                if self._is_unwanted(stream, batch):
                    self._note_lost(stream.sender, following, batch.last, "unwanted")
                    stream.settle(batch.last)
                    continue
                room = self.room(len(batch.payloads))
                if room < 1:
                    self._stalled[stream.sender] = stream
                    return
                self._enqueue(stream, batch.cut(following, min(batch.last, stream.next + room)))
            elif following in stream.skipped:
                stream.settle(stream.skipped.end(following))
            else:
                return

    def purge(self, stream: Stream, first: int, last: int, by: int) -> None:
        """Somebody who would know says that these were purged; with `by`, because of that."""
        because = MessageId(stream.sender, by) if by else None
        for begin, end in stream.skip(first, min(last, first + SKIPPED - 1)):
            self._out.deliver(Purged(MessageId(stream.sender, begin), because, end - begin + 1))
            self._stats.skipped += end - begin + 1
        self.advance(stream)

    def lose(self, stream: Stream, spans: list[Span], why: str) -> None:
        """Nobody will ever give these."""
        for first, last in spans:
            for begin, end in stream.skip(first, last):
                self._note_lost(stream.sender, begin, end, why)
                if why != "unwanted":
                    self.lost.setdefault((stream.sender, why), Spans()).add(begin, end)
                    self._stats.skipped += end - begin + 1
        self.advance(stream)

    def _note_lost(self, sender: MemberId, first: int, last: int, why: str) -> None:
        self._out.deliver(Note("lost", sender=sender, seq=first, count=last - first + 1, level=why))

    def _is_unwanted(self, stream: Stream, batch: Batch) -> bool:
        """Whether the program does not want it; what it sent itself is not looked at."""
        filter_ = self._settings.filter
        return bool(filter_) and stream.sender != self._me and not matches(batch.annotation, filter_)

    # Out

    def _fits(self, count: int) -> bool:
        """Whether so many messages may be queued now."""
        return self.queue.messages + count <= self._most or self.room(count) >= count

    def room(self, wanted: int = 1, reserve: int = 0) -> int:
        """How many more messages may wait for the program; what is obsolete leaves if they are too few."""
        limit = self._settings.queue_messages + reserve
        queue = self.queue
        if queue.messages > limit - wanted:
            self.reclaim()
        left = limit - queue.messages
        return left if left > 0 else 0

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits."""
        self.queue.reclaim(len(self.queue))
        self._tell_purged()

    def losses(self) -> list[Lost]:
        """What it has not been told of. A program that does not read is told of few long spans later."""
        lost, self.lost = self.lost, {}
        return [Lost(sender, *span, why) for (sender, why), spans in lost.items() for span in spans]

    def deliver(self, most: int) -> list[Batch]:
        """Hand over what waits, and take in what waits behind it."""
        batches, explicit, streams = self.queue.pop(most), self._settings.explicit, self.streams
        for batch in batches:
            count = len(batch.payloads)
            self._total += count
            self._stats.delivered += count
            stream = streams.get(batch.sender)
            if stream is None:
                continue  # it is over: nobody asks any more how far the program has come with it
            stream.queued -= count
            stream.taken = last = batch.first + count - 1
            if not explicit:
                self._handed.append((self._total, stream, last))
        if batches and self._stalled:
            stalled, self._stalled = self._stalled, {}
            for stream in sorted(stalled.values(), key=_number):
                self.advance(stream)
        return batches

    def held(self) -> int:
        """Messages that wait for others before them, or for room."""
        return sum([stream.holds for stream in self._lagging.values()])

    def _enqueue(self, stream: Stream, batch: Batch) -> None:
        count = len(batch.payloads)
        if self._eager and batch.items is not None:
            self.queue.extend(batch.singles())
        else:
            self.queue.add(batch)
        stream.queued += count
        stream.settle(batch.first + count - 1)
        if self._eager:  # else nothing is purged before there is no room
            self._tell_purged()

    def _tell_purged(self) -> None:
        for purged in self.queue.take_purged():
            self._out.deliver(purged)
            self._stats.purged_delivery += purged.count
            stream = self.streams.get(purged.sender)
            if stream is not None:
                stream.queued -= purged.count


def _sender(stream: Stream) -> MemberId:
    return stream.sender


def _number(stream: Stream) -> int:
    return stream.number


def _nothing() -> int:
    return 0


def _ignore(_sender: MemberId) -> None:
    """Nobody wants to know."""
