"""`replicate` and `Replica`: a server of a replicated service, in the program's own process.

How it takes updates is in `updating.py`, how it answers questions in `querying.py`.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.engine import administering
from semcast.engine.applying import Applier
from semcast.engine.errors import RefusedError, ReplicaError, RequestError, told
from semcast.engine.levels import STRICT
from semcast.engine.querying import QueryingSide
from semcast.engine.reports import Status, status_of
from semcast.engine.requesting import milliseconds
from semcast.engine.requests import Requests
from semcast.engine.service import Procedure, Service
from semcast.engine.session import Session
from semcast.engine.store import ServiceStore, Store, by_name
from semcast.engine.updating import UpdatingSide
from semcast.engine.waiting import Waiters, stop_soon, tell_loop, within
from semcast.group.errors import GroupClosedError, GroupError
from semcast.group.group import Group
from semcast.group.settings import GroupSettings, check_group, resolve
from semcast.replication.actions import Change, change
from semcast.replication.creation import Wish
from semcast.replication.stack import Replication

T = TypeVar("T")
_LOG = logging.getLogger("semcast.engine")
_HEADER = 64
"""Bytes that an action has besides its body, at most."""
QUEUE_MESSAGES = 1 << 15
"""Actions that are applied at a time, at most."""
SEND_MESSAGES = 1 << 15
_PATIENCE = 3.0
"""Seconds for what was delivered before the end: the rest is in the log, and done when it starts again."""


class _Hooks(NamedTuple):
    """The state of a store, between two lists of what is delivered."""

    export: Callable[[], bytes]
    restore: Callable[[bytes], None]


class Replica(UpdatingSide, QueryingSide):
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
        self._replication().vitals.wall = milliseconds
        self._told = ""  # what was last said of this server in the log
        self._first = self.group.member
        self._applier = Applier(self._store, self._waiters, self._mine)
        self._applying: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None  # kept: a task that nobody holds may vanish
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
        """Stop this server. It remains in its group, and continues from its folder when it restarts."""
        try:
            await self.group.close()
        finally:
            if self._applying is not None:
                await stop_soon(self._applying, _PATIENCE)
            self._end(GroupClosedError(f"{self.name} is closed"))
            await self._applier.close()
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
            self._ending = self._loop.create_task(self.group.close())

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

    # About it, and about the group

    async def in_turn(self, look: Callable[[Replication], T]) -> T:
        """What can be seen of the server, in its own thread."""
        found: asyncio.Future[T] = self._waiters.word()

        def tell(stack: Stack, _now: Nanos) -> None:
            assert isinstance(stack, Replication)
            tell_loop(self._loop, found, look(stack))

        self.group.command(tell)
        return await found

    def session(self, client: str = "", token: str = "") -> Session:
        """A session: it reads its own writes, and a repeated request is executed once.

        Args:
            client: id of the client, to continue an earlier session; generated if empty.
            token: the token of the session at another server (`Session.token`).
        """
        return Session(self, client, token)

    def status(self) -> Status:
        """The current status of this server."""
        return status_of(self._replication(), self._store.position)

    async def add(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """Add a server that was started with `newcomer`; returns the position of this change."""
        return await administering.add(self, server, weight, timeout)

    async def remove(self, server: str, *, timeout: float | None = None) -> int:
        """Remove a server permanently; returns the position of this change."""
        return await administering.remove(self, server, timeout)

    async def weigh(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """Set the weight of a server in a quorum; returns the position of this change."""
        return await administering.weigh(self, server, weight, timeout)

    async def change(self, what: Change, timeout: float | None = None) -> int:
        """Change the servers of the group; returns the position of this change."""
        self._check_open()
        token, _ = self._waiters.open()
        placed = self._waiters.ticket(token)
        self._requests.add([Wish(change(what), STRICT, token)])
        return await within(timeout, placed, "a primary")


def engine_settings(given: Mapping[str, Any], config: Path | None) -> GroupSettings:
    """Those of a server: as for `join`, with what is best for an engine where nothing is said."""
    wanted = {name: value for name, value in given.items() if value is not None}
    if "stack" in wanted:
        raise RequestError("stack cannot be set for a replicated service")
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
    """Run a server of a replicated service: `async with semcast.replicate("counter", Counter(), ...) as r:`.

    Args:
        group: the name of the service, the same at all servers.
        service: the object to replicate, without state: its state comes from `data` and from the others.
        procedures: the procedures that `Replica.call` may call.
        config: folder of `semcast.toml`.
        settings: as for `join`, with `data` (a folder), `name` (of this server) and `founders` (the names of
            all servers that found the group), or `newcomer=True` for one that is added later.
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
