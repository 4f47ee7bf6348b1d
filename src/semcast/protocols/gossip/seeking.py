"""A member that works with a logger if there is one, and without if there is none.

Without a logger the promise is pbcast's, and nothing waits for anybody. A member cannot know beforehand: it
looks for a logger for a while. If one comes later, the member goes on as another incarnation, since what it
sent before is in no log, and what it received was promised to nobody.
"""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.events import Left
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.gossip.member import Member
from semcast.protocols.gossip.settings import GossipSettings


class SeekerTimer(Timer):
    """What it waits for besides."""

    SEARCH = "search"


class Seeker(Member):
    """A member of a group that may have loggers.

    Args:
        me: this member.
        members: whom it knows to begin with.
        settings: of the group, as if it had loggers.
        search: how long it looks for one.
        rng: where chance comes from.
        out: where everything goes.
    """

    def __init__(
        self,
        me: MemberId,
        members: Sequence[MemberId],
        settings: GossipSettings,
        search: Nanos,
        rng: Random,
        out: Outbox,
    ) -> None:
        super().__init__(me, members, settings, rng, out)
        self._wanted = settings
        self._search = search
        self._searching = True

    def start(self, now: Nanos) -> None:
        """Begin to look."""
        super().start(now)
        self.out.set_timer(SeekerTimer.SEARCH, now + self._search)

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "Stack | None":
        """Who goes on: it looks for a logger again."""
        return type(self)(member, self.view().members, self._wanted, self._search, rng, out)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """The search is over, or what any member waits for."""
        if timer is not SeekerTimer.SEARCH:
            super().on_timer(now, timer)
        elif self._searching and not self._left:
            self._searching = False
            if self.session.logger is None:
                self._go_without(now)
            self.sending.unblock()

    def _go_without(self, now: Nanos) -> None:
        """Nobody is there who logs."""
        blocked = self.sending.blocked
        self._assemble(msgspec.structs.replace(self.settings, durable=False))
        self.sending.blocked = blocked
        self.receiver.open(self._me, 0, self.session.level)
        self.session.start(now)
        self.belonging.say_present(now)
        self.belonging.applying.start(now, asked=True)

    def _looking(self) -> bool:
        return self._undecided() or super()._looking()

    def _hindrance(self) -> str | None:
        """Nothing is sent before it is known whether it will be logged."""
        return "search" if self._undecided() else super()._hindrance()

    def _undecided(self) -> bool:
        return self._searching and not self.session.admitted

    def held_back(self) -> HeldBack | None:
        """While it looks, nobody is in the way."""
        return HeldBack(None, "it looks for a logger") if self._undecided() else super().held_back()

    def _look_for_logger(self, now: Nanos) -> None:
        """One that comes later is worth another beginning."""
        if self.settings.logs:
            super()._look_for_logger(now)
        elif self.roster.loggers() and not self._left:
            self._left = True
            self.out.deliver(Left("a logger is there now, which knows nothing of it", again=True))
