"""What is known to be on loggers' disks: what may be forgotten, and what may replace others.

Something counts as logged when so many *different* loggers have it as were asked for (`log_acks`). A log is
named by its logger and the incarnation that began it: what was on one that is lost does not count any more.
"""

from collections.abc import Iterable, Mapping

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Entry, entries


class _Log:
    """What one logger has on disk."""

    def __init__(self, identity: MemberId) -> None:
        self.identity = identity
        self.upto: dict[MemberId, int] = {}
        self.parts: list[list[Entry]] = []  # which streams a frame has room for; worked out when needed

    def some(self, turn: int) -> list[Entry]:
        """A part that fits into a frame, another one each time."""
        if not self.parts:
            self.parts = entries(sorted(self.upto.items()))
        part = self.parts[turn % len(self.parts)]
        return [(stream, self.upto[stream]) for stream, _ in part]


class LoggedNumbers:
    """Of the newest log of each logger that was heard of.

    >>> logged, p = LoggedNumbers(2), MemberId("p")
    >>> logged.learn(MemberId("a", 1), [(p, 7)]), logged.upto(p)
    (True, 0)
    >>> logged.learn(MemberId("b", 1), [(p, 5)]), logged.upto(p)
    (True, 5)
    """

    def __init__(self, log_acks: int = 1) -> None:
        self._acks = log_acks
        self._logs: dict[str, _Log] = {}
        self._upto: dict[MemberId, int] = {}
        self._disowned: set[str] = set()  # loggers whose disks do not count

    def disown(self, logger: str) -> None:
        """A logger never comes back: what is on its disk does not count any more."""
        self._disowned.add(logger)
        former = self._logs.pop(logger, None)
        for stream in () if former is None else former.upto:
            self._count(stream)

    def learn(self, log: MemberId, upto: Iterable[Entry]) -> bool:
        """A log has everything up to these numbers; False if it is an old one, or does not count."""
        if log.name in self._disowned:
            return False
        known = self._logs.get(log.name)
        if known is not None and log.incarnation < known.identity.incarnation:
            return False
        if known is None or log.incarnation > known.identity.incarnation:
            known = self._renew(log)
        for stream, seq in upto:
            before = known.upto.get(stream, 0)
            if seq > before:
                known.upto[stream] = seq
                self._count(stream)
                if not before:
                    known.parts = []
        return True

    def _renew(self, log: MemberId) -> _Log:
        """What was on the one before is lost."""
        former = self._logs.get(log.name)
        found = self._logs[log.name] = _Log(log)
        for stream in () if former is None else former.upto:
            self._count(stream)
        return found

    def _count(self, stream: MemberId) -> None:
        """How many loggers have a stream, and how far."""
        if self._acks == 1 and len(self._logs) == 1:
            [only] = self._logs.values()
            found = only.upto.get(stream, 0)
        else:
            had = sorted((log.upto.get(stream, 0) for log in self._logs.values()), reverse=True)
            found = had[self._acks - 1] if len(had) >= self._acks else 0
        if found:
            self._upto[stream] = found
        else:
            self._upto.pop(stream, None)

    def upto(self, stream: MemberId) -> int:
        """Everything of a stream up to there is on so many disks."""
        return self._upto.get(stream, 0)

    def at(self, logger: str, stream: MemberId) -> int:
        """How far a stream is on the disk of one logger."""
        log = self._logs.get(logger)
        return 0 if log is None else log.upto.get(stream, 0)

    def forget(self, stream: MemberId) -> None:
        """The stream is over."""
        self._upto.pop(stream, None)
        for log in self._logs.values():
            if log.upto.pop(stream, None) is not None:
                log.parts = []

    @property
    def numbers(self) -> Mapping[MemberId, int]:
        """All of it, as it grows."""
        return self._upto

    def some(self, turn: int) -> tuple[MemberId | None, list[Entry]]:
        """A log, and a part of what is on it that fits into a frame; another one each time."""
        if not self._logs:
            return None, []
        logs = list(self._logs.values())
        log = logs[turn % len(logs)]
        return log.identity, log.some(turn // len(logs))
