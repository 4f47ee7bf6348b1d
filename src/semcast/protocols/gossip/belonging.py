"""How a member belongs to its group: it is taken in, takes others in, has a home logger, and leaves (5.3)."""

from collections.abc import Callable
from random import Random
from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.applying import Applying
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.finding import Finding
from semcast.protocols.gossip.frames import Members, Presence
from semcast.protocols.gossip.homing import Homing
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.sponsor_frames import Enrolled, Vouch
from semcast.protocols.gossip.sponsoring import Sponsoring
from semcast.protocols.gossip.timers import GossipTimer


class Belonging:
    """Of one member.

    Args:
        desk: what the parts of the member share.
        session: what a logger knows of it.
        finding: finds out who is there.
        rng: where chance comes from.
        look: to look for another logger, if need be.
        joined: to be told that sponsors have taken this one in.
    """

    applying_kind: ClassVar[type[Applying]] = Applying
    sponsoring_kind: ClassVar[type[Sponsoring]] = Sponsoring

    def __init__(
        self,
        desk: Desk,
        session: Session,
        finding: Finding,
        rng: Random,
        look: Callable[[Nanos], None],
        joined: Callable[[Nanos], None],
    ) -> None:
        me, settings, stats, out = desk.me, desk.settings, desk.stats, desk.out
        self._out = out
        self._session = session
        self._finding = finding
        self._look = look
        roster = finding.roster
        self.homing = Homing(desk, session, roster, rng)
        self.applying = self.applying_kind(me, settings, session, roster, stats, out)
        self.applying.joined = joined
        self.sponsoring = self.sponsoring_kind(me, settings, session, desk.receiver, roster, stats, rng, out)
        session.bound = self.sponsoring.bound
        session.tells_others = self.applying.leave
        session.may_leave = lambda: not self.sponsoring.owes

    def say_present(self, now: Nanos) -> None:
        """To anybody: this member is there."""
        pause = self._finding.say_present()
        if pause:
            self._out.set_timer(GossipTimer.PRESENCE, now + pause)

    def on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        """Somebody is there; perhaps a logger."""
        self._finding.on_presence(now, source, frame)
        self._look(now)

    def on_members(self, now: Nanos, _source: MemberId, frame: Members) -> None:
        """Somebody says who is there."""
        self._finding.roster.learn(now, frame.known)
        self._look(now)

    def on_vouch(self, now: Nanos, source: MemberId, frame: Vouch) -> None:
        """A sponsor answers."""
        self.applying.on_vouch(now, source, frame)

    def on_enrolled(self, _now: Nanos, _source: MemberId, frame: Enrolled) -> None:
        """A logger knows of somebody whom this one sponsors."""
        self.sponsoring.on_enrolled(frame)

    def on_round(self, now: Nanos) -> None:
        """Ask for what is not answered yet."""
        self.applying.on_round(now)
        self.sponsoring.on_round(self._session.logger)

    @property
    def confidant(self) -> MemberId | None:
        """The logger that may be told what the program is through with; None while others depend on it."""
        return None if self.sponsoring.owes else self._session.logger
