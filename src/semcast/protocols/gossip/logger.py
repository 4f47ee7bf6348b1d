"""A logger: a member with a disk, which acknowledges what is on it, and gives it to whoever lacks it.

Sun 2000, 3.2, 4.3 and 5.2. It takes no part in anything that could delay a message: senders multicast to all,
and wait for it only when they are a window ahead. Deviations: it acknowledges after the sync (R-11), and the
sender of a message, whoever brought it (R-8); it takes part in gossip and answers from the log (R-2, R-33).

The log is in memory as well as on disk.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.admission import Admission
from semcast.protocols.gossip.beginning import Beginning
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.desk import batch_in
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.finding import Finding
from semcast.protocols.gossip.frames import (
    Acknowledge,
    Begin,
    Closed,
    Data,
    Gone,
    Gossip,
    Heartbeats,
    Holding,
    Idle,
    Inquire,
    Join,
    Leave,
    LetGo,
    Logged,
    Members,
    Notice,
    Past,
    Presence,
    Promise,
    Report,
    Say,
    Seek,
    Share,
    Shared,
    Sought,
    Standing,
    Want,
    entries,
    wanted,
)
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.keys import Keys
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.placing import Placing
from semcast.protocols.gossip.publishing import Publishing
from semcast.protocols.gossip.pulling import Pulling
from semcast.protocols.gossip.reading import Reading
from semcast.protocols.gossip.records import Opened, decode
from semcast.protocols.gossip.retention import Retaining
from semcast.protocols.gossip.rows import Rows
from semcast.protocols.gossip.serving import Serving
from semcast.protocols.gossip.settings import GossipSettings, Protocol
from semcast.protocols.gossip.spans import Spans, spans_of
from semcast.protocols.gossip.storing import store

Handler = Callable[[Nanos, MemberId, Any], None]

_LEASE = 4
"""Periods after which a session that does not report counts as away; it thinks so itself after three."""


class LoggerTimer(Timer):
    """What a logger waits for."""

    ROUND = "round"
    PRESENCE = "presence"


class Fresh:
    """What came since the log was flushed last."""

    def __init__(self) -> None:
        self.stored: dict[MemberId, Spans] = {}
        self.upto: dict[MemberId, int] = {}
        """How far each stream goes without a gap, of those whose senders are to be acknowledged."""


class Logger(Stack):
    """The logger of a group; `members` are those it knows to begin with, as for other members."""

    log_stream_kind: type[LogStream] = LogStream
    rows_kind: type[Rows] = Rows
    journal_kind: type[Journal] = Journal
    inquiry_kind: type[Inquiry] = Inquiry
    retaining_kind: type[Retaining] = Retaining
    admission_kind: type[Admission] = Admission
    ending_kind: type[Ending] = Ending
    placing_kind: type[Placing] = Placing

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: GossipSettings, rng: Random, out: Outbox
    ) -> None:
        if settings.loggers and me.name not in settings.loggers:
            raise ValueError(f"{me} is not a logger of this group: there are {', '.join(settings.loggers)}")
        if not settings.logs:
            raise ValueError(f"{me} is a logger, and this group has none: set durable, or name it in loggers")
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.books = Books(self.log_stream_kind, self.rows_kind(), Keys(settings.publish_keys))
        self.journal = self.journal_kind(out)
        self.placing = self.placing_kind(self.books, self.journal, out)
        self.reading = Reading(self.books)
        self.publishing = Publishing(me, self.books, self.journal, out)
        self.serving = Serving(self.books, settings, self.stats, out)
        self._me = me
        self._rng = rng
        self._peers = Peers((), settings.choice, rng)
        self.roster = Roster(me, members, settings, self._peers, logger=True)
        self.finding = Finding(self.roster, self.stats, rng, out)
        self._assemble()
        self._idle = IdleMarks()
        self._newest: dict[str, int] = {}  # the newest incarnation of each name
        self._ended_before: dict[str, int] = {}  # the one whose former streams were ended
        self._heard_at: dict[str, Nanos] = {}
        self._fresh = Fresh()
        self._recovered = False
        self._round = 0
        self._looked_at: Nanos = 0
        self._handlers: dict[type[Frame], Handler] = {
            Data: self._on_data,
            Idle: self._on_idle,
            Gossip: self._on_gossip,
            Heartbeats: self._on_heartbeats,
            Want: self._on_want,
            LetGo: self.ending.on_let_go,
            Join: self.admission.on_join,
            Report: self.admission.on_report,
            Acknowledge: self.admission.on_acknowledge,
            Leave: self._on_leave,
            Holding: self.ending.on_holding,
            Say: self.publishing.on_say,
        }
        self._always: dict[type[Frame], Handler] = {
            Presence: self._on_presence,
            Members: self._on_members,
        }
        self._colleague_handlers: dict[type[Frame], Handler] = {
            Promise: self._on_promise,
            Share: self._on_share,
            Shared: lambda _now, source, frame: self.admission.on_shared(source, frame),
            Seek: lambda _now, source, frame: self.admission.sharing.on_seek(source, frame),
            Sought: self.admission.on_sought,
            Inquire: lambda _now, source, frame: self.ending.on_inquire(source, frame),
            Closed: self.ending.on_closed,
            Notice: self.pulling.on_notice,
            Gone: self.pulling.on_gone,
        }
        self._beginners: dict[type[Frame], Handler] = {
            Begin: lambda _now, source, frame: self.beginning.on_begin(source, frame),
            Past: self.beginning.on_past,
        }

    def _assemble(self) -> None:
        """The parts of a logger."""
        settings, books, journal, out = self.settings, self.books, self.journal, self.out
        self.colleagues = Colleagues(self._me, settings, self.roster, books, out)
        self.beginning = Beginning(books, journal, self.colleagues, self._ready, out)
        self.retaining = self.retaining_kind(settings, books, journal, self.colleagues, out)
        self.admission = self.admission_kind(books, journal, self._hear_of, settings, self.colleagues, out)
        self.ending = self.ending_kind(books, journal, self.inquiry_kind, self.colleagues, self._settled, out)
        self.pulling = Pulling(books, journal, self.colleagues, self._acknowledge, out)

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """Read the log that is there."""
        self._recovered = True
        for data in records:
            self.journal.length += 1
            self.books.replay(now, decode(data))
        for stream in self.books.streams.values():
            stream.advance()
            stream.logged = stream.contiguous

    def start(self, now: Nanos) -> None:
        """Open the log, or a new one."""
        if not self._recovered:
            raise ValueError("a logger needs a disk")
        self.roster.start(now)
        self.out.deliver(self.roster.change())
        if not self.books.log:
            self.books.log = self._me.incarnation + 1
            self.retaining.wait_for_reports(now)
            self.journal.write(Opened(self.books.log))
        level = self.settings.keeping
        self.out.deliver(Note("opened", order=self.books.log, count=self.settings.log_acks, level=level))
        for stream in self.books.streams.values():
            self._newest[stream.sender.name] = max(
                self._newest.get(stream.sender.name, 0), stream.sender.incarnation
            )
            for first, last in spans_of(sorted(stream.messages)):
                self.out.deliver(Note("kept", sender=stream.sender, seq=first, count=last - first + 1))
            if stream.frozen and stream.last is None:
                self.ending.resume(stream)
        self._newest[self._me.name] = self._me.incarnation
        self._end_former(self._me.name)
        self.placing.start(now)
        self.retaining.start()
        for member in (*self.view().members, *self.books.streams):
            self._heard_at[member.name] = now
        self._say_present(now)
        self._looked_at = now
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self._rng.randrange(self.settings.gossip_period) + 1)

    def phase(self) -> str:
        """It works as soon as the other loggers have said what is past."""
        return "operational" if self.beginning.over else "joining"

    def _ready(self, now: Nanos) -> None:
        """The log is in use: who has a session will say so."""
        self.retaining.wait_for_reports(now)

    def view(self) -> View:
        """Who is known to be there."""
        return self.roster.view()

    def multicast(
        self,
        now: Nanos,  # noqa: ARG002
        payloads: Sequence[bytes],  # noqa: ARG002
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        """Nothing."""
        raise ValueError(f"{self._me} is a logger, and sends no messages of its own")

    def publish(
        self,
        now: Nanos,
        key: bytes,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
        ticket: int = 0,
    ) -> None:
        """Log a batch for a program that is no member, once for each key, and send it to all.

        An `Answered` with the ticket says that it is on disk, and at which position; its level is "known" if
        it had been logged before. Raises ValueError if it cannot be logged.
        """
        stream = self.publishing.publish(key, payloads, annotations, ticket)
        if stream is not None:
            last = stream.contiguous
            self._fresh.stored.setdefault(self._me, Spans()).add(last - len(payloads) + 1, last)
            self._acknowledge(stream)
        self._flush(now)

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Who is there; messages go to its log."""
        return [self.roster.change()] if self.roster.changed else ()

    def deliverable(self) -> bool:
        """Whether there is another view."""
        return self.roster.changed

    def buffered(self) -> int:
        """Messages of the log are not counted: how many there are is for its retention to say."""
        return 0

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Its streams end with what anybody has of them."""
        self.roster.failed(now, member)
        self._newest[member.name] = max(self._newest.get(member.name, 0), member.incarnation + 1)
        self._end_former(member.name)
        self._flush(now)

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """One alone."""
        self.on_frames(now, source, (frame,))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """A burst is placed and synced together, and acknowledged once."""
        for frame in frames:
            self._on_frame(now, source, frame)
        self._flush(now)

    def _on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What no correct member sends is dropped and counted."""
        handler = self._handler(source, type(frame))
        if source == self._me or handler is None or not self.roster.heard(now, source):
            self.stats.malformed += 1
            return
        if source.incarnation >= self._newest.get(source.name, 0):
            self._newest[source.name] = source.incarnation
            self._heard_at[source.name] = now
            self._end_former(source.name)
        handler(now, source, frame)

    def _handler(self, source: MemberId, kind: type[Frame]) -> Handler | None:
        """What to do about a frame; little, before the log is in use."""
        handler = self._always.get(kind)
        if handler is None and source in self.colleagues:
            handler = self._beginners.get(kind)
        if handler is None and not self.beginning.over:
            return _ignore
        if handler is None and source in self.colleagues:
            handler = self._colleague_handlers.get(kind)
        return self._handlers.get(kind) if handler is None else handler

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """What waited for it can be done."""
        self.journal.on_synced(now, ticket)
        self._flush(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A round, or a word to everybody."""
        if timer is LoggerTimer.PRESENCE:
            self._say_present(now)
            return
        assert timer is LoggerTimer.ROUND
        self._round += 1
        self.roster.look(now)
        if self.beginning.over:
            self._work(now)
        else:
            self.beginning.ask()
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self.settings.gossip_period)

    def _work(self, now: Nanos) -> None:
        self._see_who_is_there(now)
        self._ask_senders()
        if self.colleagues:
            self._exchange(now)
        lease = _LEASE * self.settings.report
        self.ending.ask([row.member for row in self.books.rows.connected(now - lease)])
        self.retaining.collect(now)
        self.retaining.limit(now + self.placing.epoch)
        if self.settings.protocol is Protocol.RPBCAST:
            self._gossip()
        self.placing.tidy()
        self._rewrite()

    def _exchange(self, now: Nanos) -> None:
        """With the other loggers: messages, promises, sessions."""
        self.pulling.ask(self._round)
        streams = self.books.streams.values() if self.retaining.waits(now) else ()
        self.colleagues.promise(self._round, [(stream.sender, stream.floor) for stream in streams])
        self.colleagues.share()
        self.admission.sharing.seek()

    # Messages

    def _stream(self, sender: MemberId) -> LogStream | None:
        others = self.roster.is_logger(sender) and not self.colleagues
        if self.roster.is_foreign(sender) or sender == self._me or others:
            return None
        stream = self.books.open(sender)
        if stream is not None and sender.incarnation < self._newest.get(sender.name, 0):
            self._end(stream)
        return stream

    def _on_data(self, _now: Nanos, source: MemberId, frame: Data) -> None:
        """3.2: store it, and acknowledge when it is on disk; acknowledge again what is."""
        stream, batch = self._stream(frame.sender), batch_in(frame)
        if batch is None:
            self.stats.malformed += 1
        if stream is None or batch is None or self.ending.refuses(stream, source, batch.first):
            return
        if stream.last is not None and batch.last > stream.last:
            batch = batch.cut(batch.first, stream.last)
        self._idle.data(frame.sender, batch.last)
        stored = self._fresh.stored.setdefault(frame.sender, Spans())
        fresh = store(stream, batch, self.journal)
        for part in fresh:
            stored.add(part.first, part.last)
        self.stats.duplicates += len(batch.payloads) - sum([len(part.payloads) for part in fresh])
        self._acknowledge(stream)

    def _acknowledge(self, stream: LogStream) -> None:
        """As soon as what came is synced."""
        self._fresh.upto[stream.sender] = stream.contiguous

    def _settled(self, now: Nanos, stream: LogStream) -> None:
        """Holes count as settled."""
        self._acknowledge(stream)
        self._flush(now)

    def _flush(self, now: Nanos) -> None:
        """Sync what was written, and have done what waits for it."""
        if self._fresh.upto:
            fresh, self._fresh = self._fresh, Fresh()
            self.placing.place(now, fresh.upto)
            self.journal.then(lambda _now: self._on_log(fresh))
        self.journal.flush(now)

    def _on_log(self, fresh: Fresh) -> None:
        """What came in some turn is on disk."""
        for sender, spans in fresh.stored.items():
            for first, last in spans:
                self.out.deliver(Note("log", sender=sender, seq=first, count=last - first + 1))
        for sender, upto in fresh.upto.items():
            stream = self.books.streams.get(sender)
            if stream is not None:
                self._see_logged(stream, upto)
                if sender.incarnation >= self._newest.get(sender.name, 0) and sender != self._me:
                    self.out.send(sender, Logged(self.books.log, [(sender, stream.logged)]))

    def _see_logged(self, stream: LogStream, upto: int) -> None:
        """More of a stream is on disk without a gap."""
        if upto > stream.logged:
            first, stream.logged = stream.logged + 1, upto
            self.retaining.logged(stream, first, upto)

    def _on_idle(self, _now: Nanos, source: MemberId, frame: Idle) -> None:
        self._mark_idle(source, frame.seq)

    def _on_heartbeats(self, _now: Nanos, _source: MemberId, frame: Heartbeats) -> None:
        for sender, seq in frame.marks:
            self._mark_idle(sender, seq)

    def _mark_idle(self, sender: MemberId, seq: int) -> None:
        """Unless it was heard of since."""
        self._hear_of(sender, seq)
        stream = self.books.streams.get(sender)
        if stream is not None and not stream.frozen and stream.known <= seq:
            self._idle.mark(sender, seq)

    def _hear_of(self, sender: MemberId, seq: int) -> None:
        stream = self._stream(sender)
        if stream is not None and not self.ending.refuses(stream, self._me, seq):
            stream.known = max(stream.known, seq)

    def _ask_senders(self) -> None:
        """For what is missing, of those that are there; they send what is not acknowledged, anyway."""
        for stream in self.books.streams.values():
            if not stream.frozen:
                asked = wanted([(stream.sender, stream.missing())])
                if asked:
                    self.stats.requested += 1
                    self.out.send(stream.sender, Want(self._round, asked))

    # Requests

    def _on_want(self, now: Nanos, source: MemberId, frame: Want) -> None:
        self.serving.serve(now, source, frame.wanted, frame.round)

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        self.finding.compare(now, source, frame)
        self.serving.serve(now, source, frame.wanted, frame.round)
        if frame.idle != self._idle.hash(source, frame.round):
            for part in entries(self._idle.entries()):
                if part:
                    self.out.send(source, Heartbeats(frame.round, part))

    def _gossip(self) -> None:
        """R-33: what only the logger heard of spreads with its hash."""
        target = self._peers.choose()
        if target is not None:
            parts = entries((stream.sender, stream.logged) for stream in self.books.streams.values())
            idle = self._idle.hash(self._me, self._round)
            members = self.roster.hash(self._me, self._round)
            logged = parts[self._round % len(parts)]
            log = MemberId(self._me.name, self.books.log)
            self.out.send(target, Gossip(self._round, [], idle, logged, log, members))

    # Who is there

    def _on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        row = self.books.rows.of(source)
        if row is not None and frame.standing is Standing.AWAY:
            row.away = True  # not forgotten: what it is owed stays
        self.finding.on_presence(now, source, frame)

    def _on_members(self, now: Nanos, _source: MemberId, frame: Members) -> None:
        self.roster.learn(now, frame.known)

    def _say_present(self, now: Nanos) -> None:
        pause = self.finding.say_present()
        if pause:
            self.out.set_timer(LoggerTimer.PRESENCE, now + pause)

    # Other loggers

    def _on_promise(self, _now: Nanos, source: MemberId, frame: Promise) -> None:
        self.colleagues.on_promise(source, frame)
        for stream, _, logged in frame.promised:
            self._hear_of(stream, logged)

    def _on_share(self, now: Nanos, source: MemberId, frame: Share) -> None:
        self.admission.sharing.on_share(now, source, frame)
        if frame.over:
            self._ends(frame.member)

    # Sessions

    def _on_leave(self, _now: Nanos, source: MemberId, frame: Leave) -> None:
        if not self.books.rows.is_over(source):
            self.admission.dismiss(source)
            self._hear_of(source, frame.last)
            self._ends(source)
        self.admission.say_farewell(source)

    def _ends(self, member: MemberId) -> None:
        """It is gone for good, and with it its stream."""
        self._newest[member.name] = max(self._newest.get(member.name, 0), member.incarnation + 1)
        self._end_former(member.name)

    def _see_who_is_there(self, now: Nanos) -> None:
        """Who has been silent for too long; nobody, if it was the logger that slept."""
        slept = now - self._looked_at > 2 * self.settings.gossip_period
        self._looked_at = now
        if slept:
            for row in self.books.rows.all():
                row.heard_at = now
        for stream in self.books.streams:
            self._heard_at.setdefault(stream.name, now)
        self._heard_at[self._me.name] = now
        for name, at in list(self._heard_at.items()):
            if slept:
                self._heard_at[name] = now
            elif now - at > self.settings.silence and self.ending.decides:
                self._newest[name] = max(
                    [self._newest.get(name, 0)]
                    + [stream.incarnation + 1 for stream in self.books.streams if stream.name == name]
                )
                self._end_former(name)
        for row in self.books.rows.all():
            if row.here and now - row.heard_at > self.settings.inactive:
                self.admission.dismiss(row.member)

    # The end of streams

    def _end_former(self, name: str) -> None:
        """Streams of former incarnations are over."""
        newest = self._newest.get(name, 0)
        if self._ended_before.get(name) == newest:
            return  # those that are opened since are ended at once
        self._ended_before[name] = newest
        for stream in self.books.streams.values():
            if stream.sender.name == name and stream.sender.incarnation < newest and not stream.frozen:
                self._end(stream)

    def _end(self, stream: LogStream) -> None:
        if not stream.frozen and self.ending.decides:
            self._idle.forget(stream.sender)
            self.ending.end(stream)

    # The disk

    def _rewrite(self) -> None:
        """Write the log anew, where most of its records are of no use."""
        if (
            self.journal.quiet()
            and self.journal.length > 2 * self.books.size() + self.settings.rewrite_records
        ):
            self.journal.rewrite(self.books.records())


def _ignore(_now: Nanos, _source: MemberId, _frame: Frame) -> None:
    """Whoever sent it says it again."""
