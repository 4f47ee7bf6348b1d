"""What loggers say to a member: what is logged, where its session stands, which streams are over."""

from collections.abc import Callable
from typing import Any

from semcast.core.events import Left, Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.gossip.acknowledging import Acknowledging
from semcast.protocols.gossip.belonging import Belonging
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.frames import (
    Acknowledged,
    Closed,
    Confirm,
    Disown,
    Farewell,
    Full,
    Gone,
    Inquire,
    Logged,
    Refused,
    Reported,
    Want,
)
from semcast.protocols.gossip.incoming import Incoming
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.sending import Sending
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.sponsor_frames import Enrolled
from semcast.protocols.gossip.supplying import Supplying

Handler = Callable[[Nanos, MemberId, Any], None]


class FromLogger:
    """Of one member.

    Args:
        desk: what the parts of the member share.
        session: where it stands with its logger.
        sender: its stream.
        sending: to be told what is logged of it.
        incoming: the streams of others.
        supplying: gives loggers what they lack.
        acknowledging: what its program is through with.
        belonging: its sponsors and its home.
        roster: who is there.
        end: to leave the group, at once.
        farewell: to leave it as was asked for, once the session is over.
        look: to look for another logger, if need be.
    """

    def __init__(
        self,
        desk: Desk,
        session: Session,
        sender: Sender,
        sending: Sending,
        incoming: Incoming,
        supplying: Supplying,
        acknowledging: Acknowledging,
        belonging: Belonging,
        roster: Roster,
        end: Callable[[Left], None],
        farewell: Callable[[], None],
        look: Callable[[Nanos], None],
    ) -> None:
        self._desk = desk
        self._session = session
        self._sender = sender
        self._sending = sending
        self._incoming = incoming
        self._supplying = supplying
        self._acknowledging = acknowledging
        self._roster = roster
        self._end = end
        self._farewell = farewell
        self._look = look
        self._full: set[str] = set()  # loggers that have no room for this sender
        self.handlers: dict[type[Frame], Handler] = {
            Want: supplying.on_want,
            Gone: lambda _now, _source, frame: incoming.on_gone(frame),
            Logged: self._on_logged,
            Confirm: self._on_confirm,
            Reported: self._on_reported,
            Closed: self._on_closed,
            Inquire: self._on_inquire,
            Farewell: self._on_farewell,
            Refused: self._on_refused,
            Full: self._on_full,
            Acknowledged: self._on_acknowledged,
            Disown: self._on_disown,
            Enrolled: belonging.on_enrolled,
        }

    def _on_logged(self, _now: Nanos, source: MemberId, frame: Logged) -> None:
        if self._full and any(sender == self._desk.me for sender, _ in frame.upto):
            self._full.discard(source.name)
        if self._desk.learn(MemberId(source.name, frame.log), frame.upto):
            self._sending.see_logged()
        self._incoming.on_logged(frame.upto)

    # Its session

    def _on_confirm(self, now: Nanos, _source: MemberId, frame: Confirm) -> None:
        if self._session.on_confirm(frame):
            self._session.on_period(now)
            self._sending.unblock()

    def _on_reported(self, _now: Nanos, source: MemberId, frame: Reported) -> None:
        if not self._session.on_reported(frame):
            return
        self._incoming.freeze(frame.frozen)
        if self._desk.learn(MemberId(source.name, frame.log), frame.logged):
            self._sending.see_logged()
        self._incoming.on_logged(frame.logged)

    def _on_acknowledged(self, _now: Nanos, _source: MemberId, frame: Acknowledged) -> None:
        if self._session.is_meant(frame.incarnation):
            self._acknowledging.on_acknowledged(frame)

    def _on_refused(self, now: Nanos, _source: MemberId, frame: Refused) -> None:
        why = self._session.on_refused(frame)
        if why is not None:
            self._give_up(now, why)

    def _give_up(self, now: Nanos, why: str) -> None:
        """It cannot stay: it leaves, once its session has ended, where it may have one."""
        if not self._session.why and not self._session.give_up(now, why):
            self._end(Left(why))

    def _on_full(self, now: Nanos, source: MemberId, frame: Full) -> None:
        """A logger logs nothing of this sender. Where too few others could, it would wait for ever."""
        if not self._session.is_meant(frame.incarnation):
            return
        self._full.add(source.name)
        others = [name for name in self._roster.loggers() if name not in self._full]
        if len(others) < self._desk.settings.log_acks:
            self._give_up(now, f"{source.name} cannot log what is sent here: {frame.why}")

    def _on_farewell(self, _now: Nanos, _source: MemberId, frame: Farewell) -> None:
        """As was asked for; or because nothing was heard of this member."""
        if not self._session.on_farewell(frame):
            return
        if self._session.over:
            self._farewell()
        else:
            self._end(Left("the logger ended its session, having heard nothing of it", again=True))

    # Streams that are over

    def _on_closed(self, now: Nanos, _source: MemberId, frame: Closed) -> None:
        if frame.sender != self._desk.me:
            self._incoming.on_closed(now, frame)
        elif not self._session.parting:  # of who leaves it may come before the farewell, which is asked for
            self._fence()

    def _fence(self) -> None:
        """The logger took this sender for dead: what is sent from now on would never be logged."""
        self._sender.fenced = True
        self._desk.out.deliver(Note("fenced"))
        self._end(Left("the logger closed its stream, having heard nothing of it", again=True))

    def _on_inquire(self, _now: Nanos, source: MemberId, frame: Inquire) -> None:
        self._supplying.on_inquire(source, frame)

    def _on_disown(self, now: Nanos, _source: MemberId, frame: Disown) -> None:
        """Loggers that never come back: what only they have is not logged."""
        for name in frame.names:
            self._roster.disown(name)
            self._desk.logged.disown(name)
        self._look(now)
