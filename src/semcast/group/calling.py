"""Calls in a live group: the machine of `patterns.calls`, with the program's handlers and those who wait."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from semcast.core.events import Delivery, Rejoining
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.group.errors import BacklogError, CallError, GroupError
from semcast.patterns.calls import (
    ENVELOPE,
    CallAnswer,
    CallCounts,
    CallLimits,
    CallRequest,
    Calls,
    CallsFullError,
    Done,
    Forget,
    Key,
    Notes,
    Run,
    Wanted,
)
from semcast.patterns.calls.asking import Whom
from semcast.patterns.calls.envelope import Envelope

if TYPE_CHECKING:
    from semcast.group.call_journal import CallJournal

_LOG = logging.getLogger("semcast.group")
_WORDS = 1000
"""Characters of an error that a caller is told."""

_TOGETHER = 64
"""Answers that are handed over at once, at most."""

Result = bytes | None
Handler = Callable[[CallRequest], Result | Awaitable[Result]]
"""Answers a request: a plain function, or one that is awaited. What it raises is told to the caller."""
Heard = Delivery | tuple[MemberId, Envelope | None, int | None]
"""What is no message, or a message with the mark: its sender, what it says, and its place in the order."""


class CallDesk:
    """The calls of one live member. All of it happens in the thread of the program's loop.

    Args:
        group: its name, for errors.
        member: who this is.
        largest: bytes of a message, at most.
        send: hands over messages with the mark; there is room.
        send_to: the same of one for a member alone; None where answers are multicast.
        has_room: whether there is, for so many.
        room: waits until there is for one, for so many seconds at most.
        journal: where it is recorded, if it is.
        numbers: of its calls, where it may come back as the same member.
        outsiders: whether who is in no view may call, too.
        clock: of the machine.
    """

    def __init__(
        self,
        group: str,
        member: MemberId,
        largest: int,
        *,
        send: Callable[[Sequence[bytes]], object],
        has_room: Callable[[int], bool],
        room: Callable[[float | None], Awaitable[None]],
        clock: Callable[[], Nanos],
        send_to: Callable[[MemberId, bytes], object] | None = None,
        journal: "CallJournal | None" = None,
        numbers: Iterator[int] | None = None,
        outsiders: bool = False,
    ) -> None:
        self.handler: Handler | None = None
        self.runner: Callable[[Handler, CallRequest], None] = self._run
        """Runs a handler; `finish` is told what came of it."""
        self.when_active: Callable[[], None] = _nobody
        """Called when this program waits for an answer: somebody must read."""
        self.journal = journal
        self._group = group
        self._clock = clock
        self._send, self._has_room, self._room = send, has_room, room
        self._send_to = send_to
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        limits = CallLimits(body=max(0, largest - ENVELOPE))
        self._machine = Calls(member, limits, Notes(journal), numbers)
        self._machine.direct = send_to is not None
        self._machine.outsiders = outsiders
        self._waiting: dict[int, asyncio.Future[CallAnswer]] = {}
        self._tasks: dict[Key, asyncio.Future[Result]] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._acting = False
        self._ended = False

    # For the program

    @property
    def counts(self) -> CallCounts:
        """What happened so far."""
        return self._machine.counts

    @property
    def active(self) -> bool:
        """Whether this program answers calls, or ever called: then somebody must read.

        Who has called and answers none tells others so: else they would wait for it.
        """
        return not self._ended and (self.handler is not None or self._machine.counts.called > 0)

    def serve(self, handler: Handler) -> None:
        """Answer calls from now on."""
        if not callable(handler):
            raise TypeError(f"on_call takes a function, not {type(handler).__name__}")
        if self.handler is not None:
            raise CallError(f"{self._group}: calls are answered here already, by {self.handler!r}")
        self.handler = handler
        self._machine.serves = True

    async def call(self, payload: bytes, replies: Wanted, to: Whom, timeout: float | None) -> CallAnswer:
        """Ask, and wait for what comes of it."""
        deadline = None if timeout is None else self._clock() + timeout * SECOND
        if not self._has_room(1) or self._machine.outgoing or self._machine.letters:
            await self._room(timeout)
        left = None if deadline is None else max(0, round(deadline - self._clock()))
        try:
            number = self._machine.call(self._clock(), payload, replies, to, left)
        except CallsFullError as error:
            raise CallError(f"{self._group}: {error}") from None
        future: asyncio.Future[CallAnswer] = self._loop.create_future()
        self._waiting[number] = future
        self.when_active()
        self._act()
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None and not self._ended:
                self._machine.abandon(number)

    # From the group

    def hear(self, heard: Sequence[Heard]) -> None:
        """What the group delivered, in order: what has the mark, and all that is no message. Any thread.

        Where that is recorded, also all other messages: only the journal looks at them.
        """
        if threading.get_ident() == self._thread:
            self._hear(heard)
        else:
            self.soon(lambda: self._hear(heard))

    def soon(self, act: Callable[[], None]) -> None:
        """Have something done in the thread of the loop. Any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(act)

    def _hear(self, heard: Sequence[Heard]) -> None:
        if self._ended:
            return
        machine, now = self._machine, self._clock()
        for each in heard:
            if type(each) is tuple:
                machine.on_envelope(now, *each)
                continue
            if self.journal is not None:
                self.journal.heard(each)  # type: ignore[arg-type]
            if type(each) is not Batch:
                machine.on_delivery(now, each)  # type: ignore[arg-type]
            if self.journal is not None and type(each) is Rejoining:
                self.journal.restart(each.member)
        self._act()

    def fail_calls(self, error: GroupError) -> None:
        """Nothing can be known any more about calls that wait, for now: tell who waits."""
        for number, future in list(self._waiting.items()):
            del self._waiting[number]
            self._machine.abandon(number)
            if not future.done():
                future.set_exception(error)

    def end(self, error: GroupError) -> None:
        """The member is out of its group, or its program closes it."""
        if self._ended:
            return
        self._machine.end(str(error))
        self._machine.take_effects()
        if self.journal is not None:
            self.journal.end()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._ended = True
        here = asyncio.current_task(self._loop)  # a handler may close its group
        for task in (*self._tasks.values(), self._flushing):
            if task is not None and task is not here:
                task.cancel()
        if self._alarm is not None:
            self._alarm.cancel()

    # What the machine wants

    def _act(self) -> None:
        """Do it, until there is nothing more. What a handler causes is done here, not inside of itself."""
        if self._acting:
            return
        self._acting = True
        try:
            while effects := self._machine.take_effects():
                self._write_down()
                for effect in effects:
                    if isinstance(effect, Run):
                        assert self.handler is not None
                        self.runner(self.handler, effect.request)
                    elif isinstance(effect, Done):
                        self._return(effect)
                    elif isinstance(effect, Forget) and effect.key in self._tasks:
                        self._tasks[effect.key].cancel()
        finally:
            self._acting = False
        self._write_down()
        self._flush()
        self._set_alarm()

    def _write_down(self) -> None:
        """Before anybody learns of it."""
        if self.journal is not None:
            self.journal.flush()

    def _return(self, done: Done) -> None:
        future = self._waiting.pop(done.number, None)
        if future is None or future.done():
            return
        if done.answer is not None:
            future.set_result(done.answer)
        else:
            future.set_exception(CallError(f"{self._group}: {done.cause}"))

    def _set_alarm(self) -> None:
        """For the next time-out. One that is set earlier goes off in vain, which is cheap."""
        at = self._machine.next_at()
        if at is None:
            return
        delay = max(0, at - self._clock()) / SECOND
        when = self._loop.time() + delay
        if self._alarm is not None and not self._alarm.cancelled():
            if self._alarm.when() <= when + 0.001:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        self._machine.expire(self._clock())
        self._act()

    # Sending

    def _flush(self) -> None:
        """Hand over what the machine wants to send, as far as there is room."""
        outgoing, letters = self._machine.outgoing, self._machine.letters
        if self._flushing is not None or self._ended:
            return
        with suppress(GroupError):  # it is over, and somebody else is told
            while letters and self._has_room(1):
                self._post(*letters.popleft())
            while outgoing:
                count = min(len(outgoing), _TOGETHER)
                if not self._has_room(count):
                    break
                self._send([outgoing.popleft() for _ in range(count)])
            if outgoing or letters:
                self._flushing = self._loop.create_task(self._flush_later(), name=f"calls {self._group}")

    def _post(self, to: MemberId, payload: bytes) -> None:
        assert self._send_to is not None
        self._send_to(to, payload)

    async def _flush_later(self) -> None:
        outgoing, letters = self._machine.outgoing, self._machine.letters
        try:
            while outgoing or letters:
                try:
                    await self._room(None)
                except BacklogError:
                    await asyncio.sleep(0.01)  # others who wait are told; answers go on waiting
                    continue
                if letters:
                    self._post(*letters.popleft())
                elif outgoing:
                    self._send([outgoing.popleft()])
        except GroupError:
            return  # it is over
        finally:
            self._flushing = None

    # Handlers

    def _run(self, handler: Handler, request: CallRequest) -> None:
        """A plain function answers at once; what has to be awaited goes on beside everything else."""
        try:
            result = handler(request)
        except Exception as error:
            self.finish(request, error)
            return
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(result)
            self._tasks[request.key] = task
            task.add_done_callback(lambda done: self._finished(request, done))
        else:
            self.finish(request, result)

    def _finished(self, request: CallRequest, task: "asyncio.Future[Result]") -> None:
        self._tasks.pop(request.key, None)
        if task.cancelled():
            return  # nobody waits for it, or the group is closed
        error = task.exception()
        if isinstance(error, Exception) or error is None:
            self.finish(request, task.result() if error is None else error)

    def finish(self, request: CallRequest, result: object) -> None:
        """A handler returned this, or raised it. In the thread of the loop."""
        if self._ended:
            return
        if result is None:
            result = b""
        if not isinstance(result, bytes | Exception):
            result = TypeError(f"a reply is bytes, not {type(result).__name__}")
        if isinstance(result, Exception):
            _LOG.warning("%s: a call of %s failed here: %r", self._group, request.caller, result)
            words = f"{type(result).__name__}: {result}"[:_WORDS]
            self._machine.answer(request.key, words.encode(errors="replace"), error=True)
        else:
            self._machine.answer(request.key, result)
        self._act()


def _nobody() -> None:
    """Nobody reads."""
