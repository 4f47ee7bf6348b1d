"""A logger: a member with a disk, which acknowledges what is on it, and gives it to whoever lacks it.

Sun 2000, 3.2, 4.3 and 5.2. It takes no part in anything that could delay a message: senders multicast to all,
and wait for it only when they are a window ahead. Deviations: it acknowledges after the sync (R-11), and the
sender of a message, whoever brought it (R-8); it takes part in gossip and answers from the log (R-2, R-33).

Messages are on disk, and in memory only as far as a cache goes (`shelf.py`).
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar

from semcast.core.annotations import Annotation
from semcast.core.events import Answered, Delivery, Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.admission import Admission
from semcast.protocols.gossip.answering import Answering
from semcast.protocols.gossip.beginning import Beginning
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.cooperating import Cooperating
from semcast.protocols.gossip.copying import Copying
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.departing import LEASE, Departing
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.enrolling import Enrolling
from semcast.protocols.gossip.finding import Finding
from semcast.protocols.gossip.forgetting import Forgetting
from semcast.protocols.gossip.frames import (
    Acknowledge,
    Disown,
    Gossip,
    Heartbeats,
    Holding,
    Idle,
    Join,
    Leave,
    LetGo,
    Members,
    Presence,
    Report,
    Say,
    Standing,
    Want,
    entries,
)
from semcast.protocols.gossip.gateway import Gateway
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.intake import Intake
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
from semcast.protocols.gossip.rewriting import Rewriting
from semcast.protocols.gossip.rows import Rows
from semcast.protocols.gossip.serving import Serving
from semcast.protocols.gossip.settings import GossipSettings, Protocol
from semcast.protocols.gossip.shelf import Cache
from semcast.protocols.gossip.spans import spans_of
from semcast.protocols.gossip.sponsor_frames import Enroll
from semcast.protocols.gossip.staging import Staging
from semcast.protocols.gossip.witnesses import Witnesses

Handler = Callable[[Nanos, MemberId, Any], None]


class LoggerTimer(Timer):
    """What a logger waits for."""

    ROUND = "round"
    PRESENCE = "presence"


class Logger(Stack):
    """The logger of a group; `members` are those it knows to begin with, as for other members."""

    log_stream_kind: ClassVar[type[LogStream]] = LogStream
    rows_kind: ClassVar[type[Rows]] = Rows
    journal_kind: ClassVar[type[Journal]] = Journal
    inquiry_kind: ClassVar[type[Inquiry]] = Inquiry
    retaining_kind: ClassVar[type[Retaining]] = Retaining
    admission_kind: ClassVar[type[Admission]] = Admission
    ending_kind: ClassVar[type[Ending]] = Ending
    departing_kind: ClassVar[type[Departing]] = Departing
    placing_kind: ClassVar[type[Placing]] = Placing
    intake_kind: ClassVar[type[Intake]] = Intake
    forgetting_kind: ClassVar[type[Forgetting]] = Forgetting
    colleagues_kind: ClassVar[type[Colleagues]] = Colleagues
    staging_kind: ClassVar[type[Staging]] = Staging
    pulling_kind: ClassVar[type[Pulling]] = Pulling
    copying_kind: ClassVar[type[Copying]] = Copying
    keys_kind: ClassVar[type[Keys]] = Keys
    reading_kind: ClassVar[type[Reading]] = Reading
    witnesses_kind: ClassVar[type[Witnesses]] = Witnesses

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
        cache = Cache(settings.log_cache)
        self.books = Books(
            self.log_stream_kind, self.rows_kind(), self.keys_kind(settings.publish_keys), cache
        )
        self.journal = self.journal_kind(out)
        self.placing = self.placing_kind(self.books, self.journal, out)
        self.reading = self.reading_kind(self.books)
        self.serving = Serving(self.books, settings, self.stats, out)
        self._me = me
        self._rng = rng
        self._peers = Peers((), settings.choice, rng)
        self.roster = Roster(me, members, settings, self._peers, logger=True)
        self.finding = Finding(self.roster, self.stats, rng, out)
        self._idle = IdleMarks()
        self._assemble()
        self._recovered = False
        self._left = False
        self._round = 0
        self._handlers: dict[type[Frame], Handler] = {
            Data: self.intake.on_data,
            Idle: lambda _now, source, frame: self.intake.mark_idle(source, frame.seq),
            Gossip: self._on_gossip,
            Heartbeats: self._on_heartbeats,
            Want: self._on_want,
            LetGo: self.ending.on_let_go,
            Join: self.admission.on_join,
            Report: self.admission.on_report,
            Acknowledge: self.admission.on_acknowledge,
            Leave: self._on_leave,
            Enroll: self.enrolling.on_enroll,
            Holding: self.ending.on_holding,
            Say: self.publishing.on_say,
            Disown: self._on_reminded,
        }
        self._always: dict[type[Frame], Handler] = {
            Presence: self._on_presence,
            Members: lambda now, _source, frame: self.roster.learn(now, frame.known),
        }

    def _assemble(self) -> None:
        """The parts of a logger."""
        settings, books, journal, out = self.settings, self.books, self.journal, self.out
        self.colleagues = self.colleagues_kind(self._me, settings, self.roster, books, out)
        self.forgetting = self.forgetting_kind(self._me, settings, books, journal, self.colleagues, out)
        self.beginning = Beginning(books, journal, self.colleagues, self._ready, self.forgetting.began, out)
        self.retaining = self.retaining_kind(settings, books, journal, self.colleagues, out)
        self.ending = self.ending_kind(books, journal, self.inquiry_kind, self.colleagues, self._settled, out)
        self.departing = self.departing_kind(
            self._me, settings, books, self.ending, self._idle, self.colleagues, out
        )
        self.intake = self.intake_kind(
            self._me,
            books,
            journal,
            self.placing,
            self.retaining,
            self.ending,
            self.departing,
            self.roster,
            self._idle,
            self.witnesses_kind(settings.gossip_rounds),
            self.stats,
            out,
        )
        heard_by = self.intake.heard_by
        self.admission = self.admission_kind(books, journal, heard_by, settings, self.colleagues, out)
        self.enrolling = Enrolling(books, journal, self.colleagues, self.admission.enough, out)
        self.pulling = self.pulling_kind(books, journal, self.colleagues, self.intake.acknowledge, out)
        self._lease = LEASE * settings.report
        self.rewriting = Rewriting(settings, books, journal)
        self.copying = self.copying_kind(settings.log_acks, books, self.colleagues)
        self.cooperating = Cooperating(
            self._me,
            self._lease,
            books,
            self.roster,
            self.colleagues,
            self.forgetting,
            self.beginning,
            self.retaining,
            self.ending,
            self.departing,
            self.intake,
            self.admission,
            self.pulling,
            self.copying,
            self._end,
            out,
        )
        self.publishing = Publishing(self._me, settings, books, journal, self.copying, out)
        self.staging = self.staging_kind(self._me, settings, books, journal, self.publishing)
        self.gateway = Gateway(books, self.publishing, self.staging, self.intake)
        self.answering = Answering(books, self.reading, self.placing, self.gateway, self._forget, out)

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:
        """Read the log that is there."""
        self._recovered = True
        position = first
        self.books.cache.read = self.read_back
        for data in records:
            self.books.cache.synced = position + 1
            self.books.replay(now, decode(data), position)
            position += 1
            self.journal.bytes += len(data)
        self.journal.length = position - first
        self.journal.base = self.books.cache.synced = position
        for stream in self.books.streams.values():
            stream.advance()
            stream.logged = stream.contiguous
        for name in self.books.forgotten:
            self.colleagues.forget(name)
            self.roster.disown(name)

    def start(self, now: Nanos) -> None:
        """Open the log, or a new one."""
        if not self._recovered:
            raise ValueError("a logger needs a disk")
        self.roster.start(now)
        self.out.deliver(self.roster.change())
        if not self.books.log:
            self.books.log = self._me.incarnation + 1
            self._wait_for_reports(now)
            self.journal.write(Opened(self.books.log))
        level = self.settings.keeping
        self.out.deliver(Note("opened", order=self.books.log, count=self.settings.log_acks, level=level))
        for stream in self.books.streams.values():
            for first, last in spans_of(sorted(stream.messages)):
                self.out.deliver(Note("kept", sender=stream.sender, seq=first, count=last - first + 1))
        self.placing.start(now)
        self.retaining.start()
        self.departing.start(now, self.view().members)
        self._say_present(now)
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self._rng.randrange(self.settings.gossip_period) + 1)

    def phase(self) -> str:
        """It works as soon as the other loggers have said what is past."""
        if self._left:
            return "left"
        return "operational" if self.beginning.over else "joining"

    def _end(self) -> None:
        self._left = True

    def _ready(self, now: Nanos) -> None:
        """The log is in use."""
        self._wait_for_reports(now)

    def _wait_for_reports(self, now: Nanos) -> None:
        """The log is new: who has a session will say so, and may have what only the lost disk had."""
        self.retaining.wait_for_reports(now)
        self.ending.wait(now + self._lease)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Say so: members ask another logger at once, or know that none is there."""
        self._left = True
        self.finding.say_goodbye()
        super().leave(now, cause)

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

        An `Answered` with the ticket says that it is on enough disks, and at which position; its level is
        "known" if it had been logged before, and "again" if its key was asked for once more. Raises
        ValueError if it cannot be logged.
        """

        def answer(level: str, position: int) -> None:
            self.out.deliver(Answered(ticket, level, position))

        self.gateway.publish(now, key, payloads, annotations, answer)

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
        self.departing.gone(member)
        self._flush(now)

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """One alone."""
        self.on_frames(now, source, (frame,))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """A burst is placed and synced together, and acknowledged once."""
        if self.rewriting.waits:
            if self.rewriting.hold(source, frames):
                return
            self._go_on(now)
        for frame in frames:
            self._on_frame(now, source, frame)
        self._flush(now)

    def _go_on(self, now: Nanos) -> None:
        """With what has waited for the log to be written anew."""
        for source, frames in self.rewriting.release():
            for frame in frames:
                self._on_frame(now, source, frame)
        self._flush(now)

    def _on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What no correct member sends is dropped and counted. Who only asks is taken for no member."""
        query = self.answering.handlers.get(type(frame))
        if query is not None and not self._left and self.beginning.over:
            query(now, source, frame)
            return
        if type(frame) is Presence and frame.standing is Standing.LOOKING:
            if source != self._me and not self._left:
                self.finding.on_looking(now, source)
            return
        handler = self._handler(source, type(frame))
        if source == self._me or handler is None or self._left or not self.roster.heard(now, source):
            self.stats.malformed += 1
            return
        self.departing.heard(now, source)
        handler(now, source, frame)

    def _handler(self, source: MemberId, kind: type[Frame]) -> Handler | None:
        """What to do about a frame; little, before the log is in use."""
        if source.name in self.books.forgotten:
            return self.forgetting.refuse
        handler = self._always.get(kind)
        if handler is None and source in self.colleagues:
            handler = self.cooperating.beginners.get(kind)
        if handler is None and not self.beginning.over:
            return _ignore
        if handler is None and source in self.colleagues:
            handler = self.cooperating.handlers.get(kind)
        return self._handlers.get(kind) if handler is None else handler

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """What waited for it can be done."""
        self.journal.on_synced(now, ticket)
        self.books.cache.synced = self.journal.synced
        self._flush(now)
        if self.rewriting.waits and self.rewriting.write():
            self._go_on(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A round, or a word to everybody."""
        if self._left:
            return
        if timer is LoggerTimer.PRESENCE:
            self._say_present(now)
            return
        assert timer is LoggerTimer.ROUND
        self._round += 1
        if self.rewriting.waits:
            self._go_on(now)
        self.roster.look(now)
        self.forgetting.share()
        if self.beginning.over:
            self._work(now)
        else:
            self.beginning.ask()
        self._flush(now)
        self.out.set_timer(LoggerTimer.ROUND, now + self.settings.gossip_period)

    def _work(self, now: Nanos) -> None:
        self.departing.look(now, self.admission.dismiss)
        self.intake.ask_senders(self._round)
        self.intake.tell_refused()
        if self.colleagues:
            self.cooperating.exchange(now, self._round)
        if self.departing.is_deaf(now):
            self.ending.wait(now + self._lease)
        self.ending.ask(now, [row.member for row in self.books.rows.connected(now - self._lease)])
        self.retaining.collect(now)
        self.retaining.limit(now + self.placing.epoch)
        if self.settings.protocol is Protocol.RPBCAST:
            self._gossip()
        self.placing.tidy()
        self.staging.collect(now)
        self.rewriting.on_round(self._round)

    # Messages

    def _settled(self, now: Nanos, stream: LogStream) -> None:
        """Holes count as settled."""
        self.intake.acknowledge(stream)
        self._flush(now)

    def _flush(self, now: Nanos) -> None:
        self.intake.flush(now)

    def _on_heartbeats(self, _now: Nanos, _source: MemberId, frame: Heartbeats) -> None:
        for sender, seq in frame.marks:
            self.intake.mark_idle(sender, seq)

    # Requests

    def _on_want(self, now: Nanos, source: MemberId, frame: Want) -> None:
        self.serving.serve(now, source, frame.wanted, frame.round)

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        self.finding.compare(now, source, frame)
        self.serving.serve(now, source, frame.wanted, frame.round)
        if not frame.gap and frame.idle != self._idle.hash(source, frame.round):
            for part in entries(self._idle.some(frame.round)):
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
            self.forgetting.tell(target)

    # Who is there

    def _on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        row = self.books.rows.of(source)
        if row is not None and frame.standing is Standing.AWAY:
            row.away = True  # not forgotten: what it is owed stays
        self.finding.on_presence(now, source, frame)

    def _say_present(self, now: Nanos) -> None:
        pause = self.finding.say_present()
        if pause:
            self.out.set_timer(LoggerTimer.PRESENCE, now + pause)

    # Other loggers

    def forget(self, now: Nanos, name: str, ticket: int = 0) -> None:
        """Go on without a logger that never comes back; all others are told, and it is refused for ever.

        An `Answered` with the ticket says that all others have that on disk. What only the forgotten one had
        is lost, as with its disk. Raises ValueError where that cannot be.
        """
        self._forget(now, name, lambda: self.out.deliver(Answered(ticket, "forgotten")))

    def _on_reminded(self, now: Nanos, _source: MemberId, frame: Disown) -> None:
        """A member says which loggers are forgotten: that counts while this log is new, and knows nobody."""
        if self.retaining.waits(now):
            self.forgetting.remind(frame.names)

    def _forget(self, now: Nanos, name: str, done: Callable[[], None]) -> None:
        self.forgetting.forget(name, done)
        self._flush(now)

    # Sessions

    def _on_leave(self, _now: Nanos, source: MemberId, frame: Leave) -> None:
        if not self.books.rows.is_over(source):
            self.admission.dismiss(source)
            self.intake.hear_of(source, frame.last)
            self.departing.gone(source)
        self.admission.say_farewell(source)


def _ignore(_now: Nanos, _source: MemberId, _frame: Frame) -> None:
    """Whoever sent it says it again."""
