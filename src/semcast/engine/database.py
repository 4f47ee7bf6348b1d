"""`database` and `Database`: a replicated SQLite database, with a server of it in this process."""

import asyncio
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import msgspec

from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.engine.errors import RequestError
from semcast.engine.levels import DIRTY, LINEAR, ReadLevel, UpdateLevel, check_read
from semcast.engine.outcomes import Outcome
from semcast.engine.reading import QueryReading
from semcast.engine.replica import Replica, engine_settings
from semcast.engine.reports import Receipt, Status
from semcast.engine.requesting import Seen
from semcast.engine.restoring import restored
from semcast.engine.results import SqlResult, result_of
from semcast.engine.session import Session
from semcast.engine.sqlstore import FILE, SqlStore, question
from semcast.group.machine import MACHINE
from semcast.group.settings import check_group
from semcast.replication.machine import Machine
from semcast.replication.stack import Replication
from semcast.sql import SqlAction, Statement, StatementError
from semcast.sql import snapshot as copies
from semcast.sql.actions import Expectation, Row, Value, encode
from semcast.sql.digest import digest
from semcast.sql.reading import QueryRows
from semcast.sql.refusals import check
from semcast.sql.updates import add, put

Parameters: TypeAlias = Sequence[Value]
Step: TypeAlias = str | tuple[str, Parameters] | Statement
"""A statement of a transaction: SQL alone, or with its parameters."""

_NOTHING = question("select 1", ())
_VALUES = (int, float, str, bytes)
_NO_LISTS = (str, bytes, Mapping)
_LOOK = 1.0
"""Seconds between two looks whether the log can be trimmed."""


class SqlAnswer(msgspec.Struct, frozen=True):
    """What a query gave."""

    columns: tuple[str, ...]
    rows: list[Row]
    position: int
    """All actions up to it show."""
    seen: Seen = ""
    """Of a dirty read: to be given with what is asked because of it."""


