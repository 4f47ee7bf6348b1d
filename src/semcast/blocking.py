"""Groups for programs without asyncio: the same calls, which block.

```python
from semcast import blocking

with blocking.join("prices") as group:
    group.send(b"101.5", item="IBM")
    for event in group.events(timeout=1.0):
        print(event)
```
"""

import asyncio
import queue
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any, TypeVar, cast

from semcast.core.events import StateReceived, StateRequested
from semcast.core.ids import MemberId, MessageId
from semcast.core.views import View
from semcast.group import Group, GroupEvent, GroupStatistics, Order, StateHooks
from semcast.group import join as join_async
from semcast.group.errors import GroupClosedError

T = TypeVar("T")
_THREAD: ContextVar[int | None] = ContextVar("thread", default=None)
"""The thread of the program that calls."""
_Heard = GroupEvent | StateRequested | StateReceived | BaseException


class BlockingGroup:
    """A member of a group, for threads. Made by `join`."""

    def __init__(self, name: str, settings: dict[str, Any], state: StateHooks | None = None) -> None:
        self._name = name
        self._settings = settings
        self._state = state
        self._asked: StateRequested | StateReceived | None = None  # what is to be done about the state
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"semcast loop {name}", daemon=True
        )
        self._group: Group | None = None
        self._events: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
        self._reader: asyncio.Task[None] | None = None
        self._wanted: asyncio.Event | None = None
        self._reading: int | None = None  # the thread that iterates

    def __enter__(self) -> "BlockingGroup":
        self._thread.start()
        try:
            self._call(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the group and stop."""
        if self._group is not None and self._thread.is_alive():
            try:
                self._call(self._shut())
            finally:
                self._stop()

    @property
    def member(self) -> MemberId:
        """Who this is."""
        return self._opened().member

    @property
    def view(self) -> View | None:
        """The latest view that this program has seen."""
        return self._opened().view

    def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
    ) -> MessageId:
        """Multicast one message; waits only if flow control must, and for `timeout` seconds at most."""
        sending = self._opened().send(
            payload, item=item, items=items, obsoletes=obsoletes, order=order, timeout=timeout
        )
        return self._call(sending)

    def send_many(
        self, payloads: Sequence[bytes], *, order: Order = "agreed", timeout: float | None = None
    ) -> MessageId:
        """Multicast several messages that never become obsolete, in portions as `Group.send_many`."""
        return self._call(self._opened().send_many(payloads, order=order, timeout=timeout))

    def events(self, timeout: float | None = None) -> Iterator[GroupEvent]:
        """What happens, one by one; ends when nothing has happened for `timeout` seconds.

        State hooks are called here, in the thread that iterates. One that raises is called again next time.
        """
        self._reading = threading.get_ident()
        if self._reader is None:
            self._call(self._begin_reading(self._opened()))
        while True:
            self._see_to_the_state()
            assert self._wanted is not None
            self._loop.call_soon_threadsafe(self._wanted.set)
            try:
                event = self._events.get(timeout=timeout)
            except queue.Empty:
                return
            if isinstance(event, BaseException):
                raise event
            if isinstance(event, StateRequested | StateReceived):
                self._asked = event
            else:
                yield event

    def _see_to_the_state(self) -> None:
        asked, hooks = self._asked, self._state
        if asked is None or hooks is None:
            return
        if isinstance(asked, StateReceived):
            hooks.restore(asked.state)
        else:
            self._opened().provide(asked, hooks.export())
        self._asked = None

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        return self._opened().stats()

    def _opened(self) -> Group:
        if self._group is None:
            raise GroupClosedError(f"{self._name} is not open: use `with`")
        return self._group

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise GroupClosedError(f"{self._name} is closed")
        _THREAD.set(threading.get_ident())  # goes along with what is scheduled
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        self._wanted = asyncio.Event()
        group = join_async(self._name, state=self._state, **self._settings)
        group.leave_state_to_program()
        group.called_by(lambda: _THREAD.get() or self._reading)
        await group.__aenter__()
        self._group = group

    async def _begin_reading(self, group: Group) -> None:
        """Not before somebody iterates: a program that only publishes is given nothing."""
        if self._reader is None:
            # It reads for another thread.
            self._reader = asyncio.create_task(self._read(group), context=Context())

    async def _read(self, group: Group) -> None:
        """Take an event only when somebody waits for one: what is not taken can still be purged."""
        assert self._wanted is not None
        try:
            async for event in group:
                await self._wanted.wait()
                self._wanted.clear()
                self._events.put(cast("_Heard", event))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._events.put(error)

    async def _shut(self) -> None:
        assert self._group is not None
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError, CancelledError):
                await self._reader
        self._events.put(GroupClosedError(f"{self._name} is closed"))
        await self._group.close()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def join(group: str, *, state: StateHooks | None = None, **settings: Any) -> BlockingGroup:
    """Become a member of a group; settings and `state` as for `semcast.join`."""
    return BlockingGroup(group, settings, state)
