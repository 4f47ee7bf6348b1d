"""What a logger has on disk: the log of every stream, the sessions, and which streams are over."""

from array import array
from collections.abc import Iterator, Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.protocols.gossip.ended import Ended
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.keys import Keys
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.positions import Positions, Run
from semcast.protocols.gossip.records import (
    RECEIPTS,
    Abandoned,
    Acknowledged,
    Admitted,
    Begun,
    Collected,
    Counted,
    Dismissed,
    Dropped,
    Expired,
    Forgot,
    Frozen,
    Holes,
    Keyed,
    Merged,
    Opened,
    Over,
    Placed,
    Published,
    Record,
    Released,
    Replaced,
    ReplacedAll,
    Staged,
    Stored,
    StoredRun,
    receipts_of,
)
from semcast.protocols.gossip.rows import Row, Rows
from semcast.protocols.gossip.shelf import Cache, Shelf
from semcast.protocols.gossip.spans import Span
from semcast.protocols.gossip.stages import Stages, batches
from semcast.wire.annotations import from_wire, to_wire

_OPEN = 64
"""Streams of one name at a time that are not over: a peer cannot make up more."""
_MOST = 8192
"""The same of all names."""
_IN_ALL = 65536
"""Streams in the log, with those that are over: a log that keeps what nothing replaced has many."""


