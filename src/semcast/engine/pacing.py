"""How actions are done while the event loop of the program goes on: in slices, and long ones in a thread."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from semcast.engine.store import Done, Store, Todo, TooSlowError

SLICE = 0.02
"""Seconds that the actions of a slice should take together."""
QUICK = 0.05
"""Seconds that actions may take in the thread of the event loop; what takes longer begins anew in another."""
_FIRST, _MOST = 8, 1 << 15


class Pace:
    """How many actions make a slice."""

    def __init__(self) -> None:
        self.most = _FIRST

    def took(self, count: int, seconds: float) -> None:
        """So many actions took so long: by halves, since a busy machine may have been slow, and not they."""
        if seconds > SLICE:
            self.most = max(1, count // 2)
        elif count >= self.most and seconds < SLICE / 2:
            self.most = min(2 * self.most, _MOST)


class Apart:
    """Does actions in the loop while they are quick, and in a thread of its own while they are not."""

    def __init__(self) -> None:
        self._slow = False
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, store: Store, actions: Sequence[Todo], upto: int) -> list[Done]:
        """Have a store do these."""
        if not self._slow:
            try:
                return store.apply(actions, upto, QUICK)
            except TooSlowError:
                self._slow = True
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "semcast actions")
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        done = await loop.run_in_executor(self._thread, store.apply, actions, upto)
        self._slow = time.monotonic() - began > QUICK
        return done

    async def close(self) -> None:
        """Nothing is done any more, and no thread is in the middle of something."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown)
