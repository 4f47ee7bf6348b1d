"""How members find each other: they say that they are there, and tell each other whom they know."""

from collections.abc import Callable
from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.frames import Digest, Gossip, Presence, Standing
from semcast.protocols.gossip.members import Roster

_ANSWERS = 6
"""Of those that hear somebody ask, about so many answer (R-5: not all of a thousand); and every logger."""
_HURRY = 8
"""Who knows nobody says that it is there so many times as often."""


class Finding:
    """What a member or logger does about it.

    Args:
        roster: who is known.
        stats: counts what is sent.
        rng: where chance comes from.
        out: where frames go.
    """

    def __init__(self, roster: Roster, stats: Statistics, rng: Random, out: Outbox) -> None:
        self.roster = roster
        self._stats = stats
        self._rng = rng
        self._out = out
        self.looking: Callable[[], bool] = lambda: False
        """Whether this one is no member yet: then it asks, and tells nobody anything."""

    def say_present(self) -> Nanos:
        """This member is there, or looks; returns how long to wait before that is said again, 0 for ever."""
        roster = self.roster
        period = roster.period()
        if not period:
            return 0
        self._stats.control_frames += 1
        looking = self.looking()
        hurried = looking or roster.alone
        standing = Standing.LOOKING if looking else roster.standing
        self._out.announce(Presence(standing, hurried, roster.regions.mine))
        pause = max(1, period // _HURRY) if hurried else period
        return pause - self._rng.randrange(pause // 4 + 1)

    def say_goodbye(self, standing: Standing = Standing.GONE) -> None:
        """This member goes, for good or for a while."""
        if self.roster.period() or standing is Standing.AWAY:
            self._out.announce(Presence(standing))

    def on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        """Somebody is there; who knows nobody is told of others."""
        self.roster.regions.said(source, frame.region)
        self.roster.present(now, source, frame.standing)
        if frame.asks:
            self.on_looking(now, source)

    def on_looking(self, now: Nanos, source: MemberId) -> None:
        """Somebody asks who is there."""
        roster = self.roster
        logger = roster.standing is Standing.LOGGER
        if logger or self._rng.random() * len(roster.view().members) < _ANSWERS:
            self._tell(now, source)

    def compare(self, now: Nanos, source: MemberId, frame: Gossip | Digest) -> None:
        """Who knows others than are known here is told of these."""
        if frame.members is not None and frame.members != self.roster.hash(source, frame.round):
            self._tell(now, source)

    def _tell(self, now: Nanos, target: MemberId) -> None:
        if self.looking():
            return
        for part in self.roster.lists(now):
            self._stats.control_frames += 1
            self._out.send(target, part)
