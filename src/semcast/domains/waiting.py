"""Waiting in a domain: for room, for a view, for a place; and no longer than that can help."""

import asyncio
from collections.abc import Callable

from semcast.core.ids import MILLISECOND, Nanos
from semcast.domains.desk import Desk
from semcast.group.errors import BacklogError
from semcast.group.machine import MACHINE

_TURN: Nanos = MILLISECOND
"""A task that only sends lets others run after so long."""
_LOOK = 16
"""Messages after which such a task looks at the clock."""


class Waiting:
    """Where the calls of one program wait.

    Args:
        name: of the domain, for errors.
        check_open: raises where the domain is not open.
    """

    def __init__(self, name: str, check_open: Callable[[], None]) -> None:
        self.desk: Desk
        self._name = name
        self._check_open = check_open
        self._changed = asyncio.Event()
        self._unwatched = 0
        self._clock = MACHINE.get().clock
        self._yielded_at: Nanos = 0

    def wake(self) -> None:
        """Something has changed."""
        self._changed.set()

    async def until(
        self,
        ready: Callable[[], bool],
        timeout: float | None = None,
        on: asyncio.Event | None = None,
        after_reading: Callable[[], bool] = lambda: True,
    ) -> None:
        """Return once this is so; TimeoutError after so many seconds.

        Where many wait, each for something of its own, `on` is set when that may be so. `after_reading`
        tells whether it comes behind what the program has not read.
        """
        self._check_open()
        if not ready():
            async with asyncio.timeout(timeout):
                await self._stay(ready, on, after_reading)
            self._yielded_at = self._clock()

    async def _stay(
        self, ready: Callable[[], bool], on: asyncio.Event | None, after_reading: Callable[[], bool]
    ) -> None:
        stream = self.desk.stream
        reads = stream.read_here()
        changed = self._changed if reads or on is None else on  # who reads must see what fills up meanwhile
        stream.stall(reads)
        try:
            self.desk.hear()  # there is more room while who reads waits
            while not ready():
                self._give_up_if(reads and stream.full() and after_reading())
                changed.clear()
                await changed.wait()
                self._check_open()
        finally:
            stream.stall(-reads)

    def _give_up_if(self, hopeless: bool) -> None:
        if hopeless:
            raise BacklogError(
                f"{self._name}: this program waits in send without reading, and its queue is full:"
                " read in another task, or answer less"
            )

    async def let_others_run(self, count: int) -> None:
        """Called by who sends messages."""
        self._unwatched -= count
        if self._unwatched <= 0:
            self._unwatched = _LOOK
            now = self._clock()
            if now - self._yielded_at >= _TURN:
                await asyncio.sleep(0)
                self._yielded_at = self._clock()
