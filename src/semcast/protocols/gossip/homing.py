"""Which logger a session reports to: its home."""

from random import Random

from semcast.core.ids import Nanos
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.session import Session


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

    def look(self, now: Nanos) -> None:
        """The home logger: the one that is set, or any; another one, when it does not answer any more."""
        loggers, home = self._roster.loggers(), self._session.logger
        if not loggers or (home in loggers.values() and not self._session.deserted(now)):
            return
        others = [name for name in sorted(loggers) if home is None or name != home.name]
        if home is not None and home.name in loggers and not (others and self._session.deserted(now)):
            name = home.name
        else:
            name = self._choose(others)
        self._desk.logger = loggers[name]
        self._session.move(now, self._desk.logger)

    def _choose(self, names: list[str]) -> str:
        return self._settings.home if self._settings.home in names else self._rng.choice(names)
