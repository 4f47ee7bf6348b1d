"""A logger: a member with a disk, which acknowledges what is on it, and gives it to whoever lacks it.

Sun 2000, 3.2, 4.3 and 5.2. It takes no part in anything that could delay a message: senders multicast to all,
and wait for it only when they are a window ahead. Deviations: it acknowledges after the sync (R-11), and the
sender of a message, whoever brought it (R-8); it takes part in gossip and answers from the log (R-2, R-33).

The log is in memory as well as on disk.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

from semcast.core.annotations import Annotation
from semcast.core.events import Note, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.desk import data_of
from semcast.protocols.gossip.ended import Ended
from semcast.protocols.gossip.frames import (
    Closed,
    Confirm,
    Data,
    Entry,
    Farewell,
    Gone,
    Gossip,
    Heartbeats,
    Holding,
    Idle,
    Join,
    Leave,
    LetGo,
    Logged,
    Notice,
    Report,
    Reported,
    Want,
    entries,
    some_spans,
    wanted,
)
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.records import (
    Acknowledged,
    Admitted,
    Collected,
    Dismissed,
    Dropped,
    Expired,
    Frozen,
    Holes,
    Merged,
    Opened,
    Over,
    Record,
    Replaced,
    Stored,
    decode,
)
from semcast.protocols.gossip.rows import Row, Rows
from semcast.protocols.gossip.service import ServiceLimit
from semcast.protocols.gossip.settings import GossipSettings, Protocol, Retention
from semcast.protocols.gossip.spans import Span, numbers_of, spans_of, within
from semcast.protocols.gossip.streams import WANTED
from semcast.wire.annotations import from_wire, to_wire

_LEASE = 4
"""Periods after which a session that does not report counts as away; it thinks so itself after three."""
_GRACE = 4
"""Periods in which a new log collects nothing, so that sessions report again."""
_OPEN = 64
"""Streams of one name at a time."""
_REWRITE = 4096
"""Records of no use that a log has before it is written anew."""


class LoggerTimer(Timer):
    """What a logger waits for."""

    ROUND = "round"


class Fresh:
    """What came since the log was flushed last."""

    def __init__(self) -> None:
        self.stored: dict[MemberId, list[int]] = {}
        self.upto: dict[MemberId, int] = {}
        """How far each stream goes without a gap, of those whose senders are to be acknowledged."""


class Logger(Stack):
    """The logger of a group; `members` is the same list everywhere, by name."""

    log_stream_kind: type[LogStream] = LogStream
    rows_kind: type[Rows] = Rows
    journal_kind: type[Journal] = Journal
    inquiry_kind: type[Inquiry] = Inquiry

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: GossipSettings, rng: Random, out: Outbox
    ) -> None:
        if me.name not in settings.loggers:
            raise ValueError(f"{me} is not a logger of this group: there are {', '.join(settings.loggers)}")
        self.members = tuple(members)
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.streams: dict[MemberId, LogStream] = {}
        self.ended = Ended()
        self.rows = self.rows_kind()
        self.journal = self.journal_kind(out)
        self.log = 0
        """The identity of the log."""
        self._me = me
        self._rng = rng
        self._names = {member.name for member in members}
        others = [member for member in members if member.name != me.name]
        self._peers = Peers(others, settings.choice, rng)
        self._limit = ServiceLimit(settings.repairs_per_second)
        self._idle = IdleMarks()
        self._inquiries: dict[MemberId, Inquiry] = {}
        self._newest: dict[str, int] = {}  # the newest incarnation of each name
        self._heard_at: dict[str, Nanos] = {}
        self._fresh = Fresh()
        self._recovered = False
        self._round = 0
        self._looked_at: Nanos = 0
        self._opened_at: Nanos = 0
        self._handlers: dict[type[Frame], Callable[[Nanos, MemberId, Any], None]] = {
            Data: self._on_data,
            Idle: self._on_idle,
            Gossip: self._on_gossip,
            Heartbeats: self._on_heartbeats,
            Want: self._on_want,
            LetGo: self._on_let_go,
            Join: self._on_join,
            Report: self._on_report,
            Leave: self._on_leave,
            Holding: self._on_holding,
        }

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """Read the log that is there."""
        self._recovered = True
        for data in records:
            self._replay(now, decode(data))
        for stream in self.streams.values():
            stream.advance()
            stream.logged = stream.contiguous

    def start(self, now: Nanos) -> None:
        """Open the log, or a new one."""
        if not self._recovered:
            raise ValueError("a logger needs a disk")
        self.out.deliver(ViewChange(self.view(), joined=self.members))
        if not self.log:
            self.log = self._me.incarnation + 1
            self._opened_at = now
            self.journal.write(Opened(self.log))
        self.out.deliver(Note("opened", order=self.log, level=self.settings.retention.value))
        for stream in self.streams.values():
            self._newest[stream.sender.name] = max(
                self._newest.get(stream.sender.name, 0), stream.sender.incarnation
            )
            for first, last in spans_of(sorted(stream.messages)):
                self.out.deliver(Note("kept", sender=stream.sender, seq=first, count=last - first + 1))
            if stream.frozen and stream.last is None:
                self._inquire(stream)
        for name in self._names:
            self._heard_at[name] = now
        self._looked_at = now
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self._rng.randrange(self.settings.gossip_period) + 1)

    def phase(self) -> str:
        """It works as soon as it runs."""
        return "operational"

    def view(self) -> View:
        """Membership is fixed."""
        return View(1, self.members)

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

    def deliver(self, now: Nanos, most: int) -> Sequence[Batch]:  # noqa: ARG002
        """Nothing: what it takes goes to its log."""
        return ()

    def deliverable(self) -> bool:
        """Nothing ever is."""
        return False

    def buffered(self) -> int:
        """Messages of the log are not counted: how many there are is for its retention to say."""
        return 0

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Its streams end with what anybody has of them."""
        self._newest[member.name] = max(self._newest.get(member.name, 0), member.incarnation + 1)
        self._end_former(member.name)
        self._flush(now)

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What no correct member sends is dropped and counted."""
        handler = self._handlers.get(type(frame))
        if source.name not in self._names or source == self._me or handler is None:
            self.stats.malformed += 1
            return
        self._peers.heard(source)
        if source.incarnation >= self._newest.get(source.name, 0):
            self._newest[source.name] = source.incarnation
            self._heard_at[source.name] = now
            self._end_former(source.name)
        handler(now, source, frame)
        self._flush(now)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """What waited for it can be done."""
        self.journal.on_synced(now, ticket)
        self._flush(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A round."""
        assert timer is LoggerTimer.ROUND
        self._round += 1
        self._see_who_is_there(now)
        self._ask_senders()
        self._ask_sessions(now)
        self._collect(now)
        if self.settings.protocol is Protocol.RPBCAST:
            self._gossip()
        self._rewrite()
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self.settings.gossip_period)

    # Messages

    def _stream(self, sender: MemberId) -> LogStream | None:
        stream = self.streams.get(sender)
        if stream is not None or sender in self.ended or sender.name not in self._names:
            return stream
        if sender.name in self.settings.loggers:
            return None
        if sum(1 for other in self.streams if other.name == sender.name) >= _OPEN:
            return None
        stream = self.streams[sender] = self.log_stream_kind(sender)
        if sender.incarnation < self._newest.get(sender.name, 0):
            self._end(stream)
        return stream

    def _on_data(self, _now: Nanos, _source: MemberId, frame: Data) -> None:
        """3.2: store it, and acknowledge when it is on disk; acknowledge again what is."""
        stream = self._stream(frame.sender)
        if stream is None or self._takes_nothing(stream):
            return
        if stream.settled(frame.seq):
            self.stats.duplicates += 1
            self._acknowledge(stream)
            return
        stream.store(batch_of(frame.sender, frame.seq, [frame.payload], from_wire(frame.annotation)))
        self.journal.write(Stored(frame.sender, frame.seq, frame.payload, frame.annotation))
        self._fresh.stored.setdefault(frame.sender, []).append(frame.seq)
        self._acknowledge(stream)

    def _takes_nothing(self, stream: LogStream) -> bool:
        inquiry = self._inquiries.get(stream.sender)
        return stream.last is not None or (inquiry is not None and inquiry.closing and inquiry.concluded)

    def _acknowledge(self, stream: LogStream) -> None:
        """As soon as what came is synced."""
        self._fresh.upto[stream.sender] = stream.contiguous

    def _flush(self, now: Nanos) -> None:
        """Sync what was written, and have done what waits for it."""
        if self._fresh.upto:
            fresh, self._fresh = self._fresh, Fresh()
            self.journal.then(lambda _now: self._on_log(fresh))
        self.journal.flush(now)

    def _on_log(self, fresh: Fresh) -> None:
        """What came in some turn is on disk."""
        for sender, seqs in fresh.stored.items():
            for first, last in spans_of(sorted(seqs)):
                self.out.deliver(Note("log", sender=sender, seq=first, count=last - first + 1))
        for sender, upto in fresh.upto.items():
            stream = self.streams.get(sender)
            if stream is not None:
                self._see_logged(stream, upto)
                if sender.incarnation >= self._newest.get(sender.name, 0):
                    self.out.send(sender, Logged(self.log, [(sender, stream.logged)]))

    def _see_logged(self, stream: LogStream, upto: int) -> None:
        """More of a stream is on disk without a gap: what that replaces may leave."""
        if upto <= stream.logged:
            return
        first, stream.logged = stream.logged + 1, upto
        if self.settings.compact:
            for seq, by in stream.obsolete(first, stream.logged):
                stream.replace(seq, by)
                self.journal.write(Replaced(stream.sender, seq, by))
                self.out.deliver(Note("collect", sender=stream.sender, seq=seq, count=1, level="obsolete"))
        if self.settings.retention is Retention.LIMITS:
            self._expire(stream)

    def _on_idle(self, _now: Nanos, source: MemberId, frame: Idle) -> None:
        self._hear_of(source, frame.seq)
        if source in self.streams and not self.streams[source].frozen:
            self._idle.mark(source, frame.seq)

    def _on_heartbeats(self, _now: Nanos, _source: MemberId, frame: Heartbeats) -> None:
        for sender, seq in frame.marks:
            self._hear_of(sender, seq)
            if sender in self.streams and not self.streams[sender].frozen:
                self._idle.mark(sender, seq)

    def _hear_of(self, sender: MemberId, seq: int) -> None:
        stream = self._stream(sender)
        if stream is not None and not self._takes_nothing(stream):
            stream.known = max(stream.known, seq)

    def _ask_senders(self) -> None:
        """For what is missing, of those that are there; they send what is not acknowledged, anyway."""
        for stream in self.streams.values():
            if not stream.frozen:
                asked = wanted([(stream.sender, stream.missing())])
                if asked:
                    self.stats.requested += 1
                    self.out.send(stream.sender, Want(self._round, asked))

    # Requests

    def _on_want(self, now: Nanos, source: MemberId, frame: Want) -> None:
        self._serve(now, source, frame.wanted, frame.round)

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        self._serve(now, source, frame.wanted, frame.round)
        if frame.idle != self._idle.hash(source, frame.round):
            for part in entries(self._idle.entries()):
                if part:
                    self.out.send(source, Heartbeats(frame.round, part))

    def _serve(
        self, now: Nanos, target: MemberId, asked: Iterable[tuple[MemberId, Iterable[Span]]], number: int
    ) -> None:
        """Each as it is in the log: the message, or why it is not there any more."""
        for sender, spans in asked:
            stream = self.streams.get(sender)
            if stream is None:
                if sender in self.ended:
                    left = within(spans, 1, self.ended.last(sender))
                    self.out.send(target, Gone(sender, next(some_spans(left)), "expired"))
                continue
            purged: list[tuple[int, int, int]] = []
            gone: dict[str, list[int]] = {}
            for seq in numbers_of(spans, WANTED):
                batch = stream.messages.get(seq)
                if batch is not None:
                    if self._limit.take(now):
                        self.stats.retransmitted += 1
                        self.out.send(target, data_of(batch, number))
                elif seq in stream.receipts:
                    purged.append((seq, seq, stream.replacement(seq)))
                elif seq in stream.holes:
                    gone.setdefault("abandoned", []).append(seq)
                elif seq in stream.expired or seq <= stream.floor:
                    gone.setdefault("expired", []).append(seq)
                elif seq <= stream.merged:
                    purged.append((seq, seq, 0))
            self._tell(target, sender, purged, gone)

    def _tell(
        self,
        target: MemberId,
        sender: MemberId,
        purged: list[tuple[int, int, int]],
        gone: dict[str, list[int]],
    ) -> None:
        for start in range(0, len(purged), 32):
            self.out.send(target, Notice(sender, purged[start : start + 32]))
        for why, seqs in gone.items():
            for part in some_spans(spans_of(sorted(set(seqs)))):
                self.out.send(target, Gone(sender, part, "expired" if why == "expired" else "abandoned"))

    def _gossip(self) -> None:
        """R-33: what only the logger heard of spreads with its hash."""
        target = self._peers.choose()
        if target is not None:
            parts = entries((stream.sender, stream.logged) for stream in self.streams.values())
            idle = self._idle.hash(self._me, self._round)
            self.out.send(target, Gossip(self._round, [], idle, parts[self._round % len(parts)], self.log))

    # Sessions

    def _on_join(self, now: Nanos, source: MemberId, frame: Join) -> None:
        """Admit: the row is on disk before anything is confirmed."""
        if self.rows.is_over(source):
            return
        row, former = self.rows.of(source), self.rows.known(source.name)
        if row is None:
            through = dict(former.through) if former is not None else self._beginning(frame.start)
            row = self.rows.admit(now, source, through, again=former is not None)
            self.journal.write(Admitted(source, sorted(through.items()), row.again))
        row.heard_at = now
        self.journal.then(lambda _now: self._confirm(source, frame.attempt))

    def _beginning(self, start: str) -> dict[MemberId, int]:
        if start == "new":
            return {stream.sender: stream.logged for stream in self.streams.values()}
        return {stream.sender: stream.floor for stream in self.streams.values()}

    def _confirm(self, member: MemberId, attempt: int) -> None:
        row = self.rows.of(member)
        if row is None:
            return
        after = [(stream, seq) for stream, seq in sorted(row.through.items()) if stream in self.streams]
        over = self.ended.entries()
        both = [(entry, True) for entry in after] + [(entry, False) for entry in over]
        parts = entries(entry for entry, _ in both)
        begin = 0
        for number, part in enumerate(parts):
            kinds = both[begin : begin + len(part)]
            begin += len(part)
            owed = [entry for entry, open_ in kinds if open_]
            ended = [entry for entry, open_ in kinds if not open_]
            self.out.send(member, Confirm(attempt, number, len(parts), owed, ended, row.again))

    def _on_report(self, now: Nanos, source: MemberId, frame: Report) -> None:
        """What a session is through with counts as soon as it is on disk."""
        if self.rows.is_over(source):
            self.out.send(source, Farewell())
            return
        row = self.rows.of(source)
        if row is None:  # its row was lost with a disk
            row = self.rows.admit(now, source, {})
            self.journal.write(Admitted(source, []))
        row.heard_at = now
        through = []
        for sender, seq, known in frame.through:
            self._hear_of(sender, known)
            stream = self.streams.get(sender)
            upto = 0 if stream is None else min(seq, stream.logged)
            if upto > row.through.get(sender, 0):
                through.append((sender, upto))
        if through:
            self.journal.write(Acknowledged(source, through))
            self.journal.then(lambda _now: self._acknowledged(source, through))
        self._answer(source, row, frame)

    def _acknowledged(self, member: MemberId, through: list[Entry]) -> None:
        self.rows.acknowledge(member, through)
        for sender, seq in through:
            self.out.deliver(Note("acknowledge", sender=sender, seq=seq, members=(member,)))

    def _answer(self, member: MemberId, row: Row, frame: Report) -> None:
        """What is on disk beyond what the session is through with, and which streams are over."""
        told = {sender for sender, _, _ in frame.through}
        frozen = [sender for sender in told if sender in self.streams and self.streams[sender].frozen]
        logged = [
            (sender, self.streams[sender].logged) for sender, _, _ in frame.through if sender in self.streams
        ]
        self.out.send(member, Reported(frame.serial, frame.part, self.log, logged, sorted(frozen)))
        for sender in sorted(told):
            stream = self.streams.get(sender)
            if stream is not None and stream.last is not None:
                self.out.send(member, self._closed(stream))
            elif sender in self.ended:
                self.out.send(member, Closed(sender, self.ended.last(sender), []))
        if frame.part == 0 and frame.parts == 1:
            self._tell_untold(member, row, told)

    def _tell_untold(self, member: MemberId, row: Row, told: set[MemberId]) -> None:
        """Streams that the session has never heard of, and is owed."""
        untold = []
        for sender, stream in sorted(self.streams.items()):
            if sender not in told and row.through.get(sender, 0) < stream.logged:
                untold.append((sender, stream.logged))
                if stream.last is not None:
                    self.out.send(member, self._closed(stream))
        for part in entries(untold):
            if part:
                self.out.send(member, Logged(self.log, part))

    def _on_leave(self, _now: Nanos, source: MemberId, frame: Leave) -> None:
        """R-5: a leave is confirmed to who leaves; R-12: with it the debt ends."""
        if not self.rows.is_over(source):
            self._dismiss(source)
            self._hear_of(source, frame.last)
            self._newest[source.name] = max(self._newest.get(source.name, 0), source.incarnation + 1)
            self._end_former(source.name)
        self.journal.then(lambda _now: self.out.send(source, Farewell()))

    def _dismiss(self, member: MemberId) -> None:
        self.rows.dismiss(member)
        self.journal.write(Dismissed(member))

    def _see_who_is_there(self, now: Nanos) -> None:
        """Who has been silent for too long; nobody, if it was the logger that slept."""
        slept = now - self._looked_at > 2 * self.settings.gossip_period
        self._looked_at = now
        if slept:
            for row in self.rows.all():
                row.heard_at = now
        for name, at in list(self._heard_at.items()):
            if slept:
                self._heard_at[name] = now
            elif now - at > self.settings.silence:
                self._newest[name] = max(
                    [self._newest.get(name, 0)]
                    + [stream.incarnation + 1 for stream in self.streams if stream.name == name]
                )
                self._end_former(name)
        for row in self.rows.all():
            if now - row.heard_at > self.settings.inactive:
                self._dismiss(row.member)

    # The end of streams

    def _end_former(self, name: str) -> None:
        """Streams of former incarnations are over."""
        newest = self._newest.get(name, 0)
        for stream in self.streams.values():
            if stream.sender.name == name and stream.sender.incarnation < newest and not stream.frozen:
                self._end(stream)

    def _end(self, stream: LogStream) -> None:
        if not stream.frozen:
            stream.frozen = True
            self._idle.forget(stream.sender)
            self.journal.write(Frozen(stream.sender))
            self.journal.then(lambda _now: self._inquire(stream))

    def _inquire(self, stream: LogStream) -> None:
        self._inquiries[stream.sender] = self.inquiry_kind(stream, closing=True)

    def _on_let_go(self, _now: Nanos, source: MemberId, frame: LetGo) -> None:
        """What a sender has forgotten, because a log had it that is lost: perhaps a session has it."""
        stream = self.streams.get(source)
        if stream is not None and not stream.frozen and source not in self._inquiries:
            self._inquiries[source] = self.inquiry_kind(stream, closing=False, spans=frame.spans)

    def _on_holding(self, _now: Nanos, source: MemberId, frame: Holding) -> None:
        inquiry = self._inquiries.get(frame.sender)
        if inquiry is not None:
            inquiry.on_holding(source, frame)
            self._gather(inquiry, source)

    def _gather(self, inquiry: Inquiry, source: MemberId) -> None:
        asked = wanted([(inquiry.stream.sender, inquiry.lacking(source))])
        if asked:
            self.out.send(source, Want(self._round, asked))

    def _ask_sessions(self, now: Nanos) -> None:
        """Go on with every inquiry; conclude those that everybody connected has answered."""
        lease = _LEASE * self.settings.report
        connected = [row.member for row in self.rows.connected(now - lease)]
        for inquiry in list(self._inquiries.values()):
            if inquiry.concluded:
                continue
            if inquiry.complete(connected):
                self._conclude(inquiry)
                continue
            for member, question in inquiry.questions(connected):
                self.out.send(member, question)
            for member in connected:
                self._gather(inquiry, member)

    def _conclude(self, inquiry: Inquiry) -> None:
        """Write down what nobody has; when that is synced, say so."""
        inquiry.concluded = True
        stream, last, holes = inquiry.stream, inquiry.last, inquiry.holes()
        if holes:
            self.journal.write(Holes(stream.sender, holes))
        if inquiry.closing:
            self.journal.write(Over(stream.sender, last))
        self.journal.then(lambda now: self._concluded(now, inquiry, last, holes))

    def _concluded(self, now: Nanos, inquiry: Inquiry, last: int, holes: list[Span]) -> None:
        stream = inquiry.stream
        if self._inquiries.get(stream.sender) is inquiry:
            del self._inquiries[stream.sender]
        stream.tear(holes)
        if inquiry.closing:
            stream.close(last)
            stream.advance()
        self._acknowledge(stream)
        self._flush(now)
        if inquiry.closing:
            self.out.multicast(self._closed(stream))

    def _closed(self, stream: LogStream) -> Closed:
        assert stream.last is not None
        return Closed(stream.sender, stream.last, next(some_spans(stream.holes)))

    # How messages leave

    def _collect(self, now: Nanos) -> None:
        """5.2: what all sessions are through with is stable."""
        if self._opened_at and now - self._opened_at < _GRACE * self.settings.report:
            return
        for stream in list(self.streams.values()):
            minimum = self.rows.minimum(stream.sender)
            stable = stream.logged if minimum is None else min(minimum, stream.logged)
            if self.settings.retention is Retention.STABLE and stable > stream.floor:
                self.journal.write(Collected(stream.sender, stable))
                for first, last in spans_of(stream.collect(stable)):
                    self._note_collected(stream, first, last, "stable")
            elif any(seq <= stable for seq in stream.receipts):
                self.journal.write(Merged(stream.sender, stable))
                stream.merge(stable)
            if stream.last is not None and stream.floor >= stream.last:
                self._drop(stream)

    def _expire(self, stream: LogStream) -> None:
        """The oldest leave first, so that nothing leaves before what it replaced."""
        excess = len(stream.messages) - self.settings.log_messages
        if excess > 0:
            old = sorted(seq for seq in stream.messages if seq <= stream.logged)[:excess]
            spans = spans_of(old)
            if spans:
                self.journal.write(Expired(stream.sender, spans))
                stream.expire(spans)
                for first, last in spans:
                    self._note_collected(stream, first, last, "expired")

    def _note_collected(self, stream: LogStream, first: int, last: int, level: str) -> None:
        self.out.deliver(
            Note("collect", sender=stream.sender, seq=first, count=last - first + 1, level=level)
        )

    def _drop(self, stream: LogStream) -> None:
        """A stream that is over, and that everybody is through with."""
        assert stream.last is not None
        self.journal.write(Dropped(stream.sender, stream.last))
        self._forget(stream.sender, stream.last)

    def _forget(self, sender: MemberId, last: int) -> None:
        self.streams.pop(sender, None)
        self.rows.forget(sender)
        self.ended.add(sender, last)

    # The disk

    def _rewrite(self) -> None:
        """Write the log anew, where most of its records are of no use."""
        live = sum(len(stream.messages) + len(stream.receipts) for stream in self.streams.values())
        if self.journal.length > 2 * live + _REWRITE:
            self.journal.rewrite(self._records())

    def _records(self) -> Iterator[Record]:
        yield Opened(self.log)
        for sender, last in self.ended.entries():
            yield Dropped(sender, last)
        for member in self.rows.dismissed():
            yield Dismissed(member)
        for stream in self.streams.values():
            yield from _stream_records(stream)
        for row in self.rows.all():
            yield Admitted(row.member, sorted(row.through.items()), row.again)

    def _replay(self, now: Nanos, record: Record) -> None:
        """One record of before."""
        self.journal.length += 1
        if isinstance(record, Opened):
            self.log = record.log
        elif isinstance(record, Admitted):
            self.rows.admit(now, record.member, dict(record.through), again=record.again)
        elif isinstance(record, Acknowledged):
            self.rows.acknowledge(record.member, record.through)
        elif isinstance(record, Dismissed):
            self.rows.dismiss(record.member)
        elif isinstance(record, Dropped):
            self._forget(record.sender, record.last)
        else:
            stream = self.streams.get(record.sender)
            if stream is None:
                stream = self.streams[record.sender] = self.log_stream_kind(record.sender)
            _apply(stream, record)


