"""How a program reads a replicated service, at the level it asks for."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.engine import contents
from semcast.engine.applying import Applier
from semcast.engine.levels import DIRTY, LINEAR, SESSION, STRICT, ReadLevel, check_read
from semcast.engine.reports import Answer
from semcast.engine.requesting import Seen, check_bytes, milliseconds, seen_of
from semcast.engine.requests import Requests
from semcast.engine.store import Store, Todo
from semcast.engine.waiting import Waiters, tell_loop, within
from semcast.group.group import Group
from semcast.replication.actions import plain
from semcast.replication.creation import Wish
from semcast.replication.reads import Shown
from semcast.replication.stack import Replication
from semcast.replication.states import State


class QueryingSide(ABC):
    """The part of a `Replica` that answers questions."""

    group: Group
    _applier: Applier
    _largest: int
    _loop: asyncio.AbstractEventLoop
    _requests: Requests
    _store: Store
    _waiters: Waiters

    @abstractmethod
    def _check_open(self) -> None:
        """Raise where this server has ended."""

    @abstractmethod
    def _replication(self) -> Replication:
        """The server itself, to be looked at."""

    async def query(
        self,
        question: bytes,
        *,
        level: ReadLevel = "session",
        position: int = 0,
        client: str = "",
        timeout: float | None = None,
    ) -> Answer:
        """Query the service.

        Args:
            question: passed to the service.
            level: `linear`: ordered like an action. `session`: in a primary, with all up to `position`;
                waits elsewhere. `weak`: at once, only ordered actions, perhaps old. `dirty`: at once, also
                with actions that are not ordered yet.
            position: position of the client's last answer, which a session read must include.
            client: for the history only.
            timeout: seconds to wait; then TimeoutError.
        """
        check_read(level)
        check_bytes("question", question, self._largest)
        if level == LINEAR:
            self._check_open()
            return await self._linear(question, timeout)
        await self.may_show(level, position, timeout)
        store = self._store
        if level != DIRTY:
            return Answer(store.query(question), store.position)
        async with self.dirty(client) as (reds, seen):
            result = store.dirty(question, reds) if reds else store.query(question)
            return Answer(result, store.position, seen)

    async def may_show(self, level: ReadLevel, position: int = 0, timeout: float | None = None) -> None:
        """Wait until a read may be answered."""
        self._check_open()
        if level == SESSION:
            await within(timeout, self._waiters.until(lambda: self._may_show(position)), "a primary")

    @asynccontextmanager
    async def dirty(self, client: str = "") -> AsyncIterator[tuple[list[Todo], Seen]]:
        """What a dirty read shows besides what is green. Inside, nothing more turns green here."""
        shown = await self._look(client)
        await self._waiters.until(lambda: self._store.position >= shown.line)
        async with self._applier.lock:
            yield self._applier.reds(shown.reds), seen_of(shown.cut)

    def _may_show(self, position: int) -> bool:
        machine = self._replication().machine
        return machine.state is State.REG_PRIM and self._store.position >= position

    async def _linear(self, question: bytes, timeout: float | None) -> Answer:
        token, waiter = self._waiters.open()
        self._waiters.await_actions(token, 1, waiter)
        content = contents.written(contents.READ, STRICT, milliseconds(), token, question)
        self._requests.add([Wish(plain(content))])
        outcome = (await within(timeout, waiter.future, "a primary"))[0]
        return Answer(outcome.result, outcome.position)

    async def mark(self, timeout: float | None = None) -> int:
        """Have every server remember what it has at one place in the order; returns that place."""
        self._check_open()
        token, waiter = self._waiters.open()
        self._waiters.await_actions(token, 1, waiter)
        self._requests.add([Wish(plain(contents.written(contents.MARK, STRICT, milliseconds(), token, b"")))])
        return (await within(timeout, waiter.future, "a primary"))[0].position

    async def until(self, position: int, timeout: float | None = None) -> None:
        """Wait until all up to a position is done here."""
        self._check_open()
        await within(timeout, self._waiters.until(lambda: self._store.position >= position), "that position")

    async def _look(self, client: str) -> Shown:
        """What a dirty read shows, with all that was asked for here before."""
        found: asyncio.Future[Shown] = self._waiters.word()

        def look(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, Replication)
            stack.when_shown(now, show)

        def show() -> None:
            shown = self._replication().reading.read(DIRTY, client)
            assert shown is not None
            tell_loop(self._loop, found, shown)

        self.group.command(look)
        return await found
