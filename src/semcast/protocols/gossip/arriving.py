"""Sessions that come from another logger: their position counts once all of it is here.

A report of hundreds of streams has several parts. The row that it makes is newer than the one of the logger
before, and takes its place at all loggers. A row made of one part would say of all other streams that
nothing was acknowledged: if the session starts again then, it is given again what it had acknowledged.
"""

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Report

_MOST = 1024
"""Sessions at a time; who is left out reports again."""


class Arriving:
    """Of one logger: what came of such reports.

    >>> p, q = MemberId("p"), MemberId("q")
    >>> first, second = Report(1, 2, [(p, 1, 1)], 0, 2), Report(1, 2, [(q, 1, 1)], 1, 2)
    >>> arriving = Arriving()
    >>> arriving.take(p, second), arriving.take(p, first) == [first, second]
    ([], True)
    """

    def __init__(self) -> None:
        self._parts: dict[MemberId, dict[int, Report]] = {}

    def __contains__(self, source: MemberId) -> bool:
        """Whether some parts of a report are here, and some are not."""
        return source in self._parts

    def take(self, source: MemberId, frame: Report) -> list[Report]:
        """A part came; returns all parts, once they are here."""
        parts = self._parts.pop(source, {})
        if any(each.serial != frame.serial or each.attempt != frame.attempt for each in parts.values()):
            parts.clear()
        parts[frame.part] = frame
        if len(parts) == frame.parts:
            return [parts[part] for part in sorted(parts)]
        self._parts[source] = parts
        if len(self._parts) > _MOST:
            del self._parts[next(iter(self._parts))]
        return []