class SqlReceipt:
    """Statements that will be done, exactly once: they are on the disk of this server."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    async def ordered(self) -> SqlResult:
        """Wait until they have their place and were done here."""
        return result_of(await self._receipt.ordered())


class Database:
    """A server of a replicated database. Made by `database`."""

    def __init__(self, replica: Replica, store: SqlStore, *, trims: bool) -> None:
        self.replica = replica
        """For the servers of the group: `add`, `remove`, `weigh`, `status`."""
        self._store = store
        self._trims = trims
        self._trimming: asyncio.Task[None] | None = None
        self._reading = QueryReading(replica, store)

    # Life

    def __await__(self) -> Generator[Any, None, "Database"]:
        """`db = await database(...)`; then `close` is up to the program."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "Database":
        await self.replica
        if self._trims:
            self._trimming = asyncio.create_task(self._trim())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop this server. It remains a server of its group."""
        if self._trimming is not None:
            self._trimming.cancel()
            await asyncio.wait([self._trimming])
            self._trimming = None
        await self._reading.end()
        await self.replica.close()

    async def _trim(self) -> None:
        """Now and then: what is in the file for good need not be in the log."""
        while True:
            await asyncio.sleep(_LOOK)
            if self._machine().may_trim and (upto := await asyncio.to_thread(self._store.durable)):
                self._collect(upto)

    def _machine(self) -> Machine:
        stack = self.replica.group.stack
        assert isinstance(stack, Replication)
        return stack.machine

    def _collect(self, upto: int) -> None:
        def collect(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, Replication)
            stack.collect(now, upto)

        self.replica.group.command(collect)

    # Updates

    async def execute(
        self, sql: str, parameters: Parameters = (), *, level: UpdateLevel = "strict", **asked: Any
    ) -> SqlResult | SqlReceipt:
        """Execute a statement at every server.

        Args:
            sql: one statement, with ? for parameters.
            parameters: their values.
            level: as for `Replica.update`. Weak levels return a receipt.
            asked: `client`, `number`, `floor`, `seen`, `timeout`: as of `Replica.update`.

        Raises `StatementError` if it is refused before it is sent, `ActionError` if it fails.
        """
        return await self.transaction([(sql, parameters)], level=level, **asked)

    async def transaction(
        self,
        steps: Sequence[Step],
        *,
        expect: Sequence[tuple[str, Parameters, Sequence[Row]]] = (),
        level: UpdateLevel = "strict",
        **asked: Any,
    ) -> SqlResult | SqlReceipt:
        """Execute several statements as one transaction, at every server.

        `expect` lists queries with parameters and expected rows: if one returns other rows, nothing is done.
        """
        return wrapped(await self.replica.update(action_of(steps, expect), level=level, **asked))

    async def put(
        self,
        table: str,
        key: Mapping[str, Value],
        values: Mapping[str, Value],
        *,
        at: int,
        column: str = "at",
        **asked: Any,
    ) -> SqlResult | SqlReceipt:
        """Write a row unless a newer one exists (timestamped). Answered in a minority, too."""
        step = put(table, key, values, at, column=column)
        return await self.transaction([step], level="timestamped", **asked)

    async def add(
        self, table: str, key: Mapping[str, Value], column: str, delta: int | float, **asked: Any
    ) -> SqlResult | SqlReceipt:
        """Add to a number (commutative). Answered in a minority, too."""
        return await self.transaction([add(table, key, column, delta)], level="commutative", **asked)

    # Reads

    async def query(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: ReadLevel = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> SqlAnswer:
        """Run a query; levels as for `Replica.query`.

        A query that takes long is answered by a thread; it is given up after `timeout` (TimeoutError), and
        after 30 s (`StatementError`).
        """
        check_read(level)
        begun = time.monotonic()
        if level == LINEAR:
            # What is read when this one has its place shows all that was answered before it was asked.
            answer = await self.replica.query(_NOTHING, level=LINEAR, timeout=timeout)
            position = answer.position
        else:
            await self.replica.may_show(level, position, timeout)
            position = self._store.position
        left = None if timeout is None else timeout - (time.monotonic() - begun)
        if level == DIRTY:
            return SqlAnswer(*await self._reading.dirty(sql, parameters, left))
        found = await self._reading.green(sql, parameters, left)
        return SqlAnswer(found.columns, found.rows, position)

    def weak(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Rows of a weak query, at once, on the calling thread; thread-safe."""
        return self._store.sqlite.rows(sql, parameters)

    def green(self, sql: str, parameters: Parameters = ()) -> QueryRows:
        """The same, with the names of the columns."""
        return self._store.sqlite.weak(sql, parameters)

    def session(self, client: str = "", token: str = "") -> "DatabaseSession":
        """A session: it reads its own writes, and a repeated request is executed once."""
        return DatabaseSession(self, self.replica.session(client, token))

    # About it

    def status(self) -> Status:
        """The status of this server."""
        return self.replica.status()

    def digest(self) -> str:
        """Digest of all tables: equal at servers with equal `status().position`."""
        return digest(self._store.sqlite.reader()).hex()

    async def mark(self, *, timeout: float | None = None) -> int:
        """Have every server make digests of its tables at one place in the order; returns that place."""
        return await self.replica.mark(timeout)

    async def digests(self, position: int, *, timeout: float | None = None) -> Mapping[str, str]:
        """Of each table here, as it was at a place that was marked; `RequestError` where it was not."""
        async with asyncio.timeout(timeout):
            await self.replica.until(position)
            future = self._store.marks.at(position)
            if future is None:
                raise RequestError(
                    f"position {position}: nobody marked it, or it was long ago, or in a snapshot"
                )
            return await asyncio.wrap_future(future)

    async def backup(self, path: Path) -> int:
        """Copy the ordered state into a new file; returns its position."""
        return await asyncio.to_thread(copies.take, self._store.sqlite.path, path)

    async def restore(self, path: Path, *, replace: bool = False, timeout: float | None = None) -> SqlResult:
        """Replace all tables by those of a SQLite file, a backup or any other.

        It happens at every server, at one place in the order, or not at all; rows of the result tell how much
        each table has. It waits for a primary.

        Args:
            path: the file.
            replace: allow it although the database has tables, which are lost.
            timeout: seconds; then TimeoutError, and it may happen all the same.
        """
        async with asyncio.timeout(timeout):
            return await restored(self.replica, self._store.sqlite.reader, path, replace=replace)


