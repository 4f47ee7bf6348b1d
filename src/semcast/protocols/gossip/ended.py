"""Streams that are over: what still comes of them, however late, is not new."""

from semcast.core.ids import MemberId

_MOST = 8
"""Of one name that are told apart; those before them are all over."""


class Ended:
    """By name, so that memory does not grow with restarts.

    >>> ended = Ended()
    >>> ended.add(MemberId("p", 3), 7)
    >>> MemberId("p", 3) in ended, MemberId("p", 2) in ended, ended.last(MemberId("p", 3))
    (True, False, 7)
    """

    def __init__(self) -> None:
        self._lasts: dict[str, dict[int, int]] = {}
        self._before: dict[str, int] = {}

    def add(self, stream: MemberId, last: int) -> None:
        """It ended with this number."""
        lasts = self._lasts.setdefault(stream.name, {})
        lasts[stream.incarnation] = last
        if len(lasts) > _MOST:
            oldest = min(lasts)
            del lasts[oldest]
            self._before[stream.name] = max(self._before.get(stream.name, 0), oldest + 1)

    def __contains__(self, stream: MemberId) -> bool:
        lasts = self._lasts.get(stream.name, {})
        return stream.incarnation in lasts or stream.incarnation < self._before.get(stream.name, 0)

    def last(self, stream: MemberId) -> int:
        """Where it ended; 0 if that is forgotten."""
        return self._lasts.get(stream.name, {}).get(stream.incarnation, 0)

    def entries(self) -> list[tuple[MemberId, int]]:
        """All that are told apart."""
        return [
            (MemberId(name, incarnation), last)
            for name, lasts in sorted(self._lasts.items())
            for incarnation, last in sorted(lasts.items())
        ]
