"""`replicate` and `Replica`: a server of a replicated service, in the program's own process."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar, Unpack, overload

from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.engine import administering, contents
from semcast.engine.applying import Applier
from semcast.engine.errors import RefusedError, ReplicaError, RequestError, told
from semcast.engine.levels import (
    DIRTY,
    LINEAR,
    SESSION,
    STRICT,
    EarlyLevel,
    ReadLevel,
    UpdateLevel,
    check_read,
    check_update,
)
from semcast.engine.outcomes import Outcome
from semcast.engine.reports import Answer, Receipt, Status, raised, status_of
from semcast.engine.requesting import Asking, Seen, check_bytes, check_client, cut_of, expectations, seen_of
from semcast.engine.requests import Requests
from semcast.engine.service import Expectation, Procedure, Service
from semcast.engine.session import Session
from semcast.engine.store import ServiceStore, Store, Todo, by_name
from semcast.engine.waiting import Waiter, Waiters, forgotten, tell_loop, within
from semcast.group.errors import GroupClosedError, GroupError
from semcast.group.group import Group
from semcast.group.settings import GroupSettings, check_group, resolve
from semcast.replication.actions import Asked, Change, asked, change, plain
from semcast.replication.creation import QUEUED, Wish
from semcast.replication.reads import Shown
from semcast.replication.stack import Replication
from semcast.replication.states import State

T = TypeVar("T")
_LOG = logging.getLogger("semcast.engine")
_HEADER = 64
"""Bytes that an action has besides its body, at most."""
QUEUE_MESSAGES = 1 << 15
"""Actions that are applied at a time, at most."""
SEND_MESSAGES = 1 << 15


class _Hooks(NamedTuple):
    """The state of a store, between two lists of what is delivered."""

    export: Callable[[], bytes]
    restore: Callable[[bytes], None]


class Replica:
    """A server of a replicated service. Made by `replicate`."""

    def __init__(
        self,
        name: str,
        settings: GroupSettings,
        store: Callable[[Path], Store],
        procedures: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self._procedures = dict(procedures or {})
        self._loop = asyncio.get_running_loop()
        self._waiters = Waiters(self._loop)
        self._requests = Requests(self._loop, self._hear)
        self.group = Group(name, settings, _Hooks(self._export, self._restore), watchers=[self._requests])
        try:
            assert self.group.folder is not None, "a replication server has a folder"
            self._store = store(self.group.folder)
        except BaseException:
            self.group.discard()
            raise
        self._requests.attach(self.group.command)
        self._replication().handing.whole = True
        self._replication().vitals.wall = _milliseconds
        self._told = ""  # what was last said of this server in the log
        self._first = self.group.member
        self._applier = Applier(self._store, self._waiters, self._mine)
        self._applying: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._largest = self.group.largest - _HEADER

    def _replication(self) -> Replication:
        stack = self.group.stack
        assert isinstance(stack, Replication)
        return stack

    def _mine(self, creator: MemberId) -> bool:
        """Whether this process made it, perhaps under an earlier incarnation."""
        return creator.name == self._first.name and creator.incarnation > self._first.incarnation

    # Life

    def __await__(self) -> Generator[Any, None, "Replica"]:
        """`replica = await replicate(...)`, where `async with` does not fit; then `close` is up to you."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "Replica":
        try:
            # A server that was away for long is given what it lacks, and only then comes back to its group.
            self._applying = self._loop.create_task(self._apply())
            await self.group
            line = await self.in_turn(lambda stack: stack.machine.limit)
            await self._waiters.until(lambda: self._store.position >= line)
            self._check_open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop this server. It stays one of its group, and goes on with its folder when it starts again."""
        try:
            await self.group.close()
        finally:
            if self._applying is not None:
                await asyncio.wait([self._applying])
            self._end(GroupClosedError(f"{self.name} is closed"))
            self._applier.close()
            self._store.close()
        if self._failure is not None:
            raise self._failed()

    async def _apply(self) -> None:
        """Until the end: what is delivered, list by list."""
        try:
            async for deliveries in self.group.batches():
                self._hear()  # answers to what is in the list came before it
                await self._applier.apply(deliveries)
                self._warn()
        except Exception as error:
            if isinstance(error, GroupError) and not isinstance(error, ReplicaError):
                self._end(error)  # the server has left, or failed: the group says so to everybody
                return
            self._failure = error
            self._end(self._failed())
            self._loop.create_task(self.group.close())

    def _warn(self) -> None:
        """What is wrong with this server, or with the network, once."""
        wrong = self._replication().machine.trouble
        if wrong != self._told:
            self._told = wrong
            if wrong:
                _LOG.error("%s of %s: %s", self.group.member, self.name, wrong)

    def _hear(self) -> None:
        for answer in self._requests.answers():
            if answer.refusal:
                self._waiters.refused(answer.ticket, RefusedError(answer.refusal))
            else:
                self._waiters.answered(answer.ticket, answer.position)

    def _end(self, error: Exception) -> None:
        self._waiters.end(error)

    def _failed(self) -> ReplicaError:
        if isinstance(self._failure, ReplicaError):
            return self._failure
        error = ReplicaError(f"{self.group.member} of {self.name} cannot go on: {told(self._failure)}")
        error.__cause__ = self._failure
        return error

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failed()
        if self.group.is_over():
            raise GroupClosedError(f"{self.name} is closed")

    def _check_takes(self) -> None:
        """Raise unless this server makes actions."""
        self._check_open()
        unfit = self._replication().machine.unfit
        if unfit:
            raise RefusedError(unfit)

    def _export(self) -> bytes:
        return self._store.snapshot()

    def _restore(self, state: bytes) -> None:
        """Go on from a state that is further."""
        self._store.restore(state)
        overtaken, stack = [], self._replication()
        while stack.overtaken:
            overtaken.append(stack.overtaken.pop())
        self._applier.restored(overtaken)

    # Updates

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: Literal["strict"] = ...,
        **asked: Unpack[Asking],
    ) -> Outcome: ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: EarlyLevel,
        **asked: Unpack[Asking],
    ) -> Receipt: ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel,
        **asked: Unpack[Asking],
    ) -> Outcome | Receipt: ...

    async def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: Seen = "",
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> Outcome | Receipt:
        """Have an action done at every server, once.

        Args:
            action: what the service is given.
            level: `strict`: answered when it has its place and was done here; waits for a primary. `queued`:
                when it is on the disk here, in a minority, too. `timestamped` and `commutative`: the same, of
                actions that come to the same in any order.
            client: who asks, if it may ask again: the same number is done once, wherever it is asked.
            number: of the request, from 1 on.
            floor: the client has the outcomes of all its requests with lower numbers.
            seen: of a dirty read that made the client ask.
            expect: questions and their answers; if one has another answer at its place, nothing is done.
            timeout: seconds to wait; then TimeoutError. The action may be done all the same.

        Raises `ActionError` where the service refuses, `RefusedError` where this server cannot take it.
        """
        check_bytes("action", action, self._largest)
        wanted = expectations(expect) if expect else ()
        if level == STRICT and client == "" and number == floor == 0 and seen == "" and not wanted:
            return raised((await within(timeout, self._order([action]), "the outcome"))[0])
        kind = contents.CALL if wanted else contents.UPDATE
        body = contents.call(action, "", 0, wanted) if wanted else action
        return await self._request(kind, body, level, client, number, floor, seen, timeout)

    async def call(
        self,
        procedure: str,
        body: bytes = b"",
        *,
        version: int | None = None,
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: Seen = "",
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> Outcome | Receipt:
        """Have a named procedure run at every server; its newest version here, if none is given."""
        newest = self._procedures.get(procedure)
        if newest is None:
            known = ", ".join(sorted(self._procedures)) or "none"
            raise RequestError(f"procedure {procedure!r}: there are {known}")
        check_bytes("body", body, self._largest)
        chosen = newest if version is None else version
        content = contents.call(body, procedure, chosen, expectations(expect))
        return await self._request(contents.CALL, content, level, client, number, floor, seen, timeout)

    async def update_many(self, actions: Sequence[bytes], *, timeout: float | None = None) -> list[Outcome]:
        """Have several strict actions done, in this order, others perhaps between them; their outcomes.

        What the service refuses has its reason in `Outcome.error`. It costs much less than one by one.
        """
        for each in actions:
            check_bytes("action", each, self._largest)
        if not actions:
            return []
        return await within(timeout, self._order(actions), "the outcomes")

    def _order(self, actions: Sequence[bytes]) -> "asyncio.Future[list[Outcome]]":
        """Strict actions that nobody may ask for again: what is asked for most, so it has to be quick."""
        self._check_takes()
        first, waiter = self._waiters.open(len(actions))
        self._waiters.await_actions(first, len(actions), waiter)
        self._requests.add(list(map(Wish, contents.plain_updates(_milliseconds(), first, actions))))
        return waiter.future

    async def _request(
        self,
        kind: int,
        body: bytes,
        level: str,
        client: str,
        number: int,
        floor: int,
        seen: Seen,
        timeout: float | None,
    ) -> Outcome | Receipt:
        check_update(level)
        check_client(client, number, floor)
        cut = cut_of(seen)
        self._check_takes()
        token, waiter = self._waiters.open()
        if client and (known := self._known(client, number, waiter)) is not None:
            return known if level != STRICT else await known.ordered()
        content = contents.written(kind, level, _milliseconds(), token, body)
        action = asked(Asked(client, number, floor, content)) if client else plain(content)
        if client:
            self._waiters.await_request(client, number, waiter)
        else:
            self._waiters.await_actions(token, 1, waiter)
        if level == STRICT:
            self._requests.add([Wish(action, STRICT, token if cut else None, cut)])
            if cut:
                self._waiters.await_actions(token, 1, waiter)
            return raised((await within(timeout, waiter.future, "the outcome"))[0])
        durable = self._waiters.ticket(token)
        self._requests.add([Wish(action, QUEUED, token, cut)])
        await within(timeout, durable, "the disk of this server")
        return Receipt(waiter)

    def _known(self, client: str, number: int, waiter: Waiter) -> Receipt | None:
        """Of a request that was done before, the outcome."""
        outcome = self._store.outcomes.find(client, number)
        if outcome is not None:
            waiter.future.set_result([outcome])
            return Receipt(waiter)
        if number < self._store.outcomes.floor(client):
            raise forgotten(client, number)
        return None

    # Reads

    async def query(
        self,
        question: bytes,
        *,
        level: ReadLevel = "session",
        position: int = 0,
        client: str = "",
        timeout: float | None = None,
    ) -> Answer:
        """Ask the service.

        Args:
            question: what the service is given.
            level: `linear`: at a place in the order of all, as an action. `session`: in a primary, with all
                up to `position`; waits elsewhere. `weak`: at once, what is green here, perhaps old. `dirty`:
                at once, and what has no place yet behind it.
            position: what the client was answered last: a session shows that.
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
        content = contents.written(contents.READ, STRICT, _milliseconds(), token, question)
        self._requests.add([Wish(plain(content))])
        outcome = (await within(timeout, waiter.future, "a primary"))[0]
        return Answer(outcome.result, outcome.position)

    async def mark(self, timeout: float | None = None) -> int:
        """Have every server remember what it has at one place in the order; returns that place."""
        self._check_open()
        token, waiter = self._waiters.open()
        self._waiters.await_actions(token, 1, waiter)
        self._requests.add(
            [Wish(plain(contents.written(contents.MARK, STRICT, _milliseconds(), token, b"")))]
        )
        return (await within(timeout, waiter.future, "a primary"))[0].position

    async def until(self, position: int, timeout: float | None = None) -> None:
        """Wait until all up to a position is done here."""
        self._check_open()
        await within(timeout, self._waiters.until(lambda: self._store.position >= position), "that position")

    async def _look(self, client: str) -> Shown:
        """What a dirty read shows, with all that was asked for here before."""
        found: asyncio.Future[Shown] = self._loop.create_future()

        def look(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, Replication)
            stack.when_shown(now, show)

        def show() -> None:
            shown = self._replication().reading.read(DIRTY, client)
            assert shown is not None
            tell_loop(self._loop, found, shown)

        self.group.command(look)
        return await found

    async def in_turn(self, look: Callable[[Replication], T]) -> T:
        """What can be seen of the server, in its own thread."""
        found: asyncio.Future[T] = self._loop.create_future()

        def tell(stack: Stack, _now: Nanos) -> None:
            assert isinstance(stack, Replication)
            tell_loop(self._loop, found, look(stack))

        self.group.command(tell)
        return await found

    def session(self, client: str = "", token: str = "") -> Session:
        """A client that sees its own writes, and whose requests are done once however often it asks.

        Args:
            client: its id, if it comes back; made up otherwise.
            token: of the same session at another server (`Session.token`).
        """
        return Session(self, client, token)

    # About it, and about the group

    def status(self) -> Status:
        """How this server stands now."""
        return status_of(self._replication(), self._store.position)

    async def add(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """Let a server into the group that was started with `newcomer`; returns the position of that."""
        return await administering.add(self, server, weight, timeout)

    async def remove(self, server: str, *, timeout: float | None = None) -> int:
        """Put a server out of the group for good; returns the position of that."""
        return await administering.remove(self, server, timeout)

    async def weigh(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """Let a server count for so much in a quorum; returns the position of that."""
        return await administering.weigh(self, server, weight, timeout)

    async def change(self, what: Change, timeout: float | None = None) -> int:
        """Change the servers of the group; returns the position of that."""
        self._check_open()
        token, _ = self._waiters.open()
        placed = self._waiters.ticket(token)
        self._requests.add([Wish(change(what), STRICT, token)])
        return await within(timeout, placed, "a primary")


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def engine_settings(given: Mapping[str, Any], config: Path | None) -> GroupSettings:
    """Those of a server: as for `join`, with what is best for an engine where nothing is said."""
    wanted = {name: value for name, value in given.items() if value is not None}
    if "stack" in wanted:
        raise RequestError("stack: a replicated service has its own")
    wanted.setdefault("queue_messages", QUEUE_MESSAGES)
    wanted.setdefault("send_messages", SEND_MESSAGES)
    return resolve({**wanted, "stack": "replication"}, config)


def replicate(
    group: str,
    service: Service,
    *,
    procedures: Sequence[Procedure] = (),
    config: Path | None = None,
    **settings: Any,
) -> Replica:
    """Be a server of a replicated service: `async with semcast.replicate("counter", Counter(), ...) as r:`.

    Args:
        group: the name of the service, the same at all servers.
        service: the object that is replicated, as new: its state comes from `data` and from the others.
        procedures: what `Replica.call` may call.
        config: folder of `semcast.toml`.
        settings: as for `join`, with `data` (a folder), `name` (of this server) and `founders` (the names of
            all servers that found the group), or `newcomer=True` for one that is let in later.
    """
    check_group(group)
    for method in ("apply", "query", "snapshot", "restore"):
        if not callable(getattr(service, method, None)):
            raise RequestError(f"service {type(service).__name__} has no method {method}")
    newest: dict[str, int] = {}
    for each in procedures:
        newest[each.name] = max(each.version, newest.get(each.name, each.version))
    named = by_name(procedures)
    return Replica(group, engine_settings(settings, config), lambda _: ServiceStore(service, named), newest)