class Books:
    """In memory; whoever changes it writes the record."""

    def __init__(
        self, stream_kind: type[LogStream], rows: Rows, keys: Keys, cache: Cache | None = None
    ) -> None:
        self.log = 0
        """The identity of the log: 1 + the incarnation of the logger that began it. 0 before it is opened."""
        self.begun = False
        """Whether all other loggers have said what is past."""
        self.forgotten: dict[str, None] = {}
        """Names of loggers that never come back."""
        self.streams: dict[MemberId, LogStream] = {}
        self.rows = rows
        self.ended = Ended()
        self.positions = Positions()
        self.keys = keys
        self.stages = Stages()
        self.refused = 0
        """How often a stream or a session was refused for want of room, since the logger started."""
        self.cache = cache or Cache(0)
        """What is in memory of what is on disk."""
        self._stream_kind = stream_kind

    def _begin(self, sender: MemberId) -> LogStream:
        stream = self.streams[sender] = self._stream_kind(sender, self.cache, self._shelf)
        return stream

    def _shelf(self, sender: MemberId) -> Shelf | None:
        stream = self.streams.get(sender)
        return None if stream is None else stream.messages

    def open(self, sender: MemberId) -> LogStream | None:
        """The log of a stream, begun if it is new; None if it is over, or there is no room for it."""
        stream = self.streams.get(sender)
        if stream is not None or sender in self.ended or self.no_room(sender):
            return stream
        return self._begin(sender)

    def no_room(self, sender: MemberId) -> str:
        """Why a stream that is new cannot be logged, and what helps; empty if it can."""
        if len(self.streams) >= _IN_ALL:
            return (
                f"the log has {_IN_ALL} streams, one for each start of a sender, and keeps what nothing"
                " replaced: trim it, or choose retention limits"
            )
        unfinished = [other for other, stream in self.streams.items() if stream.last is None]
        if len(unfinished) >= _MOST:
            return f"{_MOST} senders are there, or have not been gone for long"
        if sum(1 for other in unfinished if other.name == sender.name) >= _OPEN:
            return (
                f"{_OPEN} streams of {sender.name!r} wait to be closed: each start has another, and while a"
                " logger is down none is closed"
            )
        return ""

    def own(self, me: MemberId) -> LogStream:
        """The stream of the logger itself: nobody else can have used up the room for it."""
        return self.streams.get(me) or self._begin(me)

    def forget(self, sender: MemberId, last: int) -> None:
        """A stream that is over is not in the log any more."""
        self.streams.pop(sender, None)
        self.rows.forget(sender)
        self.ended.add(sender, last)

    def release(
        self, stream: LogStream, key: bytes, first: int, stages: Sequence[tuple[str, int]]
    ) -> list[Batch]:
        """The pieces of stages become messages of a stream, from a number on; returns them as runs."""
        runs: list[Batch] = []
        seq = first
        for piece in self.stages.pieces(stages):
            for run in batches(stream.sender, seq, piece):
                stream.store(run)
                runs.append(run)
            last = seq + len(piece.payloads) - 1
            self.cache.released[piece.position] = stream.sender, seq
            stream.messages.place(seq, last, piece.position)
            seq = last + 1
        self.keys.add(key, stream.sender, first, seq - first)
        self.stages.drop([stage for stage, _ in stages])
        return runs

    # How messages leave

    def replace(self, stream: LogStream, seq: int, by: int) -> None:
        """A message leaves for one that is on disk."""
        stream.replace(seq, by)
        self.positions.left(1)

    def collect(self, stream: LogStream, upto: int) -> list[int]:
        """Everything up to there leaves; returns the messages that were still there."""
        self.positions.trim(stream.sender, found := stream.collect(upto))
        return found

    def expire(self, stream: LogStream, spans: list[Span]) -> None:
        """These leave because there are too many."""
        self.positions.trim(stream.sender, stream.expire(spans))

    def has(self, sender: MemberId, seq: int) -> bool:
        """Whether a message is in the log."""
        stream = self.streams.get(sender)
        return stream is not None and seq in stream.messages

    # On disk

    def replay(self, now: Nanos, record: Record, position: int = 0) -> None:
        """One record of before, and where it is."""
        if isinstance(record, Opened):
            self.log = record.log
        elif isinstance(record, Admitted):
            row = Row(record.member, dict(record.through), now, again=record.again, attempt=record.attempt)
            row.here, row.compacted, row.filter = record.here, record.compacted, record.filter
            self.rows.merge(row)
        elif isinstance(record, Acknowledged):
            self.rows.acknowledge(record.member, record.through)
        elif isinstance(record, Dismissed):
            self.rows.dismiss(record.member)
            self.rows.settle(record.member)
        elif isinstance(record, Dropped):
            self.forget(record.sender, record.last)
        elif isinstance(record, Begun):
            self.begun = True
        elif isinstance(record, Forgot):
            self.forgotten[record.name] = None
        elif isinstance(record, Staged):
            self.stages.add(now, record, position)
        elif isinstance(record, Abandoned):
            self.stages.drop(record.stages)
        elif isinstance(record, Keyed):
            self.keys.add(record.key, record.sender, record.first, record.count, record.position)
        elif isinstance(record, Counted):
            self.positions.count_from(record.next)
            for span in record.trimmed:
                self.positions.trim_positions(*span)
        else:
            stream = self.streams.get(record.sender)
            if stream is None:
                stream = self._begin(record.sender)
            self._apply(stream, record, position)

    def _apply(
        self,
        stream: LogStream,
        record: Stored
        | StoredRun
        | Replaced
        | ReplacedAll
        | Collected
        | Expired
        | Holes
        | Frozen
        | Over
        | Merged
        | Placed
        | Published
        | Released,
        at_record: int,
    ) -> None:
        """What a record does to its stream."""
        match record:
            case Stored(seq=seq, payload=payload, annotation=annotation):
                stream.store(batch_of(record.sender, seq, [payload], from_wire(annotation)))
                stream.messages.place(seq, seq, at_record)
            case StoredRun(first=first, payloads=payloads, items=items):
                size = sum(map(len, payloads))
                stream.store(Batch(record.sender, first, payloads, size=size, items=items))
                stream.messages.place(first, first + len(payloads) - 1, at_record)
            case Published(key=key, first=first, messages=messages):
                self.keys.add(key, record.sender, first, len(messages))
                for seq, (payload, annotation) in enumerate(messages, first):
                    stream.store(batch_of(record.sender, seq, [payload], from_wire(annotation)))
                stream.messages.place(first, first + len(messages) - 1, at_record)
            case Released(key=key, first=first, stages=stages):
                self.release(stream, key, first, stages)
            case Placed(position=position, first=first, count=count, at=at):
                self.positions.restore(Run(position, record.sender, first, count, at))
                self.keys.place(record.sender, first, first + count - 1, position)
                stream.placed = max(stream.placed, first + count - 1)
            case ReplacedAll(pairs=pairs):
                for seq, by in pairs:
                    self.replace(stream, seq, by)
            case Replaced(seq=seq, by=by):
                self.replace(stream, seq, by)
            case Collected(upto=upto):
                self.collect(stream, upto)
            case Expired(spans=spans):
                self.expire(stream, spans)
            case Holes(spans=spans):
                stream.tear(spans)
            case Frozen():
                stream.frozen = True
            case Over(last=last):
                stream.close(last)
            case Merged(below=below):
                stream.merge(below)
        stream.advance()

    def records(self) -> Iterator[Record]:
        """All of it, as a log that is written anew begins."""
        yield Opened(self.log)
        if self.begun:
            yield Begun()
        for name in self.forgotten:
            yield Forgot(name)
        for sender, last in self.ended.entries():
            yield Dropped(sender, last)
        for member in self.rows.dismissed():
            yield Dismissed(member)
        for stream in self.streams.values():
            yield from _stream_records(stream)
        for run in self.positions.present(self.has):
            yield Placed(*run)
        yield Counted(self.positions.next, list(self.positions.trimmed))
        for key, batch in self.keys.all():
            yield Keyed(key, batch.sender, batch.first, batch.position, batch.last - batch.first + 1)
        yield from self.stages.records()
        for row in self.rows.all():
            yield admitted(row)

    def rewrite(self, journal: Journal) -> None:
        """Write all of it anew; where messages are is another place once that is synced."""
        moved: dict[MemberId, array[int]] = {}
        begins: dict[MemberId, int] = {}
        staged: list[tuple[Staged, int]] = []
        released = list(self.cache.released)

        def watched() -> Iterator[Record]:
            for record in self.records():
                if isinstance(record, Stored):
                    begins.setdefault(record.sender, journal.next)
                    moved.setdefault(record.sender, array("Q")).append(record.seq)
                elif isinstance(record, Staged):
                    staged.append((record, journal.next))
                yield record

        def settle(_now: Nanos) -> None:
            for shelf in shelves:
                shelf.settle()
            for position in released:
                del self.cache.released[position]

        journal.rewrite(watched())
        for record, position in staged:
            self.stages.move(record.stage, record.number, position)
        shelves = [self.streams[sender].messages for sender in moved]
        for shelf, sender in zip(shelves, moved, strict=True):
            shelf.move(moved[sender], begins[sender])
        journal.then(settle)

    def size(self) -> int:
        """How many records that takes, about."""
        of_streams = (
            len(stream.messages) + len(stream.receipts) // RECEIPTS for stream in self.streams.values()
        )
        return sum(of_streams) + self.rows.records() + len(self.ended) + len(self.keys)

    def bytes(self) -> int:
        """How many bytes of messages there are, with those of batches that are not published yet."""
        return sum(stream.size for stream in self.streams.values()) + self.stages.size

    def stored(self) -> int:
        """How many messages there are."""
        return sum(len(stream.messages) for stream in self.streams.values())


def admitted(row: Row) -> Admitted:
    """The record of a session."""
    through = sorted(row.through.items())
    return Admitted(row.member, through, row.again, row.compacted, row.filter, row.attempt, row.here)


def _stream_records(stream: LogStream) -> Iterator[Record]:
    if stream.floor:
        yield Collected(stream.sender, stream.floor)
    if stream.merged:
        yield Merged(stream.sender, stream.merged)
    if len(stream.expired):
        yield Expired(stream.sender, list(stream.expired))
    if len(stream.holes):
        yield Holes(stream.sender, list(stream.holes))
    yield from receipts_of(stream.sender, sorted(stream.receipts.items()))
    for batch in stream.messages.values():
        yield Stored(stream.sender, batch.first, batch.payloads[0], to_wire(batch.annotation))
    if stream.last is not None:
        yield Over(stream.sender, stream.last)
    elif stream.frozen:
        yield Frozen(stream.sender)
