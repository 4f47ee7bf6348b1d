"""Waking a task that waits, without a round of its loop between.

An `asyncio.Event` schedules the task, which then runs in the next round, after another look at all sockets.
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context


class Bell:
    """Tells tasks that there may be something for them. Used in the thread of their loop."""

    def __init__(self) -> None:
        self._rung = False
        self._listeners: dict[Listener, None] = {}

    def clear(self) -> None:
        """Who comes now waits until it rings again."""
        self._rung = False

    def ring(self) -> None:
        """Those who wait go on before this returns. Called by the loop itself: no task runs at the moment."""
        self._rung = True
        listeners, self._listeners = self._listeners, {}  # who waits again waits for the next time
        for listener in listeners:
            listener.go_on()

    def ring_soon(self) -> None:
        """The same in the next round of the loop, for who may be a task."""
        self._rung = True
        for listener in self._listeners:
            listener.go_on_soon()
        self._listeners.clear()

    async def wait(self) -> None:
        """Until it has rung."""
        if self._rung:
            return
        listener = Listener(asyncio.get_running_loop())
        self._listeners[listener] = None
        try:
            await listener
        finally:
            self._listeners.pop(listener, None)


class Listener:
    """What one task waits for: as much of a future as a task makes use of."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False  # by this a task knows what it can wait for
        self._loop = loop
        self._done = self._cancelled = False
        self._callback: Callable[[Listener], object] | None = None
        self._context: Context | None = None

    def __await__(self) -> "Generator[Listener, None, None]":
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def go_on(self) -> None:
        """Let the task go on, here and now, unless it does so already."""
        if self._done:
            return
        self._done = True
        if self._callback is not None and self._context is not None:
            self._context.run(self._callback, self)

    def go_on_soon(self) -> None:
        """Let it go on in the next round of its loop, unless it does so already."""
        if self._done:
            return
        self._done = True
        if self._callback is not None:
            self._loop.call_soon(self._callback, self, context=self._context)

    # What a task asks of a future

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Where the task runs."""
        return self._loop

    def add_done_callback(self, callback: "Callable[[Listener], object]", *, context: Context) -> None:
        """How the task goes on."""
        self._callback, self._context = callback, context

    def remove_done_callback(self, callback: "Callable[[Listener], object]") -> int:
        """It does not wait any more."""
        found = self._callback == callback
        self._callback = None if found else self._callback
        return int(found)

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002
        """The task is cancelled."""
        if self._done:
            return False
        self._cancelled = True
        self.go_on_soon()
        return True

    def done(self) -> bool:
        """Whether it may go on."""
        return self._done

    def cancelled(self) -> bool:
        """Whether that is because it was cancelled."""
        return self._cancelled

    def result(self) -> None:
        """Nothing, or that it was cancelled."""
        if self._cancelled:
            raise asyncio.CancelledError
