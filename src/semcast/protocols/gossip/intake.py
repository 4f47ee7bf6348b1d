"""How messages come into a log: stored, placed and synced together, then acknowledged to their senders (3.2).

Deviations: a message is acknowledged after the sync (R-11), and to its sender, whoever brought it (R-8).
"""

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.departing import Departing
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.frames import Full, Logged, Want, wanted
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.placing import Placing
from semcast.protocols.gossip.retention import Retaining
from semcast.protocols.gossip.spans import Spans
from semcast.protocols.gossip.storing import store
from semcast.protocols.gossip.witnesses import Witnesses

_TOLD = 64
"""Senders that are told in a round that there is no room for them; others in the next."""


class Fresh:
    """What came since the log was flushed last."""

    def __init__(self) -> None:
        self.stored: dict[MemberId, Spans] = {}
        self.upto: dict[MemberId, int] = {}
        """How far each stream goes without a gap, of those whose senders are to be acknowledged."""


class Intake:
    """Of one logger.

    Args:
        me: this logger.
        books: what it has.
        journal: to write to, and to wait for.
        placing: gives positions.
        retaining: told what is on disk.
        ending: knows of which streams nothing more is taken.
        departing: knows whose streams are over.
        roster: who is there.
        idle: what idle senders said last.
        witnesses: who can be asked beside senders.
        stats: what is counted.
        out: where acknowledgements go.
    """

    def __init__(
        self,
        me: MemberId,
        books: Books,
        journal: Journal,
        placing: Placing,
        retaining: Retaining,
        ending: Ending,
        departing: Departing,
        roster: Roster,
        idle: IdleMarks,
        witnesses: Witnesses,
        stats: Statistics,
        out: Outbox,
    ) -> None:
        self._me = me
        self._books = books
        self._journal = journal
        self._placing = placing
        self._retaining = retaining
        self._ending = ending
        self._departing = departing
        self._roster = roster
        self._idle = idle
        self._witnesses = witnesses
        self._stats = stats
        self._out = out
        self._fresh = Fresh()
        self._unlogged: dict[MemberId, None] = {}  # senders in this round whose messages have no place here

    # What comes

    def stream(self, sender: MemberId) -> LogStream | None:
        """The log of a stream; None of one that has none here."""
        if self._roster.is_foreign(sender) or self._is_out_of_place(sender):
            return None
        stream = self._books.open(sender)
        if stream is not None:
            self._departing.opened(stream)
        return stream

    def _is_out_of_place(self, sender: MemberId) -> bool:
        """Whether it is a logger of which nothing comes in.

        What this one published before its disk was lost does: members may have it, or have heard of it.
        """
        if sender.name == self._me.name:
            return sender >= self._me
        return self._roster.is_logger(sender) and not self._ending.shared

    def on_data(self, _now: Nanos, source: MemberId, frame: Data) -> None:
        """3.2: store it, and acknowledge when it is on disk; acknowledge again what is."""
        stream, batch = self.stream(frame.sender), frame.batch
        if batch is None:
            self._stats.malformed += 1
        elif stream is None and len(self._unlogged) < _TOLD:
            self._unlogged[frame.sender] = None
        if stream is None or batch is None or self._ending.refuses(stream, source, batch.first):
            return
        if stream.last is not None and batch.last > stream.last:
            batch = batch.cut(batch.first, stream.last)
        self._idle.data(frame.sender, batch.last)
        stored = self._fresh.stored.setdefault(frame.sender, Spans())
        fresh = store(stream, batch, self._journal)
        for part in fresh:
            stored.add(part.first, part.last)
        self._stats.duplicates += len(batch.payloads) - sum([len(part.payloads) for part in fresh])
        self.acknowledge(stream)

    def published(self, stream: LogStream, count: int) -> None:
        """The last messages of the own stream were written, as a batch."""
        last = stream.contiguous
        self._fresh.stored.setdefault(stream.sender, Spans()).add(last - count + 1, last)
        self.acknowledge(stream)

    def hear_of(self, sender: MemberId, seq: int) -> None:
        """A sender gave this number: what is below may be missing."""
        stream = self.stream(sender)
        if stream is not None and not self._ending.refuses(stream, self._me, seq):
            stream.known = max(stream.known, seq)

    def heard_by(self, witness: MemberId, sender: MemberId, seq: int) -> None:
        """The same, said by a session: it may have it. Most of what it says is no news."""
        stream = self._books.streams.get(sender)
        if stream is not None and seq <= stream.contiguous:
            return
        self.hear_of(sender, seq)
        stream = self._books.streams.get(sender)
        if stream is not None and witness != sender:
            self._witnesses.said(stream, seq, witness)

    def mark_idle(self, sender: MemberId, seq: int) -> None:
        """A sender has nothing beyond this number, unless it was heard of since."""
        self.hear_of(sender, seq)
        stream = self._books.streams.get(sender)
        if stream is not None and not stream.frozen and stream.known <= seq:
            self._idle.mark(sender, seq)

    def ask_senders(self, number: int) -> None:
        """For what is missing, of those that are there; they send what is not acknowledged, anyway.

        What does not come for some rounds others are asked for, too. What a former life of this logger had
        published, and its disk has lost, only those have.
        """
        for stream in self._books.streams.values():
            asked = [] if stream.frozen else wanted([(stream.sender, stream.missing())])
            if not asked:
                self._witnesses.forget(stream.sender)
                continue
            for dest in (stream.sender, self._witnesses.of(stream, number)):
                if dest is not None and dest.name != self._me.name:
                    self._stats.requested += 1
                    self._out.send(dest, Want(number, asked))
        self._witnesses.tidy(self._books.streams)

    def tell_refused(self) -> None:
        """Those of whom nothing is logged for want of room: they would wait for it for ever."""
        unlogged, self._unlogged = self._unlogged, {}
        for sender in unlogged:
            over = sender in self._books.ended or self._roster.is_foreign(sender)
            if not over and (why := self._books.no_room(sender)):
                self._books.refused += 1
                self._out.send(sender, Full(sender.incarnation, why))

    # What is on disk

    def acknowledge(self, stream: LogStream) -> None:
        """As soon as what came is synced."""
        self._fresh.upto[stream.sender] = stream.contiguous

    def flush(self, now: Nanos) -> None:
        """Sync what was written, and have done what waits for it."""
        if self._fresh.upto:
            fresh, self._fresh = self._fresh, Fresh()
            self._placing.place(now, fresh.upto)
            self._journal.then(lambda _now: self._on_log(fresh))
        self._journal.flush(now)

    def _on_log(self, fresh: Fresh) -> None:
        """What came in some turn is on disk."""
        for sender, spans in fresh.stored.items():
            for first, last in spans:
                self._out.deliver(Note("log", sender=sender, seq=first, count=last - first + 1))
        for sender, upto in fresh.upto.items():
            stream = self._books.streams.get(sender)
            if stream is not None:
                self._see_logged(stream, upto)
                if self._is_to_hear(stream):
                    self._out.send(sender, Logged(self._books.log, [(sender, stream.logged)]))

    def _is_to_hear(self, stream: LogStream) -> bool:
        """Whether its sender is told: not where holes may count as settled, since the stream is closed."""
        own = stream.sender == self._me
        return not (own or stream.frozen or self._departing.is_former(stream.sender))

    def _see_logged(self, stream: LogStream, upto: int) -> None:
        """More of a stream is on disk without a gap."""
        if upto > stream.logged:
            first, stream.logged = stream.logged + 1, upto
            self._retaining.logged(stream, first, upto)
