"""Streams that are over: what still comes of them, however late, is not new."""

from semcast.core.ids import MemberId

_MOST = 8192
"""Streams that are told from new ones, the last to end: nobody can make us keep more."""
NEWEST = 1024
"""As many are named to who joins: nobody talks for long about what all are through with."""


class Ended:
    """In the order in which they ended.

    >>> ended = Ended()
    >>> ended.add(MemberId("p", 3), 7)
    >>> MemberId("p", 3) in ended, MemberId("p", 2) in ended, ended.last(MemberId("p", 3))
    (True, False, 7)
    """

    def __init__(self) -> None:
        self._lasts: dict[MemberId, int] = {}

    def __len__(self) -> int:
        return len(self._lasts)

    def add(self, stream: MemberId, last: int) -> None:
        """It ended with this number; the first that did is forgotten, if there are too many."""
        self._lasts[stream] = last
        if len(self._lasts) > _MOST:
            del self._lasts[next(iter(self._lasts))]

    def __contains__(self, stream: object) -> bool:
        return stream in self._lasts

    def last(self, stream: MemberId) -> int:
        """Where it ended; 0 if it did not."""
        return self._lasts.get(stream, 0)

    def entries(self) -> list[tuple[MemberId, int]]:
        """All of them."""
        return list(self._lasts.items())

    def newest(self) -> list[tuple[MemberId, int]]:
        """Those that ended last."""
        return self.entries()[-NEWEST:]
