"""A program that insists: it does the same again where its group says that this cannot be now."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import semcast
from semcast.chaos.orders import say

_REFUSALS = 100
"""Errors in a row after which it gives up."""
_PAUSE = 0.1


class Insisting:
    """What a program asks of its group, one call at a time, and how often that was refused."""

    def __init__(self) -> None:
        self.refused = self.unconfirmed = 0
        self._since: float | None = None

    async def until_done(self, deed: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do it, again and again where it is refused."""
        self._since = time.monotonic()
        for last in (*[False] * _REFUSALS, True):
            try:
                await deed()
            except semcast.GroupClosedError:
                raise
            except semcast.UnconfirmedError:  # it was accepted, and the view or the session ended
                self.unconfirmed += 1
                break
            except semcast.GroupError as error:
                self.refused += 1
                if last:
                    raise
                say("refused", text=str(error))
                await asyncio.sleep(_PAUSE)
            else:
                break
        self._since = None

    def waits(self) -> float:
        """Seconds since the call began that has not returned."""
        return 0.0 if self._since is None else time.monotonic() - self._since