class DatabaseSession:
    """Made by `Database.session`. One task uses it at a time."""

    def __init__(self, database: Database, session: Session) -> None:
        self._database, self._session = database, session

    @property
    def client(self) -> str:
        """Its id."""
        return self._session.client

    @property
    def token(self) -> str:
        """What to take to another server."""
        return self._session.token

    async def execute(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: UpdateLevel = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | SqlReceipt:
        """As `Database.execute`; with `number` the same request once more."""
        return await self.transaction([(sql, parameters)], level=level, number=number, timeout=timeout)

    async def transaction(
        self,
        steps: Sequence[Step],
        *,
        expect: Sequence[tuple[str, Parameters, Sequence[Row]]] = (),
        level: UpdateLevel = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | SqlReceipt:
        """As `Database.transaction`."""
        action = action_of(steps, expect)
        return wrapped(await self._session.update(action, level=level, number=number, timeout=timeout))

    async def query(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: ReadLevel = "session",
        timeout: float | None = None,
    ) -> SqlAnswer:
        """As `Database.query`; a session shows all that it wrote."""
        position = await self._session.settled(level)
        answer = await self._database.query(sql, parameters, level=level, position=position, timeout=timeout)
        self._session.showed(level, answer.position, answer.seen)
        return answer


def action_of(steps: Sequence[Step], expect: Sequence[tuple[str, Parameters, Sequence[Row]]] = ()) -> bytes:
    """The action that does these, as servers know it. StatementError for what cannot be ordered."""
    if isinstance(steps, str) or not steps:
        raise RequestError("steps: a list of statements, one at least")
    statements = tuple(map(_statement, steps))
    for each in statements:
        check(each.sql)
    wanted = tuple(
        Expectation(sql, tuple(parameters), tuple(map(tuple, rows))) for sql, parameters, rows in expect
    )
    try:
        return encode(SqlAction(statements, wanted))
    except (TypeError, OverflowError, ValueError) as error:
        raise StatementError(f"parameters: {error}") from None


def _statement(step: Step) -> Statement:
    if isinstance(step, Statement):
        return step
    sql, parameters = (step, ()) if isinstance(step, str) else step
    if not isinstance(sql, str):
        raise TypeError(f"sql of type {type(sql).__name__}: a statement is a text")
    if type(parameters) is not tuple and isinstance(parameters, _NO_LISTS):
        raise TypeError(f"parameters of type {type(parameters).__name__}: a list, by position")
    for value in parameters:
        if value is not None and not isinstance(value, _VALUES):
            raise TypeError(f"a parameter of type {type(value).__name__}: SQLite has no such values")
    return Statement(sql, tuple(parameters))


def wrapped(done: Outcome | Receipt) -> SqlResult | SqlReceipt:
    """What the engine says, for a database."""
    return SqlReceipt(done) if isinstance(done, Receipt) else result_of(done)


def database(group: str, *, config: Path | None = None, **settings: Any) -> Database:
    """Be a server of a replicated SQLite database: `async with semcast.database("bank", ...) as db:`.

    Args:
        group: the name of the database, the same at all servers.
        config: folder of `semcast.toml`.
        settings: as for `replicate`: `data`, `name`, `founders` or `newcomer`, ...
    """
    check_group(group)
    chosen = engine_settings(settings, config)
    volatile = getattr(chosen, "durability", "") == "memory"
    stores: list[SqlStore] = []

    def store(folder: Path) -> SqlStore:
        # What is answered from memory may be in the file and not in the log: then the log is right.
        stores.append(SqlStore(folder / FILE, fresh=volatile, threaded=not MACHINE.get().simulated))
        return stores[0]

    replica = Replica(group, chosen, store)
    stack = replica.group.stack
    assert isinstance(stack, Replication)
    stack.snapshots = volatile
    stack.vitals.versions = (f"SQLite {sqlite3.sqlite_version}",)
    return Database(replica, stores[0], trims=not volatile)
