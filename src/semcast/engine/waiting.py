"""Who waits for what: outcomes of actions, and moments at which a read may be answered."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from semcast.engine.errors import ForgottenError
from semcast.engine.outcomes import Outcome
from semcast.replication.actions import Asked

T = TypeVar("T")


class Waiter:
    """Waits for the outcomes of actions that were asked for together, with consecutive tokens."""

    __slots__ = ("_first", "_left", "_outcomes", "future")

    def __init__(self, first: int, size: int, future: "asyncio.Future[list[Outcome]]") -> None:
        self.future = future
        self._first, self._left = first, size
        self._outcomes: list[Outcome | None] = [None] * size

    def done(self, token: int, outcome: Outcome) -> None:
        """One of them is done."""
        self._outcomes[token - self._first] = outcome
        self._left -= 1
        if not self._left and not self.future.done():
            self.future.set_result([each for each in self._outcomes if each is not None])

    def fail(self, error: BaseException) -> None:
        """There will be none."""
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # nobody need ask for it


class Waiters:
    """All who wait at one server.

    Args:
        loop: of the program.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._token = 1  # the next one
        self.by_token: dict[int, Waiter] = {}
        """Actions of this process: whose outcome they are."""
        self._by_request: dict[str, dict[int, list[Waiter]]] = {}
        self._durable: dict[int, asyncio.Future[int]] = {}
        self._moments: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._words: dict[asyncio.Future[Any], None] = {}
        self._over: Exception | None = None  # why nothing is answered any more

    def open(self, size: int = 1) -> tuple[int, Waiter]:
        """Somebody waits for so many actions; returns the token of the first."""
        first = self._token
        self._token += size
        return first, Waiter(first, size, self._loop.create_future())

    def await_actions(self, first: int, size: int, waiter: Waiter) -> None:
        """By their tokens, whichever server makes them green."""
        self.by_token.update(dict.fromkeys(range(first, first + size), waiter))

    def await_request(self, client: str, number: int, waiter: Waiter) -> None:
        """By who asked: it may be an earlier action with the same number that is done."""
        self._by_request.setdefault(client, {}).setdefault(number, []).append(waiter)

    def requests(self) -> list[tuple[str, int]]:
        """Requests that somebody waits for."""
        return [(client, number) for client, waiting in self._by_request.items() for number in waiting]

    def request_done(self, asked: Asked, outcome: Outcome) -> None:
        """A request is done. What its client said that it has the outcome of is waited for in vain."""
        waiting = self._by_request.get(asked.client)
        if waiting is None:
            return
        for waiter in waiting.pop(asked.number, ()):
            waiter.done(waiter._first, outcome)
        for number in [number for number in waiting if number < asked.floor]:
            for waiter in waiting.pop(number):
                waiter.fail(forgotten(asked.client, number))
        if not waiting:
            del self._by_request[asked.client]

    # Tickets: what the server answers itself

    def ticket(self, token: int) -> "asyncio.Future[int]":
        """Somebody waits for the server's word on an action: its position, or 0 where it has none yet."""
        self._durable[token] = future = self._loop.create_future()
        return future

    def answered(self, token: int, position: int) -> None:
        """That word."""
        future = self._durable.pop(token, None)
        if future is not None and not future.done():
            future.set_result(position)

    def refused(self, token: int, error: Exception) -> None:
        """The server does not take the request."""
        waiter = self.by_token.pop(token, None)
        if waiter is not None:
            waiter.fail(error)
        future = self._durable.pop(token, None)
        if future is not None and not future.done():
            future.set_exception(error)

    # Words: what somebody looks for in the thread of the server

    def word(self) -> "asyncio.Future[Any]":
        """Somebody waits until the server has said something; it may end without a word."""
        self._check()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._words[future] = None
        future.add_done_callback(lambda said: self._words.pop(said, None))
        return future

    # Moments

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that changes only with what is delivered."""
        if not true():
            self._check()
            future: asyncio.Future[None] = self._loop.create_future()
            self._moments.append((true, future))
            await future

    def look(self) -> None:
        """Something was delivered."""
        if self._moments:
            due = [each for each in self._moments if each[0]()]
            self._moments = [each for each in self._moments if each not in due and not each[1].done()]
            for _, future in due:
                if not future.done():
                    future.set_result(None)

    def end(self, error: Exception) -> None:
        """Nothing will be answered any more."""
        self._over = self._over or error
        for waiter in self._all():
            waiter.fail(error)
        futures: list[asyncio.Future[Any]] = [*self._durable.values(), *self._words]
        futures += [future for _, future in self._moments]
        for future in futures:
            if not future.done():
                future.set_exception(error)
                future.exception()
        self.by_token.clear()
        self._by_request.clear()
        self._durable.clear()
        self._moments.clear()

    def _check(self) -> None:
        if self._over is not None:
            raise self._over

    def _all(self) -> Iterator[Waiter]:
        yield from self.by_token.values()
        for waiting in self._by_request.values():
            for waiters in waiting.values():
                yield from waiters


def forgotten(client: str, number: int) -> ForgottenError:
    """A client asks for what it said that it has."""
    return ForgottenError(f"request {number} of {client}: the client said that it has the outcome")


async def within(
    timeout: float | None, awaited: "asyncio.Future[T] | Coroutine[Any, Any, T]", what: str
) -> T:
    """Wait for something, so many seconds at most; `what` is for the error."""
    if timeout is None:
        return await awaited
    try:
        async with asyncio.timeout(timeout):
            return await awaited
    except TimeoutError:
        raise TimeoutError(f"waited {timeout:g} s for {what}") from None


async def stop_soon(task: "asyncio.Task[None]", seconds: float) -> None:
    """Give a task so long to come to its end; what it has not done by then stays undone."""
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    await asyncio.wait([task])


def tell_loop(loop: asyncio.AbstractEventLoop, found: "asyncio.Future[T]", what: T) -> None:
    """From the thread of the server."""

    def tell() -> None:
        if not found.done():
            found.set_result(what)

    with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
        loop.call_soon_threadsafe(tell)
