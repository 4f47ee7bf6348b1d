"""One member: multicast first, unreliably; then repair what was lost (Sun 2000, chapters 3 and 4).

Who else is there it knows approximately (`members.py`). A restart is a new incarnation, hence another stream;
whom it follows up on is for the session to say.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from semcast.core.annotations import Annotation
from semcast.core.confirming import Asked, Confirming
from semcast.core.events import Blocked, Delivery, Left, Note, Sent, Unblocked, Unconfirmed
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import batch_of
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import HeldBack, Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.acknowledging import Acknowledging
from semcast.protocols.gossip.desk import Desk, data_of
from semcast.protocols.gossip.fetching import Fetching
from semcast.protocols.gossip.finding import Finding
from semcast.protocols.gossip.frames import (
    Acknowledged,
    Closed,
    Confirm,
    Data,
    Digest,
    Disown,
    Farewell,
    Gone,
    Gossip,
    Holding,
    Idle,
    Inquire,
    LetGo,
    Logged,
    Members,
    Notice,
    Presence,
    Refused,
    Reported,
    Said,
    Say,
    Standing,
    Want,
    some_spans,
)
from semcast.protocols.gossip.lbrm import Lbrm
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.pbcast import Pbcast
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.queries import Find
from semcast.protocols.gossip.rate import Rate
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.rpbcast import Rpbcast
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.settings import GossipSettings, Protocol
from semcast.protocols.gossip.spans import Spans, gaps, numbers_of, spans_of
from semcast.protocols.gossip.streams import WANTED, Stream
from semcast.wire.annotations import from_wire
from semcast.wire.limits import check_message

REPAIRS: dict[Protocol, type[Repair]] = {
    Protocol.LBRM: Lbrm,
    Protocol.PBCAST: Pbcast,
    Protocol.RPBCAST: Rpbcast,
}


class GossipTimer(Timer):
    """What a member waits for."""

    ROUND = "round"
    HEARTBEAT = "heartbeat"
    REPORT = "report"
    RATE = "rate"
    PRESENCE = "presence"


_TALKS = (GossipTimer.ROUND, GossipTimer.REPORT, GossipTimer.PRESENCE)
"""Nothing of this is done by who is away, and knows it."""


class Member(Stack):
    """A member that is no logger.

    Args:
        me: this member.
        members: whom it knows to begin with; all there are, where membership is fixed (`presence` is 0).
        settings: of the group.
        rng: where chance comes from.
        out: where everything goes.
    """

    roster_kind: type[Roster] = Roster
    receiver_kind: type[Receiver] = Receiver
    sender_kind: type[Sender] = Sender
    session_kind: type[Session] = Session
    desk_kind: type[Desk] = Desk
    peers_kind: type[Peers] = Peers
    rate_kind: type[Rate] = Rate
    repairs: Mapping[Protocol, type[Repair]] = REPAIRS

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: GossipSettings, rng: Random, out: Outbox
    ) -> None:
        if not settings.presence and me.name not in {member.name for member in members}:
            raise ValueError(f"{me} is not among the members: membership is fixed without a presence period")
        if me.name in settings.loggers:
            raise ValueError(f"{me} is a logger: that is another stack")
        self.out = out
        self.stats = Statistics()
        self._me = me
        self._rng = rng
        self._peers = self.peers_kind((), settings.choice, rng)
        self.roster = self.roster_kind(me, members, settings, self._peers)
        self.finding = Finding(self.roster, self.stats, rng, out)
        self._assemble(settings)
        self._confirming = Confirming(out)
        self._blocked = False
        self._left = False
        self._disconnected = False
        self._handlers: dict[type[Frame], Callable[[Nanos, MemberId, Any], None]] = {
            Data: self._on_data,
            Idle: self._on_idle,
            Notice: self._on_notice,
            Gossip: self._on_gossip,
            Say: self._on_say,
            Said: self._on_said,
            Presence: self._on_presence,
            Members: self._on_members,
        }
        self._logger_handlers: dict[type[Frame], Callable[[Nanos, MemberId, Any], None]] = {
            Want: self._on_logger_want,
            Gone: self._on_gone,
            Logged: self._on_logged,
            Confirm: self._on_confirm,
            Reported: self._on_reported,
            Closed: self._on_closed,
            Inquire: self._on_inquire,
            Farewell: self._on_farewell,
            Refused: self._on_refused,
            Acknowledged: self._on_acknowledged,
            Disown: self._on_disown,
        }

    def _assemble(self, settings: GossipSettings) -> None:
        """The parts that work as the settings say."""
        me, out = self._me, self.out
        self.settings = settings
        self.receiver = self.receiver_kind(me, settings, self.stats, out)
        self.sender = self.sender_kind(me, settings)
        self.session = self.session_kind(me, settings, self.receiver, self.sender, out)
        self.desk = self.desk_kind(me, settings, self.receiver, self._peers, self.stats, out, self._hear_of)
        self.desk.members = self.roster.hash
        self.repair = self.repairs[settings.protocol](self.desk)
        self.acknowledging = Acknowledging(self.receiver, out)
        self.fetching = Fetching(self.desk)
        self.rate = self.rate_kind(settings.gossip_period, on=settings.paced and settings.logs)
        self.receiver.unread = lambda: self.reader.unread

    # Life

    def start(self, now: Nanos) -> None:
        """Say who is known, ask for a session, and begin to gossip, out of step with the others."""
        self.roster.start(now)
        self.out.deliver(self.roster.change())
        self.receiver.open(self._me, 0, self.session.level)
        self._look_for_logger(now)
        self.session.start(now)
        self._say_present(now)
        self.out.set_timer(GossipTimer.ROUND, now + self._rng.randrange(self.settings.gossip_period) + 1)
        if self.settings.logs:
            self.out.set_timer(GossipTimer.REPORT, now + self._soon())

    def phase(self) -> str:
        """Where the session stands."""
        if self._left:
            return "left"
        return "operational" if self.session.admitted else "joining"

    def view(self) -> View:
        """Who is known to be there: nobody else need have the same view."""
        return self.roster.view()

    def leave(self, now: Nanos, cause: str = "asked to") -> None:  # noqa: ARG002
        """As soon as what was sent is logged, and the logger knows."""
        self.session.leave(now)
        self._see_the_end()

    def disconnect(self, now: Nanos) -> None:
        """The program knows that its machine will be away: say so, and say nothing more."""
        if not self._left and not self._disconnected:
            self.session.on_period(now)
            self._disconnected = True
            if self.settings.logs:
                self.session.go_away()
            self.finding.say_goodbye(Standing.AWAY)

    def reconnect(self, now: Nanos) -> None:
        """It is back: report at once, and go on from there."""
        if not self._left and self._disconnected:
            self._disconnected = False
            self.roster.start(now)
            self._say_present(now)
            self.session.on_period(now)

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "Stack | None":
        """Who goes on when this stream was closed though its sender is there."""
        return type(self)(member, self.view().members, self.settings, rng, out)

    def _see_the_end(self) -> None:
        if self.session.over and not self._left:
            self._left = True
            self.finding.say_goodbye()
            self.out.deliver(Left("asked to"))

    # From the application

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """3.1: multicast at once, within the window beyond what is logged."""
        if safe:
            raise ValueError("safe order is not offered by this stack")
        for payload in payloads:
            check_message(payload, annotation)
        for taken, payload in enumerate(payloads):
            waits_for = self._waits_for()
            if waits_for is None and self.rate.limit is not None and self.rate.room(now) < 1:
                waits_for = "rate"
                self.out.set_timer(GossipTimer.RATE, now + self.rate.pause())
            if waits_for is not None:
                self.stats.refused += 1
                self._block(waits_for)
                return taken
            self._send(now, payload, annotation)
        return len(payloads)

    def _waits_for(self) -> str | None:
        """Who keeps this member from sending: its logger, or its own program."""
        if self.sender.room() < 1:
            return "logger"
        reserve = self.settings.reserve_messages if self.reader.waits else 0
        dropped = not self.reader.receives or self.reader.closing
        return None if dropped or self.receiver.has_room(reserve) else "program"

    def _block(self, why: str) -> None:
        if not self._blocked:
            self._blocked = True
            self.stats.blocked += 1
            self.out.deliver(Note("blocked", level=why))
            self.out.deliver(Blocked())

    def _unblock(self) -> None:
        if self._blocked and self._waits_for() is None:
            self._blocked = False
            self.out.deliver(Unblocked())

    def _send(self, now: Nanos, payload: bytes, annotation: Annotation | None) -> None:
        batch = batch_of(self._me, self.sender.seq + 1, [payload], annotation)
        self.sender.sent(now, batch)
        self.rate.sent()
        self.stats.sent += 1
        self.desk.idle.data(self._me, batch.first)
        self.desk.buffer.add(batch, self.desk.round)
        self.out.deliver(Sent(batch, 1))
        self.out.multicast(data_of(batch))
        self.receiver.take_own(self.receiver.streams[self._me], batch)
        if self.settings.protocol is not Protocol.PBCAST:
            self.out.set_timer(GossipTimer.HEARTBEAT, now + self.settings.heartbeat_least)

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:  # noqa: ARG002
        """About the message taken last. Nobody knows when all members have it: here safe is logged."""
        if safe and not self.settings.logs:
            self.out.deliver(Unconfirmed(ticket, "there is no logger that could have it"))
        else:
            self._confirming.ask(Asked(ticket, self.sender.seq, safe=safe))

    def settle_confirmations(self) -> None:
        """Own messages are delivered at once, and logged when a logger says so."""
        sender = self.sender
        self._confirming.settle(self.roster.told, delivered=sender.seq, safe=sender.logged, logged=True)

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What no correct member sends is dropped and counted. Who looks for a logger is no member."""
        if type(frame) is Find:
            return
        if source == self._me or self._left or not self.roster.heard(now, source):
            self.stats.malformed += 1
            return
        if source.name == self._me.name and source > self._me:
            self._yield_to(source)
            return
        handler = self._handlers.get(type(frame))
        if handler is None and self.roster.is_logger(source):
            handler = self._logger_handlers.get(type(frame))
        if isinstance(frame, Gossip | Digest):
            self.finding.compare(now, source, frame)
        if handler is not None:
            handler(now, source, frame)
        elif not self.repair.on_frame(now, source, frame):
            self.stats.malformed += 1

    def _on_data(self, now: Nanos, source: MemberId, frame: Data) -> None:
        self.desk.peers.answered(frame.answers, source, now)
        stream = self._stream(frame.sender, frame.seq - 1)
        if stream is None or frame.sender == self._me or (stream.frozen and not self._is_logger(source)):
            return
        self.desk.idle.data(frame.sender, frame.seq)
        before = stream.known
        stream.hear_of(frame.seq, self.desk.round)
        batch = batch_of(frame.sender, frame.seq, [frame.payload], from_wire(frame.annotation))
        if self.receiver.take(stream, batch):
            self.desk.buffer.add(batch, self.desk.round)
        if self.settings.eager and before + 1 < frame.seq:
            self._ask_at_once(now, stream, before + 1, frame.seq - 1)
        if self.fetching.behind:
            self.fetching.go_on()

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        """What it wants of this sender is looked at, too."""
        if not frame.gap:
            own = [span for sender, spans in frame.wanted if sender == self._me for span in spans]
            self.rate.heard(source.name, own, self.sender.seq)
        if not self.repair.on_frame(now, source, frame):
            self.stats.malformed += 1

    def _on_idle(self, now: Nanos, source: MemberId, frame: Idle) -> None:
        self.desk.mark_idle(now, source, frame.seq)

    def _hear_of(self, now: Nanos, sender: MemberId, seq: int) -> None:
        """Its sender gave this number: what is below may be missing."""
        stream = self._stream(sender, seq)
        if stream is None or sender == self._me or stream.frozen:
            return
        before = stream.known
        if stream.hear_of(seq, self.desk.round) and self.settings.eager:
            self._ask_at_once(now, stream, before + 1, seq)

    def _ask_at_once(self, now: Nanos, stream: Stream, first: int, last: int) -> None:
        last = min(last, stream.next + min(WANTED, self.settings.hold))
        if first <= last:
            self.repair.on_gap(now, stream, (first, last))

    def _stream(self, sender: MemberId, heard: int) -> Stream | None:
        """A stream, opened where it is new and its start is known; None if it is over, or not begun."""
        stream = self.receiver.streams.get(sender)
        if stream is not None or sender in self.receiver.ended or self.roster.is_foreign(sender):
            return stream
        if sender.name == self._me.name and sender > self._me:
            return None  # nobody comes after this one
        start = self.session.start_of(sender)
        if not self.settings.logs and (start is None or not self.roster.knew(sender)):
            start = heard
        if start is None:
            return None
        stream = self.receiver.open(sender, start, self.session.level)
        if stream is not None:
            stream.frozen = self.session.is_frozen(sender)
        return stream

    def _on_notice(self, _now: Nanos, source: MemberId, frame: Notice) -> None:
        stream = self.receiver.streams.get(frame.sender)
        if stream is None or frame.sender == self._me:
            return
        for first, last, by in frame.purged:
            if by <= last and (by or not self._is_logger(source)):
                self.stats.malformed += 1
                continue
            stream.hear_of(by, self.desk.round)
            self.receiver.purge(stream, first, min(last, stream.known), by)
        self.fetching.go_on()

    def _on_say(self, _now: Nanos, source: MemberId, frame: Say) -> None:
        self.out.send(source, Said(frame.fresh, self.sender.seq))

    def _on_said(self, _now: Nanos, source: MemberId, frame: Said) -> None:
        seq = self.session.on_said(source, frame)
        if seq is not None and source not in self.receiver.streams and source not in self.receiver.ended:
            self.receiver.open(source, seq, self.session.level)

    # Who is there

    def _on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        self.finding.on_presence(now, source, frame)
        self._look_for_logger(now)

    def _on_members(self, now: Nanos, _source: MemberId, frame: Members) -> None:
        self.roster.learn(now, frame.known)
        self._look_for_logger(now)

    def _say_present(self, now: Nanos) -> None:
        pause = self.finding.say_present()
        if pause:
            self.out.set_timer(GossipTimer.PRESENCE, now + pause)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Nobody is asked who is not there."""
        self.roster.failed(now, member)

    def _look_for_logger(self, now: Nanos) -> None:
        """The home logger: the one that is set, or any; another one, when it does not answer any more."""
        loggers, home = self.roster.loggers(), self.session.logger
        if not loggers or (home in loggers.values() and not self.session.deserted(now)):
            return
        others = [name for name in sorted(loggers) if home is None or name != home.name]
        if home is not None and home.name in loggers and not (others and self.session.deserted(now)):
            name = home.name
        else:
            name = self.settings.home if self.settings.home in others else self._rng.choice(others)
        self.desk.logger = loggers[name]
        self.session.move(now, self.desk.logger)

    # From the logger

    def _is_logger(self, source: MemberId) -> bool:
        return self.roster.is_logger(source)

    def _on_logger_want(self, now: Nanos, source: MemberId, frame: Want) -> None:
        """The logger lacks something: of the own stream what is not logged, of others what is kept."""
        own = [span for sender, spans in frame.wanted if sender == self._me for span in spans]
        kept = self.desk.buffer.get(self._me)
        there = {} if kept is None else kept.messages
        for seq in numbers_of(own, WANTED):
            batch = self.sender.unlogged(seq) or there.get(seq)
            if batch is not None:
                self.out.send(source, data_of(batch))
        upto = self.sender.logged
        gone = [part for first, last in own for part in gaps(first, min(last, upto), sorted(there), Spans())]
        for part in some_spans(gone):
            if part:
                self.out.send(source, LetGo(part))
        self.desk.serve(now, source, [each for each in frame.wanted if each[0] != self._me], 0)

    def _on_logged(self, _now: Nanos, source: MemberId, frame: Logged) -> None:
        if self.desk.logged.learn(MemberId(source.name, frame.log), frame.upto):
            self._look_at_logged()
        for sender, seq in frame.upto:
            stream = self._stream(sender, seq)
            if stream is not None and sender != self._me:
                self.fetching.learn(stream, seq)
                stream.hear_of(seq, self.desk.round)
        self.fetching.go_on()

    def _look_at_logged(self) -> None:
        """What is logged need not be kept, and makes room for more."""
        upto = self.desk.logged.upto(self._me)
        span = self.sender.acknowledged(upto)
        if span is not None:
            self.out.deliver(Note("letgo", sender=self._me, seq=span[0], count=span[1] - span[0] + 1))
            self._unblock()

    def _on_gone(self, _now: Nanos, _source: MemberId, frame: Gone) -> None:
        stream = self.receiver.streams.get(frame.sender)
        if stream is not None and frame.sender != self._me:
            stream.hear_of(max((last for _, last in frame.spans), default=0), self.desk.round)
            self.receiver.lose(stream, frame.spans, frame.why)
            self.fetching.go_on()

    def _on_confirm(self, now: Nanos, _source: MemberId, frame: Confirm) -> None:
        if self.session.on_confirm(frame):
            self.session.on_period(now)

    def _on_reported(self, _now: Nanos, source: MemberId, frame: Reported) -> None:
        if not self.session.on_reported(frame):
            return
        for sender in frame.frozen:
            stream = self.receiver.streams.get(sender)
            if stream is not None and sender != self._me:
                stream.frozen = True
        if self.desk.logged.learn(MemberId(source.name, frame.log), frame.logged):
            self._look_at_logged()
        for sender, seq in frame.logged:
            stream = self._stream(sender, seq)
            if stream is not None and sender != self._me:
                self.fetching.learn(stream, seq)
                stream.hear_of(seq, self.desk.round)
        self.fetching.go_on()

    def _on_closed(self, now: Nanos, _source: MemberId, frame: Closed) -> None:
        if frame.sender == self._me:
            self._fence()
            return
        self.session.settled(frame.sender)
        self.desk.idle.forget(frame.sender)
        if not self.session.admitted:
            return
        if frame.sender in self.receiver.ended:
            self.session.remind(frame.sender, frame.last)
            return
        stream = self._stream(frame.sender, frame.last)
        if stream is None:  # at most once, and its sender will never say where to begin
            self.session.settled(frame.sender)
            self.receiver.ended.add(frame.sender, frame.last)
            self.session.remind(frame.sender, frame.last)
        else:
            stream.close(frame.last)
            stream.hear_of(frame.last, self.desk.round)
            self.receiver.lose(stream, [span for span in frame.holes if span[1] <= frame.last], "abandoned")
            self.receiver.advance(stream)
            if self.settings.eager:
                self._ask_at_once(now, stream, stream.next + 1, frame.last)

    def _fence(self) -> None:
        """The logger took this sender for dead: what is sent from now on would never be logged."""
        if not self._left:
            self.sender.fenced = self._left = True
            self.out.deliver(Note("fenced"))
            self.out.deliver(Left("the logger closed its stream, having heard nothing of it", again=True))

    def _yield_to(self, other: MemberId) -> None:
        """Somebody began later under this name: two would take the session from each other for ever."""
        self._left = True
        self.out.deliver(Note("detached"))
        self.out.deliver(Left(f"{other} has the same name, and began later: a name stands for one process"))

    def unsettled(self) -> tuple[MessageId, ...]:
        """What is not logged may not survive."""
        first, last = self.sender.logged + 1, self.sender.seq
        return tuple(MessageId(self._me, seq) for seq in range(first, last + 1))

    def _on_inquire(self, _now: Nanos, source: MemberId, frame: Inquire) -> None:
        """What is held here of a stream, and the highest number heard of."""
        if not self.session.admitted:
            return
        stream, kept = self.receiver.streams.get(frame.sender), self.desk.buffer.get(frame.sender)
        if stream is not None and frame.freeze and frame.sender != self._me:
            stream.frozen = True
        if stream is None and frame.freeze:
            self.session.freeze(frame.sender)
        known = 0 if stream is None else stream.known
        held = [] if kept is None else spans_of(seq for seq in sorted(kept.messages) if seq > frame.after)
        some = next(some_spans(held))
        self.out.send(source, Holding(frame.sender, frame.after, known, some, len(some) < len(held)))

    def _on_refused(self, _now: Nanos, _source: MemberId, frame: Refused) -> None:
        why = self.session.on_refused(frame)
        if why is not None and not self._left:
            self._left = True
            self.out.deliver(Left(why))

    def acknowledge(self, now: Nanos, upto: Mapping[MemberId, int], ticket: int = 0) -> None:  # noqa: ARG002
        """The program is through with these streams up to these numbers, where it says so itself.

        An `Answered` with the ticket says that a logger has that on disk. Raises ValueError if something was
        not delivered here.
        """
        if not self.settings.explicit:
            raise ValueError("acknowledgements are automatic here: set explicit")
        self.acknowledging.acknowledge(upto, ticket, self.session.logger)

    def _on_acknowledged(self, _now: Nanos, _source: MemberId, frame: Acknowledged) -> None:
        self.acknowledging.on_acknowledged(frame)

    def _on_disown(self, now: Nanos, _source: MemberId, frame: Disown) -> None:
        """Loggers that never come back: what only they have is not logged."""
        for name in frame.names:
            self.roster.disown(name)
            self.desk.logged.disown(name)
        self._look_for_logger(now)

    def _on_farewell(self, _now: Nanos, _source: MemberId, frame: Farewell) -> None:
        self.session.on_farewell(frame)
        if not self.session.over and not self._left:
            self._left = True
            self.out.deliver(Left("the logger ended its session, having heard nothing of it", again=True))
        self._see_the_end()

    # Time

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A round, a heartbeat, or a report."""
        if self._left:
            return
        if self._disconnected and timer in _TALKS:
            self.out.set_timer(timer, now + self.settings.gossip_period)
        elif timer is GossipTimer.PRESENCE:
            self._say_present(now)
        elif timer is GossipTimer.ROUND:
            self._round(now)
            self.out.set_timer(GossipTimer.ROUND, now + self.settings.gossip_period)
        elif timer is GossipTimer.RATE:
            self._unblock()
        elif timer is GossipTimer.HEARTBEAT:
            self._heartbeat(now)
        else:
            assert timer is GossipTimer.REPORT
            self.session.on_period(now)
            self._see_the_end()
            self.out.set_timer(GossipTimer.REPORT, now + self._soon())

    def _round(self, now: Nanos) -> None:
        self.desk.round += 1
        self.roster.look(now)
        self._look_for_logger(now)
        if self.settings.logs:
            self._resend(now)
        self.rate.on_round(now, self.sender.seq)
        if self.session.admitted:
            self.acknowledging.on_round(self.session.logger)
            self.repair.on_round(now)
        self.desk.buffer.age(self.desk.round)

    def _resend(self, now: Nanos) -> None:
        """3.1: to the loggers that have not acknowledged it."""
        loggers = self.roster.loggers()
        for batch in self.sender.overdue(now):
            for logger in loggers.values():
                if self.desk.logged.at(logger.name, self._me) < batch.first:
                    self.stats.retransmitted += 1
                    self.out.send(logger, data_of(batch))

    def _heartbeat(self, now: Nanos) -> None:
        """3.1 tick, 5.1: an idle sender says its number; once, where hashes spread it."""
        self.stats.control_frames += 1
        self.desk.idle.mark(self._me, self.sender.seq)
        self.out.multicast(Idle(self.sender.seq))
        if self.repair.repeats_heartbeat:
            self.out.set_timer(GossipTimer.HEARTBEAT, now + self.sender.pause())

    def _soon(self) -> Nanos:
        """Until the next report; much sooner while the logger has yet to admit, or to say farewell."""
        report = self.settings.report
        hurried = not self.session.admitted or self.session.leaving
        return min(report, self.settings.resend) if hurried else report

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Hand over who is there, and what is next of each stream."""
        views = [self.roster.change()] if self._has_news() else []
        batches = self.receiver.deliver(most)
        if batches:
            self._unblock()
            self.fetching.go_on()
        return [*views, *batches]

    def _has_news(self) -> bool:
        """Whether to tell the program who is there: not before own messages that wait, and name a view."""
        return self.roster.changed and not self.receiver.waits_for(self._me)

    def on_reader(self, now: Nanos) -> None:  # noqa: ARG002
        """The program waits, or does not any more."""
        self._unblock()

    def deliverable(self) -> bool:
        """Whether a message or a view waits for the program; nothing does for one that will come back."""
        if self.settings.stays and self.reader.closing:
            return False
        return self.receiver.waiting > 0 or self._has_news()

    def queued(self) -> int:
        """What waits for the program, and what its mailbox holds beyond its bound."""
        return self.receiver.waiting + self.reader.excess

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits for the program."""
        self.receiver.reclaim()

    def overflowing(self) -> bool:
        """Whether own messages fill queue and reserve."""
        return self.reader.waits and not self.receiver.has_room(self.settings.reserve_messages)

    def caveat(self) -> str:
        """Without a logger much less is promised."""
        if self.settings.logs:
            return ""
        return "no logger: what no member has any more is lost (pbcast's promise)"

    def held_back(self) -> HeldBack | None:
        """Its logger, most receivers, or its own program; no single receiver ever."""
        if not self._blocked:
            return None
        if self.sender.room() < 1:
            return HeldBack(self.session.logger, "it has not logged what was sent")
        if self.rate.limit is not None and self._waits_for() is None:
            return HeldBack(None, "most receivers cannot follow")
        return HeldBack(self._me, "its program does not read")

    def buffered(self) -> int:
        """What is kept for others, and what waits here."""
        return len(self.desk.buffer) + self.receiver.held() + self.receiver.waiting
