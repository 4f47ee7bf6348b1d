"""What is known to be on a logger's disk: what may be forgotten, and what may replace others."""

from collections.abc import Iterable, Mapping

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Entry, entries


class LoggedNumbers:
    """Of the newest log that was heard of: what was on one that is lost does not count any more."""

    def __init__(self) -> None:
        self.log = 0
        self._upto: dict[MemberId, int] = {}
        self._parts: list[list[Entry]] = []  # which streams a frame has room for; worked out when needed

    def learn(self, log: int, upto: Iterable[Entry]) -> bool:
        """A log has everything up to these numbers; False if it is an old one."""
        if log < self.log:
            return False
        if log > self.log:
            self.log = log
            self._upto.clear()
            self._parts = []
        for stream, seq in upto:
            before = self._upto.get(stream, 0)
            if seq > before:
                self._upto[stream] = seq
                if not before:
                    self._parts = []
        return True

    def upto(self, stream: MemberId) -> int:
        """Everything of a stream up to there is on disk."""
        return self._upto.get(stream, 0)

    def forget(self, stream: MemberId) -> None:
        """The stream is over."""
        if self._upto.pop(stream, None) is not None:
            self._parts = []

    @property
    def numbers(self) -> Mapping[MemberId, int]:
        """All of it, as it grows."""
        return self._upto

    def some(self, turn: int) -> list[Entry]:
        """A part that fits into a frame, another one each time."""
        if not self._parts:
            self._parts = entries(sorted(self._upto.items()))
        part = self._parts[turn % len(self._parts)]
        return [(stream, self._upto[stream]) for stream, _ in part]