def _apply(
    stream: LogStream, record: Stored | Replaced | Collected | Expired | Holes | Frozen | Over | Merged
) -> None:
    """What a record does to its stream."""
    match record:
        case Stored(seq=seq, payload=payload, annotation=annotation):
            stream.store(batch_of(record.sender, seq, [payload], from_wire(annotation)))
        case Replaced(seq=seq, by=by):
            stream.replace(seq, by)
        case Collected(upto=upto):
            stream.collect(upto)
        case Expired(spans=spans):
            stream.expire(spans)
        case Holes(spans=spans):
            stream.tear(spans)
        case Frozen():
            stream.frozen = True
        case Over(last=last):
            stream.close(last)
        case Merged(below=below):
            stream.merge(below)
    stream.advance()


def _stream_records(stream: LogStream) -> Iterator[Record]:
    if stream.floor:
        yield Collected(stream.sender, stream.floor)
    if stream.merged:
        yield Merged(stream.sender, stream.merged)
    if len(stream.expired):
        yield Expired(stream.sender, list(stream.expired))
    if len(stream.holes):
        yield Holes(stream.sender, list(stream.holes))
    for seq, by in sorted(stream.receipts.items()):
        yield Replaced(stream.sender, seq, by)
    for seq, batch in sorted(stream.messages.items()):
        yield Stored(stream.sender, seq, batch.payloads[0], to_wire(batch.annotation))
    if stream.last is not None:
        yield Over(stream.sender, stream.last)
    elif stream.frozen:
        yield Frozen(stream.sender)
