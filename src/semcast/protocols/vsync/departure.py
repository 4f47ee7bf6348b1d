"""Leaving without loss: who goes may be the only one whom others could ask for what they lack."""

from semcast.core.ids import Nanos
from semcast.protocols.vsync.stream import ViewStream


class Departure:
    """Of a member that wants to leave its view, and stays until the others have what it has, or `until`."""

    def __init__(self, stream: ViewStream, cause: str, until: Nanos) -> None:
        self.cause = cause
        self._stream = stream
        self._until = until
        self._owed = list(stream.queued)

    def is_due(self, now: Nanos, current: ViewStream | None) -> bool:
        """Whether nothing keeps it any more; a change of view brings everybody what there is."""
        if now >= self._until or current is not self._stream or current.frozen:
            return True
        return not any(map(int.__lt__, current.buffers.stable, self._owed))
