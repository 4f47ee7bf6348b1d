"""A group for threads.

What need not wait is done in the thread that calls: messages are handed over there as long as there is room,
and events are taken from lists. A thread of its own runs an asyncio loop for all that has to wait.
"""

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from semcast.blocking_calls import HandlerThreads
from semcast.core.events import Purged
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.group import (
    Confirm,
    Confirmation,
    Group,
    GroupDelivery,
    GroupEvent,
    GroupStatistics,
    Order,
    StateHooks,
)
from semcast.group import join as join_async
from semcast.group.calls import To
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.machine import check_threads
from semcast.group.signals import ENDING, PROCESS, SignalWatch
from semcast.group.transaction import payload_of
from semcast.patterns.calls import CallAnswer, CallRequest, Wanted

if TYPE_CHECKING:
    from semcast.domains.blocking_sharing import BlockingDomainJoin

T = TypeVar("T")
BlockingHandler = Callable[[CallRequest], bytes | None]
"""Answers a request."""
_THREAD: ContextVar[int | None] = ContextVar("thread", default=None)
"""The thread of the program that calls, where another one works for it."""
_SLEEP = 0.5
"""Seconds that a thread sleeps at a time: a signal that comes while it falls asleep does not wake it."""


class BlockingGroup:
    """A member of a group, for threads. Made by `join`."""

    def __init__(
        self, name: str, config: Path | None, settings: dict[str, Any], state: StateHooks | None = None
    ) -> None:
        check_threads()
        self._name = name
        self._config = config
        self._settings = settings
        self._state = state
        self._loop: asyncio.AbstractEventLoop  # once it is entered
        self._thread = threading.Thread(target=self._run, name=f"semcast loop {name}", daemon=True)
        self._group: Group | None = None
        self._taking = threading.Lock()
        self._unread: deque[GroupEvent] = deque()
        self._arrived = threading.Event()
        self._signals = SignalWatch()
        self._handlers = HandlerThreads(f"semcast on_call {name}", self._finish_call)

    # Life

    def __enter__(self) -> "BlockingGroup":
        if self._thread.ident is not None:
            raise GroupError(f"{self._name} was entered before: a group is used once, `join` makes another")
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        try:
            self._group = self._call(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the group. Waits a few seconds until messages already sent have reached everybody."""
        self._signals.stop()
        self._handlers.close()
        if self._group is not None and self._thread.is_alive():
            try:
                self._call(self._shut())
            finally:
                self._stop()

    def leave_on_signals(self, *signals: signal.Signals) -> None:
        """Leave in good order at SIGINT or SIGTERM, or at these: `events` ends, and `with` with it.

        Call it in the main thread. A second signal has its usual effect.
        """
        self._opened()
        self._signals.start(
            signals or ENDING,
            lambda: asyncio.run_coroutine_threadsafe(self._shut(), self._loop),
            PROCESS,
        )

    def wait_for(self, members: int, timeout: float | None = None) -> View:
        """Wait until this member is in a view of at least this many members; returns that view.

        The program need not have read the events up to this view. After `timeout` seconds it raises
        TimeoutError, which says who is there.
        """
        return self._call(self._opened().wait_for(members, timeout))

    # About it

    @property
    def name(self) -> str:
        """Of the group."""
        return self._name

    @property
    def member(self) -> MemberId:
        """Who this is."""
        return self._opened().member

    @property
    def view(self) -> View | None:
        """The latest view that this program has seen."""
        return self._opened().view

    @property
    def arrived(self) -> bool:
        """Whether this program has seen the view in which its member began to work."""
        return self._opened().arrived

    @property
    def address(self) -> tuple[str, int]:
        """The address this member listens on; others may list it in `peers`."""
        return self._opened().address

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """The address at which metrics are served, if `metrics` is set."""
        return self._opened().metrics_address

    def members(self) -> Sequence[MemberId]:
        """The members of the current view, which the program may not have read yet."""
        return self._opened().members()

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        return self._opened().stats()

    def reform(self) -> None:
        """Go on though the majority of the view is lost: whoever is not within reach is gone."""
        self._opened().reform()

    def receipts(self) -> list[Purged]:
        """Receipts of the messages purged here since the last call, and what replaced them."""
        return self._opened().receipts()

    # Sending

    @overload
    def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: None = None,
        logged: bool = False,
    ) -> MessageId: ...

    @overload
    def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm,
        logged: bool = False,
    ) -> Confirmation: ...

    def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm | None = None,
        logged: bool = False,
    ) -> MessageId | Confirmation:
        """Multicast one message, as `Group.send`; waits only if flow control must, or for a confirmation."""
        group = self._opened()
        if confirm is not None:
            sending = group.send(
                payload,
                item=item,
                items=items,
                obsoletes=obsoletes,
                order=order,
                timeout=timeout,
                confirm=confirm,
                logged=logged,
            )
            return self._call(sending)
        if not logged and group.has_room(1):
            sent = group.try_send(payload, item=item, items=items, obsoletes=obsoletes, order=order)
            if sent is not None:
                return sent
        return self._call(
            group.send(
                payload,
                item=item,
                items=items,
                obsoletes=obsoletes,
                order=order,
                timeout=timeout,
                logged=logged,
            )
        )

    def try_send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
    ) -> MessageId | None:
        """Like `send`, but None where `send` would wait."""
        return self._opened().try_send(payload, item=item, items=items, obsoletes=obsoletes, order=order)

    @overload
    def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: None = None,
    ) -> MessageId: ...

    @overload
    def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm,
    ) -> Confirmation: ...

    def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm | None = None,
    ) -> MessageId | Confirmation:
        """Multicast several messages that never become obsolete, in portions as `Group.send_many`."""
        group = self._opened()
        if confirm is None:
            return self._call(group.send_many(payloads, order=order, timeout=timeout))
        return self._call(group.send_many(payloads, order=order, timeout=timeout, confirm=confirm))

    def send_items(
        self,
        updates: Sequence[tuple[str, bytes]],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
    ) -> MessageId:
        """Multicast several updates, each of an item, in order; returns the id of the last."""
        return self._call(self._opened().send_items(updates, order=order, timeout=timeout))

    @contextmanager
    def transaction(self, *, order: Order = "agreed") -> Iterator[dict[str, bytes]]:
        """Assign to several items at once, as `Group.transaction`: one message, sent when the block ends."""
        values: dict[str, bytes] = {}
        yield values
        if values:
            self.send(payload_of(values), items=list(values), order=order)

    # Calling

    def call(
        self, payload: bytes, *, replies: Wanted = "all", to: To = "all", timeout: float | None = 10.0
    ) -> CallAnswer:
        """Ask the members of the group, and wait for what they answer, as `Group.call`."""
        with self._handlers.aside():
            return self._call(self._opened().call(payload, replies=replies, to=to, timeout=timeout))

    def on_call(self, handler: BlockingHandler) -> BlockingHandler:
        """Answer calls with this function: `@group.on_call`.

        It is given a `CallRequest` and returns bytes, or None; what it raises is told to the caller. Handlers
        run in a thread of their own, in the order of requests, one at a time; the next one runs while one
        waits in `call`. The program shares what they use with them, and needs a lock where it changes it.
        """
        self._opened().on_call(handler)
        return handler

    def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """Send a message to one member, which gets a `PrivateMessage`, as `Group.send_to`."""
        return self._call(self._opened().send_to(member, payload, timeout=timeout))

    def _finish_call(self, request: CallRequest, result: object) -> None:
        """In a thread of a handler."""
        group = self._group
        if group is not None:
            group.finish_call(request, result)

    # Receiving

    def reads(self) -> None:
        """Announce that this program will read: nothing is dropped for it until it does."""
        self._opened().reads()

    def events(self, timeout: float | None = None) -> Iterator[GroupEvent]:
        """What happens, one by one; ends when nothing has happened for `timeout` seconds, or at the end.

        A loop that was left can be taken up again: nothing is lost. State hooks are called here, in the
        thread that iterates. One that raises is called again next time.
        """
        unread = self._unread
        with self._opened().iterating():
            while True:
                while unread:
                    try:
                        event = unread.popleft()
                    except IndexError:
                        break  # another thread was faster
                    yield event
                deliveries = self._take(timeout)
                if not deliveries:
                    return
                for each in deliveries:
                    if isinstance(each, Batch):
                        unread.extend(each.messages())
                    else:
                        unread.append(cast("GroupEvent", each))

    def batches(self, timeout: float | None = None) -> Iterator[Sequence[GroupDelivery]]:
        """What happens, in lists: runs of messages (`Batch`), and changes of view between them.

        Ends when nothing has happened for `timeout` seconds, or when this program closes the group.
        """
        with self._opened().iterating():
            while deliveries := self._take(timeout):
                yield deliveries

    def _take(self, timeout: float | None) -> Sequence[GroupDelivery]:
        """The next list; nothing if there is none in time, or at the end."""
        group = self._opened()
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._taking:
            group.dealt_with()
        while True:
            self._arrived.clear()
            with self._taking:
                deliveries = group.poll()
            if deliveries or group.is_over():
                return deliveries
            left = _SLEEP if deadline is None else min(deadline - time.monotonic(), _SLEEP)
            if not self._arrived.wait(left) and deadline is not None and time.monotonic() >= deadline:
                return ()

    # Between the threads

    def _opened(self) -> Group:
        if self._group is None:
            raise GroupClosedError(f"{self._name} is not open: use `with`")
        return self._group

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done by the loop, and wait."""
        if not self._thread.is_alive():
            work.close()
            raise GroupClosedError(f"{self._name} is closed")
        _THREAD.set(threading.get_ident())  # goes along with what is scheduled
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while not done.done():
                wait([done], _SLEEP)
            return done.result()
        except BaseException:
            done.cancel()  # interrupted, perhaps: nothing is left behind
            raise

    def _run(self) -> None:
        self._loop.run_forever()

    async def _begin(self) -> Group:
        return join_async(self._name, config=self._config, state=self._state, **self._settings)

    async def _open(self) -> Group:
        group = await self._begin()
        group.called_by(lambda: _THREAD.get() or threading.get_ident())
        group.wake_by(self._arrived.set)
        group.run_handlers(self._handlers.run)
        return await group

    async def _shut(self) -> None:
        try:
            await self._opened().close()
        finally:
            self._arrived.set()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@overload
def join(
    group: str,
    *,
    domain: None = None,
    config: Path | None = None,
    state: StateHooks | None = None,
    **settings: Any,
) -> BlockingGroup: ...


@overload
def join(group: str, *, domain: str, config: Path | None = None, **settings: Any) -> "BlockingDomainJoin": ...


def join(
    group: str,
    *,
    domain: str | None = None,
    config: Path | None = None,
    state: StateHooks | None = None,
    **settings: Any,
) -> "BlockingGroup | BlockingDomainJoin":
    """Become a member of a group; everything as for `semcast.join`."""
    if domain is None:
        return BlockingGroup(group, config, settings, state)
    if state is not None:
        raise ConfigurationError("state= is not available for groups of a domain")
    from semcast.domains.blocking_sharing import BlockingDomainJoin  # noqa: PLC0415 (as `semcast.join`)

    flavour = settings.pop("flavour", "evs")
    given = settings if config is None else {**settings, "config": config}
    return BlockingDomainJoin(group, domain, flavour, given)
