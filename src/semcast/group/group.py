"""`Group`: a member of a live group, for programs that use asyncio."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

from semcast.core.annotations import Annotation
from semcast.core.events import Purged
from semcast.core.handover import Command, StateHooks
from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.core.views import View
from semcast.core.watchers import Watcher
from semcast.group.ahead import Ahead
from semcast.group.calling import CallDesk
from semcast.group.calls import CallingSide
from semcast.group.confirming import Confirmations
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.events import GroupDelivery, GroupEvent
from semcast.group.families import FAMILIES
from semcast.group.gathering import Gathering
from semcast.group.inbox import Inbox
from semcast.group.machinery import Machinery
from semcast.group.registry import Family
from semcast.group.sending import SendingSide
from semcast.group.settings import GroupSettings, parse_size
from semcast.group.signals import ENDING, SignalWatch
from semcast.group.stacks import build, next_incarnation
from semcast.group.statistics import GroupStatistics
from semcast.group.waiting import Room
from semcast.storage import LiveDisk

_LEAVE_PATIENCE = 3.0
"""Seconds to wait for a graceful end."""
_SETTLE_PATIENCE = 5.0
"""Seconds after which the log says that `join` waits."""


class Group(SendingSide, CallingSide):
    """A member of a live group. Made by `join`. Sending is in `sending.py`, calling in `calls.py`."""

    def __init__(
        self,
        name: str,
        settings: GroupSettings,
        state: StateHooks | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        family = FAMILIES.of(settings.stack)
        _check_state(family, settings, state)
        self.name = name
        self.settings = settings
        self._application, self._thread = _running_loop(), threading.get_ident()
        parts = build(name, settings, state=state is not None)
        machine = parts.machine
        self._machine, self._clock = machine, machine.clock
        self.member = parts.member
        """Who this is; another incarnation where the group went on without it."""
        self.largest = parts.largest
        """Bytes of a message, at most."""
        self._family = family
        self._send_bytes = parse_size(settings.send_bytes)
        works = self._works = Machinery(
            name, settings, parts, state, watchers, wake=self._wake_from_loop, renew=self._renew
        )
        self._handover, self._seat, self._drafts = works.handover, works.seat, works.drafts
        self._hub, self._loop = works.hub, works.loop
        self._renewal = threading.Lock()
        self._inbox = Inbox(
            name,
            self._handover,
            self._seat,
            self._loop.wake,
            self.is_over,
            self._come_back,
            receives=settings.receive,
            ahead=Ahead(settings.queue_messages, parse_size(settings.queue_bytes)),
            clock=machine.clock,
            pace=machine.pace,
            log=works.log,
        )
        self._gathering = Gathering(name, self._handover, self._seat, self._check_open)
        self._room = Room(
            name, self._handover, self._loop.wake, self._check_open, works.flow.why, machine.clock
        )
        self._desk = CallDesk(
            name,
            parts.member,
            parts.largest,
            send=self._drafts.marked,
            has_room=self._room.open_for,
            room=self._wait_for_call_room,
            clock=machine.clock,
            journal=works.journal,
        )
        self._inbox.attach(self._desk)
        self._confirmations = Confirmations()
        self._signals = SignalWatch()
        self._settled, self._ended = asyncio.Event(), asyncio.Event()
        self._when_over: list[Callable[[GroupError], object]] = []
        self._over = asyncio.Event()  # nothing is left of it
        self._stopping: asyncio.Future[None] | None = None  # kept: a task that nobody holds may vanish
        self._entered = self._closed = self._wake_pending = False
        self._wake_reader: Callable[[], object] = _nobody

    # Life

    def __await__(self) -> Generator[Any, None, "Group"]:
        """`group = await join(...)`, where `async with` does not fit; then `close` is up to the program."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "Group":
        if self._entered or self._closed:
            raise GroupError(f"{self.name} was entered before: a group is used once, `join` makes another")
        self._entered = True
        self._works.log.joins(self.settings.stack, *self.address)
        if forgets := self._family.forgets(self.settings):
            self._works.log.forgets(forgets)
        try:
            self._works.start()
            await self._settle()
            self._check_open()
            if promise := self._seat.stack.caveat():
                self._works.log.promises(promise)
            await self._works.metrics.start(self._seat, self._hub)
            self._inbox.read_meanwhile()
        except BaseException:  # cancelled, perhaps: nothing is left behind
            await self.close()
            raise
        return self

    async def _settle(self) -> None:
        try:
            async with asyncio.timeout(_SETTLE_PATIENCE):  # `wait_for` may swallow a cancellation
                await self._settled.wait()
        except TimeoutError:
            stack = self._seat.stack
            advice = self._family.advice(self.settings)
            self._works.log.waits(_SETTLE_PATIENCE, stack.phase(), stack.view().members, advice)
            await self._settled.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group. Waits a few seconds until messages already sent have reached everybody."""
        if self._closed:
            await self._over.wait()  # somebody else has begun to
            return
        self._closed = True
        self._signals.stop()
        self._desk.end(GroupClosedError(f"{self.name} is closed"))
        self._gathering.seen.set()
        self._room.wake()
        self._inbox.arrived.ring_soon()
        try:
            await self._works.metrics.close()
            if not self._ended.is_set() and self._seat.failure is None:
                self._seat.call(self._see_who_hears)
                self._seat.leave()
                with suppress(TimeoutError):  # the others will notice
                    async with asyncio.timeout(_LEAVE_PATIENCE):
                        await self._ended.wait()
        finally:  # cancelled, perhaps, and perhaps once more: nothing is left behind
            self._stopping = asyncio.ensure_future(asyncio.to_thread(self._works.close))
            self._stopping.add_done_callback(self._on_stopped)
            await asyncio.shield(self._stopping)
        if self._seat.failure is not None:
            raise GroupError(f"{self.member} failed: {self._seat.failure}") from self._seat.failure

    def _see_who_hears(self, stack: Stack, _now: Nanos) -> None:
        """In the loop's thread: do not wait for an answer if there is nobody to give it."""
        if stack.leaves_unheard() and not self._seat.handover.unsent:
            with suppress(RuntimeError):  # the program has ended, and nobody waits
                self._application.call_soon_threadsafe(self._ended.set)

    def discard(self) -> None:
        """Release sockets and folder of a group that is never entered."""
        assert not self._entered
        self._closed = True
        self._over.set()
        self._works.close()

    def _on_stopped(self, _stopping: "asyncio.Future[None]") -> None:
        self._confirmations.end(GroupClosedError(f"{self.name} is closed"))
        self._over.set()

    def leave_on_signals(self, *signals: signal.Signals) -> None:
        """Close the group on SIGINT and SIGTERM, or on the given signals: `async for` and `async with` end.

        Call it in the main thread. A second signal has its usual effect.
        """
        self._check_open()
        self._signals.start(signals or ENDING, lambda: self._application.create_task(self.close()))

    async def wait_for(self, members: int, timeout: float | None = None) -> View:
        """Wait until this member is in a view of at least this many members; returns that view.

        The program need not have read the events up to this view. After `timeout` seconds it raises
        TimeoutError, which says who is there.
        """
        return await self._gathering.wait_for(members, timeout)

    # For patterns, which make one message at a time, each for a certain view

    def offer(
        self, view: int, payload: bytes, annotation: Annotation | None, done: Callable[[bool], None]
    ) -> None:
        """Multicast a message in this view and at once, or not at all.

        `done` is called in the loop's thread with whether it was taken, before anything else is delivered.
        """
        self._check_open()
        self._drafts.check([payload], annotation, "agreed")

        def offer(stack: Stack, now: Nanos) -> None:
            here = stack.view().id == view and self._seat.left is None
            done(here and stack.multicast(now, [payload], annotation) > 0)

        self._seat.call(offer)

    def when_unblocked(self, act: Callable[[], None]) -> None:
        """Have this called, in the program's thread, when what was refused may be offered again."""

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody is left to be told
                self._application.call_soon_threadsafe(act)

        self._works.openings.act = tell

    # Receiving

    def batches(self) -> AsyncIterator[Sequence[GroupDelivery]]:
        """Iterate over lists of events: runs of messages (`Batch`), and view changes between them.

        Faster than one event at a time. Ends when this program closes the group.
        """
        return self._inbox.batches()

    def __aiter__(self) -> AsyncIterator[GroupEvent]:
        """What happens, one by one. A loop that was left can be taken up again: nothing is lost.

        Ends when this program closes the group.
        """
        return self._inbox.events()

    def reads(self) -> None:
        """Announce that this program will read: nothing is dropped for it until it does."""
        self._inbox.begin()

    def poll(self) -> Sequence[GroupDelivery]:
        """The next list, if there is one yet. May be called from any thread, by one at a time."""
        return self._inbox.poll()

    def wake_by(self, wake: Callable[[], object]) -> None:
        """Have this called, in the loop's thread, when `poll` may have something: without asyncio."""
        self._wake_reader = wake
        self._handover.awaited += 1  # for ever: who polls does not say when it waits

    def dealt_with(self) -> None:
        """The program has dealt with what `poll` gave it, and comes back for more."""
        self._inbox.dealt_with()

    def is_over(self) -> bool:
        """Whether this program has closed the group. Raises if the group ended for another reason."""
        if self._closed and self._seat.failure is None:
            return True
        self._check_open()
        return False

    def when_over(self, tell: Callable[[GroupError], object]) -> None:
        """Have this called once the group has ended otherwise than by `close`. It may be called twice."""
        self._when_over.append(tell)

    @property
    def view(self) -> View | None:
        """The latest view that this program has read; None while it rejoins.

        With `receive=False`, the current view of its member.
        """
        if not self.settings.receive and self._seat.settled:
            return self._seat.stack.view()
        return self._inbox.view

    @property
    def address(self) -> tuple[str, int]:
        """The address this member listens on; others may list it in `peers`."""
        return self._hub.endpoint.address

    @property
    def arrived(self) -> bool:
        """Whether this program has seen the view in which its member began to work."""
        return self.view is not None and self.view.id >= self._seat.first_view

    def called_by(self, caller: Callable[[], object]) -> None:
        """Tell who is calling by this; else it is the task. Who reads must not wait in `send` for itself."""
        self._inbox.caller = caller

    def reform(self) -> None:
        """Form a new view without the unreachable members. You vouch that they are dead.

        For groups with agreed views that have lost their majority, with `reform = manual` or with members
        that never come back. If those are alive, the group splits in two. Thread-safe.
        """
        self._handover.call(lambda stack, now: stack.reform(now))
        self._loop.wake()

    def receipts(self) -> list[Purged]:
        """Receipts of the messages purged here since the last call, and what replaced them."""
        return self._works.receipts.take()

    # For what is built on top of a group

    @property
    def stack(self) -> Stack:
        """The protocol. It lives in the loop's thread: elsewhere it may be looked at, and not touched."""
        return self._seat.stack

    def command(self, command: Command) -> None:
        """Have something done to the stack, in the loop's thread. May be called from any thread."""
        self._seat.call(command)

    @property
    def disk(self) -> LiveDisk | None:
        """What this member's records are kept by, if it keeps any."""
        return self._works.disk

    @property
    def folder(self) -> Path | None:
        """The folder of this member's records, if it has one (`data`)."""
        return None if self._works.disk is None else self._works.disk.path

    # About it

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """The address at which metrics are served, if `metrics` is set."""
        return self._works.metrics.address

    def members(self) -> Sequence[MemberId]:
        """The members of the current view, which the program may not have read yet."""
        return self._seat.members()

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        return self._works.statistics(self.member, self.view, self._desk.counts)

    # Between the threads

    def _wake_from_loop(self) -> None:
        """In the thread that takes the turn."""
        self._wake_reader()
        if self._wake_pending:
            return
        self._wake_pending = True
        application = self._application
        here = threading.get_ident() == self._thread  # a turn that the program takes itself
        with suppress(RuntimeError):  # the loop has ended, and nobody is left to be woken
            (application.call_soon if here else application.call_soon_threadsafe)(self._wake)

    def _wake(self) -> None:
        self._wake_pending = False
        if self._handover.renewed:
            self._come_back()
        answers = self._handover.answers
        while answers:
            self._confirmations.answer(answers.popleft())
        self._gathering.seen.set()
        self._room.wake()
        over = self._seat.failure is not None or self._seat.left is not None
        if self._seat.settled or over:
            self._settled.set()
        if over:
            if self._seat.failure is not None and not self._ended.is_set():
                self._works.log.failed(self._seat.failure)
            self._ended.set()
            self._end_confirmations()
        self._inbox.arrived.ring()  # last: the program goes on before this returns

    def _end_confirmations(self) -> None:
        try:
            self._check_open()
        except GroupError as error:
            self._confirmations.end(error)
            self._desk.end(error)
            for tell in self._when_over:
                tell(error)

    def _come_back(self) -> None:
        """As another incarnation, if it is one: what has not left is numbered anew, once, and leaves.

        In the thread of the program's loop, or in that of a program that reads without asyncio.
        """
        with self._renewal:
            if self._handover.renewed:
                self.member = self._seat.member
                self._drafts.come_back(self.member, self._handover)
                self._seat.go_on()

    def _renew(self, former: MemberId) -> tuple[MemberId, Random] | None:
        """In the loop's thread: the group went on without this member, which may come back."""
        if not self.settings.rejoin or self._closed:
            return None
        if self._works.disk is not None:
            return MemberId(former.name, self._works.disk.renew()), self._machine.chance()
        return next_incarnation(self._machine, former), self._machine.chance()

    def _check_open(self) -> None:
        if self._seat.failure is not None:
            raise GroupError(f"{self.member} failed: {self._seat.failure}") from self._seat.failure
        if self._seat.left is not None:
            raise GroupClosedError(f"{self.member} left {self.name}: {self._seat.left.cause}")
        if self._closed or self._loop.finished:
            raise GroupClosedError(f"{self.name} is closed")
        if not self._entered:
            raise GroupError(f"{self.name} is not open: `async with join(...) as group`, or await it first")


def _nobody() -> None:
    """Nobody waits outside of asyncio."""


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise GroupError(
            "join needs a running event loop: call it in a coroutine (asyncio.run), or use semcast.blocking"
        ) from None


def _check_state(family: Family, settings: GroupSettings, state: StateHooks | None) -> None:
    if state is not None and not family.transfers:
        able = " or ".join(each.name for each in FAMILIES if each.transfers)
        raise ConfigurationError(f"state= needs stack {able}; this group has stack {settings.stack}")
    if state is not None and not settings.receive:
        raise ConfigurationError("state= needs receive=True")
    if state is not None and not all(callable(getattr(state, each, None)) for each in ("export", "restore")):
        raise ConfigurationError(
            f"state= needs an object with export() -> bytes and restore(bytes), not {type(state).__name__}"
        )
