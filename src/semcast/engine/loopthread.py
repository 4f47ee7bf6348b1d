"""An event loop in a thread of its own, for programs without asyncio, and what lives in it."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from semcast.group.errors import GroupClosedError, GroupError
from semcast.group.machine import check_threads

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self, name: str) -> None:
        check_threads()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"semcast loop {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What it comes to, in the loop's thread. Who is interrupted here (Ctrl-C) interrupts it there."""
        if not self._thread.is_alive():
            coroutine.close()
            raise GroupClosedError("this server is closed")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End it, and all that still runs there."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Closes(Protocol):
    """What lives in a loop."""

    async def close(self) -> None:
        """End it."""


C = TypeVar("C", bound=Closes)


class InThread(Generic[C]):
    """A server in a loop of its own: entered once, closed once. Any thread may call its methods.

    Args:
        name: of the group.
        maker: the function that makes such a server, for errors.
    """

    def __init__(self, name: str, maker: str) -> None:
        self._name, self._maker = name, maker
        self._loop: LoopThread | None = None
        self._inner: C | None = None

    async def _open(self) -> C:
        """Make it, and enter it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self._loop is not None:
            raise GroupError(f"{self._name} was entered before: `{self._maker}` makes another")
        self._loop = LoopThread(self._name)
        try:
            self._inner = self._loop.call(self._open())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop this server. It remains a server of its group."""
        if self._loop is not None and self._inner is not None:
            inner, self._inner = self._inner, None
            try:
                self._loop.call(inner.close())
            finally:
                self._loop.stop()

    def _opened(self) -> tuple[LoopThread, C]:
        if self._loop is None or self._inner is None:
            raise GroupClosedError(f"{self._name} is not open: `with {self._maker}(...) as ...`")
        return self._loop, self._inner
