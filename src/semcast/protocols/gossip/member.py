"""One member: multicast first, unreliably; then repair what was lost (Sun 2000, chapters 3 and 4).

Who else is there it knows approximately (`members.py`). A restart is a new incarnation, hence another stream;
whom it follows up on is for the session to say.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from semcast.core.annotations import Annotation, Item
from semcast.core.confirming import Asked, Confirming
from semcast.core.events import Delivery, Left, Note, Unconfirmed
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.gossip.acknowledging import Acknowledging
from semcast.protocols.gossip.belonging import Belonging
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.fetching import Fetching
from semcast.protocols.gossip.finding import Finding
from semcast.protocols.gossip.frames import (
    Digest,
    Disown,
    Gossip,
    Idle,
    Members,
    Notice,
    Presence,
    Said,
    Say,
    Standing,
)
from semcast.protocols.gossip.from_logger import FromLogger
from semcast.protocols.gossip.incoming import Incoming
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
from semcast.protocols.gossip.sending import Sending
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.settings import GossipSettings, Protocol
from semcast.protocols.gossip.sponsor_frames import Apply, Vouch
from semcast.protocols.gossip.supplying import Supplying
from semcast.protocols.gossip.timers import GossipTimer

Handler = Callable[[Nanos, MemberId, Any], None]

REPAIRS: dict[Protocol, type[Repair]] = {
    Protocol.LBRM: Lbrm,
    Protocol.PBCAST: Pbcast,
    Protocol.RPBCAST: Rpbcast,
}


_STRANGERS = frozenset({Find, Presence, Apply})
"""Said also by who is no member."""
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

    watches_mailbox = True
    roster_kind: ClassVar[type[Roster]] = Roster
    receiver_kind: ClassVar[type[Receiver]] = Receiver
    sender_kind: ClassVar[type[Sender]] = Sender
    session_kind: ClassVar[type[Session]] = Session
    desk_kind: ClassVar[type[Desk]] = Desk
    peers_kind: ClassVar[type[Peers]] = Peers
    rate_kind: ClassVar[type[Rate]] = Rate
    belonging_kind: ClassVar[type[Belonging]] = Belonging
    from_logger_kind: ClassVar[type[FromLogger]] = FromLogger
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
        self.finding.looking = self._looking
        self._assemble(settings)
        self._confirming = Confirming(out)
        self._left = False
        self._disconnected = False

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
        self.sending = Sending(
            settings, self.sender, self.rate, self.desk, lambda: self.reader, self._hindrance
        )
        self.incoming = Incoming(self.desk, self.session, self.roster, self.repair, self.fetching)
        self.supplying = Supplying(self.desk, self.sender, self.session)
        self.belonging = self.belonging_kind(
            self.desk, self.session, self.finding, self._rng, self._look_for_logger, self._on_joined
        )
        self.from_logger = self.from_logger_kind(
            self.desk,
            self.session,
            self.sender,
            self.sending,
            self.incoming,
            self.supplying,
            self.acknowledging,
            self.belonging,
            self.roster,
            self._end,
            self._see_the_end,
            self._look_for_logger,
        )
        self._assemble_handlers()

    def _assemble_handlers(self) -> None:
        """Who deals with what."""
        self._handlers: dict[type[Frame], Handler] = {
            Notice: lambda _now, source, frame: self.incoming.on_notice(source, frame),
            Gossip: self._on_gossip,
            Digest: self._on_digest,
            Say: lambda _now, source, frame: self.out.send(source, Said(frame.fresh, self.sender.seq)),
            Said: lambda _now, source, frame: self.incoming.on_said(source, frame),
            Presence: self.belonging.on_presence,
            Members: self.belonging.on_members,
            Vouch: self.belonging.on_vouch,
        }

    # Life

    def start(self, now: Nanos) -> None:
        """Say who is known, ask for a session, and begin to gossip, out of step with the others."""
        self.roster.start(now)
        self.out.deliver(self.roster.change())
        self.receiver.open(self._me, 0, self.session.level)
        self._look_for_logger(now)
        self.session.start(now)
        self.belonging.say_present(now)
        self.belonging.applying.start(now)
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
                self.session.go_away(now)
            self.finding.say_goodbye(Standing.AWAY)

    def reconnect(self, now: Nanos) -> None:
        """It is back: report at once, and go on from there."""
        if not self._left and self._disconnected:
            self._disconnected = False
            self.roster.start(now)
            self.belonging.say_present(now)
            self.session.on_period(now)
            self.belonging.applying.again()

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "Stack | None":
        """Who goes on when this stream was closed though its sender is there."""
        found = type(self)(member, self.view().members, self.settings, rng, out)
        found.belonging.sponsoring.inherit(self.belonging.sponsoring)
        return found

    def _see_the_end(self) -> None:
        if self.session.over and not self._left:
            self._left = True
            self.finding.say_goodbye()
            self.out.deliver(Left(self.session.why or "asked to"))

    def _end(self, left: Left) -> None:
        """At once, without a word to the others."""
        if not self._left:
            self._left = True
            self.out.deliver(left)

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
        return self.sending.multicast(now, payloads, annotation)

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation],
        *,
        safe: bool = False,
    ) -> int:
        """Messages that have an annotation each: updates of items leave in runs."""
        items = [note.item for note in annotations if type(note) is Item]
        if len(items) < len(payloads) or safe:
            return super().multicast_each(now, payloads, annotations, safe=safe)
        return self.sending.multicast_updates(now, payloads, items)

    def _hindrance(self) -> str | None:
        """What else keeps this member from sending: nobody would be owed what it sends before it is one.

        Nor would anybody wait for what is sent by one that gives up.
        """
        if self.session.why:
            return "leaving"
        return "sponsors" if self._looking() else None

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
        """One alone."""
        self.on_frames(now, source, (frame,))

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member; what they leave to be fetched is asked for once."""
        for frame in frames:
            self._on_frame(now, source, frame)
        if self.fetching.behind:
            self.fetching.go_on()

    def _on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What no correct member sends is dropped and counted."""
        kind = type(frame)
        if kind in _STRANGERS and self._is_of_stranger(now, source, frame):
            return
        if source == self._me or self._left or not self.roster.heard(now, source):
            self.stats.malformed += 1
            return
        if source.name == self._me.name and source > self._me:
            self._yield_to(source)
            return
        if isinstance(frame, Data):  # most are one of these two: nothing has to be looked up
            self.incoming.on_data(now, source, frame)
            return
        if isinstance(frame, Idle):
            self.desk.mark_idle(now, source, frame.seq)
            return
        handler = self._handlers.get(kind)
        if handler is None and self.roster.is_logger(source):
            handler = self.from_logger.handlers.get(kind)
        if handler is not None:
            handler(now, source, frame)
        elif not self.repair.on_frame(now, source, frame):
            self.stats.malformed += 1

    def _is_of_stranger(self, now: Nanos, source: MemberId, frame: Frame) -> bool:
        """Deal with what is said by who looks for a logger, or for sponsors: it is no member."""
        if isinstance(frame, Apply):
            if source != self._me and not self._left and not self._disconnected:
                self.belonging.sponsoring.on_apply(now, source, frame)
            return True
        if isinstance(frame, Presence):
            if frame.standing is not Standing.LOOKING:
                return False
            if source != self._me and not self._left:
                self.finding.on_looking(now, source)
        return True

    def _on_digest(self, now: Nanos, source: MemberId, frame: Digest) -> None:
        self.finding.compare(now, source, frame)
        if not self.repair.on_frame(now, source, frame):
            self.stats.malformed += 1

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        """What it lacks of this sender is looked at, too."""
        self.finding.compare(now, source, frame)
        if not frame.gap:
            self.rate.heard(source.name, frame.lacks, self.sender.seq)
        if not self.repair.on_frame(now, source, frame):
            self.stats.malformed += 1

    def _hear_of(self, now: Nanos, sender: MemberId, seq: int) -> None:
        self.incoming.hear_of(now, sender, seq)

    # Who is there

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Nobody is asked who is not there."""
        self.roster.failed(now, member)

    def _look_for_logger(self, now: Nanos) -> None:
        self.belonging.homing.look(now)

    def _looking(self) -> bool:
        """Whether this one is no member yet: others count on a member that gets what they send."""
        return not self.settings.logs and not self.session.admitted

    def _on_joined(self, now: Nanos) -> None:
        self.belonging.say_present(now)
        self.sending.unblock()

    def _yield_to(self, other: MemberId) -> None:
        """Somebody began later under this name: two would take the session from each other for ever."""
        self.out.deliver(Note("detached"))
        self._end(Left(f"{other} has the same name, and began later: a name stands for one process"))

    def unsettled(self) -> tuple[MessageId, ...]:
        """What is not logged may not survive."""
        first, last = self.sender.logged + 1, self.sender.seq
        return tuple(MessageId(self._me, seq) for seq in range(first, last + 1))

    def acknowledge(self, now: Nanos, upto: Mapping[MemberId, int], ticket: int = 0) -> None:  # noqa: ARG002
        """The program is through with these streams up to these numbers, where it says so itself.

        An `Answered` with the ticket says that a logger has that on disk. Raises ValueError if something was
        not delivered here.
        """
        if not self.settings.explicit:
            raise ValueError("acknowledgements are automatic here: set explicit")
        self.acknowledging.acknowledge(upto, ticket, self.belonging.confidant)

    # Time

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A round, a heartbeat, or a report."""
        if self._left:
            return
        if self._disconnected and timer in _TALKS:
            self.out.set_timer(timer, now + self.settings.gossip_period)
        elif timer is GossipTimer.PRESENCE:
            self.belonging.say_present(now)
        elif timer is GossipTimer.ROUND:
            self._round(now)
            self.out.set_timer(GossipTimer.ROUND, now + self.settings.gossip_period)
        elif timer is GossipTimer.RATE:
            self.sending.unblock()
        elif timer is GossipTimer.HEARTBEAT:
            self.sending.heartbeat(now, repeats=self.repair.repeats_heartbeat)
        else:
            assert timer is GossipTimer.REPORT
            self._remind_of_forgotten()
            self.session.on_period(now)
            self._see_the_end()
            self.out.set_timer(GossipTimer.REPORT, now + self._soon())

    def _remind_of_forgotten(self) -> None:
        """The disks that knew which loggers never come back may all be lost: a new log asks who knows."""
        names, logger = self.roster.disowned, self.session.logger
        if names and logger is not None:
            self.out.send(logger, Disown(names))

    def _round(self, now: Nanos) -> None:
        self.desk.round += 1
        self.roster.look(now)
        self._look_for_logger(now)
        if self.settings.logs:
            self.sending.resend(now, list(self.roster.loggers().values()))
        self.belonging.on_round(now)
        self._see_the_end()
        self.rate.on_round(now, self.sender.seq, len(self._peers))
        if self.session.admitted:
            self.acknowledging.on_round(self.belonging.confidant)
            self.fetching.on_round()
            self.repair.on_round(now)
        self.desk.buffer.age(self.desk.round)

    def _soon(self) -> Nanos:
        """Until the next report; much sooner while the logger has yet to admit, or to say farewell."""
        report = self.settings.report
        hurried = not self.session.admitted or self.session.leaving
        return min(report, self.settings.resend) if hurried else report

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Hand over who is there, what will not come, and what is next of each stream."""
        receiver = self.receiver
        views = [self.roster.change()] if self.roster.changed and self._has_news() else []
        losses = receiver.losses() if receiver.lost else []
        batches = receiver.deliver(most)
        if batches:
            if self.sending.blocked:
                self.sending.unblock()
            if self.fetching.behind:
                self.fetching.go_on()
        return [*views, *losses, *batches] if views or losses else batches

    def _has_news(self) -> bool:
        """Whether to tell the program who is there: not before own messages that wait, and name a view."""
        return self.roster.changed and not self.receiver.waits_for(self._me)

    def on_reader(self, now: Nanos) -> None:  # noqa: ARG002
        """The program waits, or does not any more."""
        self.sending.unblock()

    def deliverable(self) -> bool:
        """Whether a message or a view waits for the program; nothing does for one that will come back."""
        receiver = self.receiver
        if self.settings.stays and self.reader.closing:
            return False
        return bool(receiver.queue.messages or receiver.lost or (self.roster.changed and self._has_news()))

    def queued(self) -> int:
        """What waits for the program, and what its mailbox holds beyond its bound."""
        return self.receiver.queue.messages + self.reader.excess

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits for the program."""
        self.receiver.reclaim()

    def overflowing(self) -> bool:
        """Whether own messages fill queue and reserve."""
        return self.reader.waits and not self.receiver.room(reserve=self.settings.reserve_messages)

    def caveat(self) -> str:
        """Without a logger much less is promised."""
        if self.settings.logs:
            return ""
        return "no logger: what no member has any more is lost (pbcast's promise)"

    def leaves_unheard(self) -> bool:
        """All loggers have left. Its session stays on their disks; what it sent is there, too."""
        logged = self.sender.logged == self.sender.seq
        return self.settings.logs and logged and not self.roster.loggers()

    def held_back(self) -> HeldBack | None:
        """Its logger, most receivers, or its own program; no single receiver ever."""
        return self.sending.held_back(self.session.logger)

    def buffered(self) -> int:
        """What is kept for others, and what waits here."""
        return len(self.desk.buffer) + self.receiver.held() + self.receiver.queue.messages
