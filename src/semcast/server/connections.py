"""Connections of clients that say nothing are closed: each takes the place of another."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0
"""Seconds from one request to the end of the head of the next, at least."""


class Connection(H11Protocol):
    """HTTP/1.1 with a limit for how long a request may take to begin, also the first one."""

    _waiting: asyncio.TimerHandle | None = None
    _requests: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(PATIENCE, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """No more looking."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """No request since the last look, and none under way: it takes too long."""
        if self.conn.their_state is h11.IDLE and self.cycle is self._requests:
            self.transport.close()
            return
        self._requests = self.cycle
        self._waiting = self.loop.call_later(PATIENCE, self._look)
