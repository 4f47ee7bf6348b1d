"""Which logger a session reports to: its home."""

from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.session import Session

_PATIENCE = 12
"""Reports for which a session that was deserted stays where it went: what deserted it may do so again."""


class Homing:
    """Of one member.

    Args:
        desk: asks that logger for what is missing.
        session: reports to it.
        roster: who is there.
        rng: where chance comes from.
    """

    def __init__(self, desk: Desk, session: Session, roster: Roster, rng: Random) -> None:
        self._settings = desk.settings
        self._desk = desk
        self._session = session
        self._roster = roster
        self._rng = rng
        self._stays_until: Nanos = 0

    def look(self, now: Nanos) -> None:
        """The logger that is set, one of the own region, or any; another, when it does not answer any more.

        Who had to go elsewhere comes back some time after the one that it prefers is there again.
        """
        loggers, home = self._roster.loggers(), self._session.logger
        deserted = self._session.deserted(now)
        if not loggers or (home in loggers.values() and not deserted and not self._longs(now, home)):
            return
        others = [name for name in sorted(loggers) if home is None or name != home.name]
        if deserted:
            self._stays_until = now + _PATIENCE * self._settings.report
        if (
            home is not None
            and home.name in loggers
            and not (others and (deserted or self._longs(now, home)))
        ):
            name = home.name
        else:
            name = self._choose(others)
        self._desk.logger = loggers[name]
        self._session.move(now, self._desk.logger)

    def _preferred(self, names: list[str]) -> list[str]:
        if self._settings.home in names:
            return [self._settings.home]
        return self._roster.regions.near(names)

    def _longs(self, now: Nanos, home: MemberId | None) -> bool:
        """Whether a session that is in use is far from home, and could go back."""
        if home is None or now < self._stays_until or not self._session.admitted:
            return False
        preferred = self._preferred(sorted(self._roster.loggers()))
        return bool(preferred) and home.name not in preferred

    def _choose(self, names: list[str]) -> str:
        return self._rng.choice(self._preferred(names) or names)
