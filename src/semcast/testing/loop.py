"""The event loop of one simulated process: asyncio in virtual time.

Every process has a loop of its own, as it would live. Handles run in the order in which they were asked for,
and one round of them takes a little virtual time, so a program that polls with `asyncio.sleep(0)` lets time
pass. There are no threads, no real sockets and no real clock behind it.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from itertools import count
from math import ceil
from typing import Any, NoReturn

from semcast.core.ids import MICROSECOND, SECOND, Nanos
from semcast.sim.scheduler import Scheduler
from semcast.testing.errors import WorldError

ROUND: Nanos = 5 * MICROSECOND
"""What one round of handles takes."""


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it lies in memory."""

    def __init__(self, number: int, coro: Any, loop: asyncio.AbstractEventLoop, context: Any) -> None:
        self.number = number
        super().__init__(coro, loop=loop, name=f"task {number}", context=context)

    def __hash__(self) -> int:
        return self.number


class NumberedFuture(asyncio.Future[Any]):
    """The same for futures."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class ProcessLoop(asyncio.BaseEventLoop):
    """Of one process.

    Args:
        scheduler: virtual time.
        context: in which its program runs.
    """

    def __init__(self, scheduler: Scheduler, context: Context) -> None:
        super().__init__()
        self.set_task_factory(self._make_task)
        self.signals: dict[int, Callable[[], object]] = {}
        """What the program wants to have called at a signal."""
        self.paused = False
        """Whether the process is stopped, and goes on later."""
        self.dead = False
        """Whether it is gone."""
        self._scheduler = scheduler
        self._context = context
        self._soon: deque[asyncio.Handle] = deque()
        self._planned = False
        self._numbers = count(1)

    # Time and order

    def time(self) -> float:
        """Virtual seconds."""
        return self._scheduler.now / SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """In the next round."""
        if context is None and asyncio._get_running_loop() is not self:
            context = self._context.copy()  # the stack calls, which runs in no context of the program
        handle = asyncio.Handle(callback, args, self, context)
        self._put(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """The same: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Once the clock has come there."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True  # type: ignore[attr-defined]
        self._scheduler.at(ceil(when * SECOND), self._put, handle)
        return handle

    def resume(self) -> None:
        """A process that was paused goes on."""
        self.paused = False
        self._plan()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It goes off in vain."""

    def _put(self, handle: asyncio.Handle) -> None:
        if not self.dead and not handle.cancelled():
            self._soon.append(handle)
            self._plan()

    def _plan(self) -> None:
        if self._soon and not self._planned and not self.paused:
            self._planned = True
            self._scheduler.at(self._scheduler.now + ROUND, self._run_round)

    def _run_round(self) -> None:
        self._planned = False
        if self.dead or self.paused:
            return
        with self.running():
            for _ in range(len(self._soon)):
                if self._soon:  # else the process is gone
                    handle = self._soon.popleft()
                    if not handle.cancelled():
                        handle._run()
        self._plan()

    @contextmanager
    def running(self) -> Iterator[None]:
        """It is the loop that runs, in the block."""
        before, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook,  # type: ignore[attr-defined]
            finalizer=self._asyncgen_finalizer_hook,
        )
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(before)

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self.dead:  # else nothing of it runs any more
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def end(self) -> None:
        """The process is gone: nothing runs any more."""
        self.dead = True
        self._soon.clear()
        self.close()

    # What runs

    def create_future(self) -> asyncio.Future[Any]:
        """A future that can be in sets."""
        return NumberedFuture(next(self._numbers), self)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return NumberedTask(next(self._numbers), coro, loop, context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # noqa: ARG002
        """At once and in no time: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """Called by `World.stop`."""
        self.signals[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Not any more."""
        return self.signals.pop(sig, None) is not None

    # What there is not

    def run_forever(self) -> None:
        """Only a world runs it."""
        _refuse("a loop inside a loop")

    def run_until_complete(self, future: Any) -> Any:  # noqa: ARG002
        """Only a world runs it."""
        _refuse("a loop inside a loop")

    async def create_connection(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """There is no TCP."""
        _refuse(_NO_TCP)

    async def create_server(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """There is no TCP."""
        _refuse("TCP servers: leave out metrics=, and start no HTTP server")

    async def create_unix_connection(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """There are no such sockets."""
        _refuse("daemons: semcast.domain gives a program the same Domain as semcast.connect")

    async def create_unix_server(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """There are no such sockets."""
        _refuse("Unix sockets")

    async def create_datagram_endpoint(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """Only those of groups."""
        _refuse("datagrams besides those of groups")

    async def getaddrinfo(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """There is no name service."""
        _refuse(_NO_TCP)

    async def subprocess_exec(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """Nothing real is started."""
        _refuse("child processes: World.start starts a program on a host")

    async def subprocess_shell(self, *args: Any, **how: Any) -> NoReturn:  # noqa: ARG002
        """Nothing real is started."""
        _refuse("child processes: World.start starts a program on a host")

    def add_reader(self, *args: Any) -> NoReturn:  # type: ignore[override]  # noqa: ARG002
        """There are no files to wait for."""
        _refuse("files and sockets to wait for")

    def add_writer(self, *args: Any) -> NoReturn:  # type: ignore[override]  # noqa: ARG002
        """There are no files to wait for."""
        _refuse("files and sockets to wait for")


_NO_TCP = "TCP connections: run a server of the database with data= in place of servers="


def _refuse(what: str) -> NoReturn:
    raise WorldError(f"a simulated world has no {what}")
