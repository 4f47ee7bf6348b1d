"""A server of a replicated database for programs without asyncio: the same calls, which block."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semcast.engine.database import (
    Database,
    DatabaseSession,
    Parameters,
    SqlAnswer,
    SqlReceipt,
    Step,
    database,
)
from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.engine.loopthread import InThread, LoopThread
from semcast.engine.reports import Status
from semcast.engine.results import SqlResult
from semcast.sql.actions import Row, Value

Expect = Sequence[tuple[str, Parameters, Sequence[Row]]]


class BlockingSqlReceipt:
    """As `SqlReceipt`."""

    def __init__(self, loop: LoopThread, receipt: SqlReceipt) -> None:
        self._loop, self._receipt = loop, receipt

    def ordered(self) -> SqlResult:
        """Wait until it is ordered and executed here."""
        return self._loop.call(self._receipt.ordered())


def _handed(loop: LoopThread, done: SqlResult | SqlReceipt) -> SqlResult | BlockingSqlReceipt:
    return BlockingSqlReceipt(loop, done) if isinstance(done, SqlReceipt) else done


class BlockingDatabaseSession:
    """As `DatabaseSession`."""

    def __init__(self, loop: LoopThread, session: DatabaseSession) -> None:
        self._loop, self._session = loop, session

    @property
    def client(self) -> str:
        """Its id."""
        return self._session.client

    @property
    def token(self) -> str:
        """What to take to another server."""
        return self._session.token

    def execute(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: UpdateLevel = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | BlockingSqlReceipt:
        """As `DatabaseSession.execute`."""
        work = self._session.execute(sql, parameters, level=level, number=number, timeout=timeout)
        return _handed(self._loop, self._loop.call(work))

    def transaction(
        self,
        steps: Sequence[Step],
        *,
        expect: Expect = (),
        level: UpdateLevel = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | BlockingSqlReceipt:
        """As `DatabaseSession.transaction`."""
        work = self._session.transaction(steps, expect=expect, level=level, number=number, timeout=timeout)
        return _handed(self._loop, self._loop.call(work))

    def query(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: ReadLevel = "session",
        timeout: float | None = None,
    ) -> SqlAnswer:
        """As `DatabaseSession.query`."""
        return self._loop.call(self._session.query(sql, parameters, level=level, timeout=timeout))


class BlockingDatabase(InThread[Database]):
    """As `Database`. Made by `semcast.blocking.database`; its methods may be called by any thread."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        super().__init__(name, "database")
        self._given = given

    async def _open(self) -> Database:
        return await database(self._name, **self._given)

    # Updates

    def execute(
        self, sql: str, parameters: Parameters = (), *, level: UpdateLevel = "strict", **asked: Any
    ) -> SqlResult | BlockingSqlReceipt:
        """As `Database.execute`."""
        loop, db = self._opened()
        return _handed(loop, loop.call(db.execute(sql, parameters, level=level, **asked)))

    def transaction(
        self, steps: Sequence[Step], *, expect: Expect = (), level: UpdateLevel = "strict", **asked: Any
    ) -> SqlResult | BlockingSqlReceipt:
        """As `Database.transaction`."""
        loop, db = self._opened()
        return _handed(loop, loop.call(db.transaction(steps, expect=expect, level=level, **asked)))

    def put(
        self,
        table: str,
        key: Mapping[str, Value],
        values: Mapping[str, Value],
        *,
        at: int,
        column: str = "at",
        **asked: Any,
    ) -> SqlResult | BlockingSqlReceipt:
        """As `Database.put`."""
        loop, db = self._opened()
        return _handed(loop, loop.call(db.put(table, key, values, at=at, column=column, **asked)))

    def add(
        self, table: str, key: Mapping[str, Value], column: str, delta: int | float, **asked: Any
    ) -> SqlResult | BlockingSqlReceipt:
        """As `Database.add`."""
        loop, db = self._opened()
        return _handed(loop, loop.call(db.add(table, key, column, delta, **asked)))

    # Reads

    def query(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        level: ReadLevel = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> SqlAnswer:
        """As `Database.query`."""
        loop, db = self._opened()
        return loop.call(db.query(sql, parameters, level=level, position=position, timeout=timeout))

    def weak(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """As `Database.weak`: on the thread that calls."""
        return self._opened()[1].weak(sql, parameters)

    def session(self, client: str = "", token: str = "") -> BlockingDatabaseSession:
        """As `Database.session`."""
        loop, db = self._opened()
        return BlockingDatabaseSession(loop, db.session(client, token))

    # About it, and about the group

    def status(self) -> Status:
        """As `Database.status`."""
        return self._opened()[1].status()

    def digest(self) -> str:
        """As `Database.digest`."""
        return self._opened()[1].digest()

    def mark(self, *, timeout: float | None = None) -> int:
        """As `Database.mark`."""
        loop, db = self._opened()
        return loop.call(db.mark(timeout=timeout))

    def digests(self, position: int, *, timeout: float | None = None) -> Mapping[str, str]:
        """As `Database.digests`."""
        loop, db = self._opened()
        return loop.call(db.digests(position, timeout=timeout))

    def backup(self, path: Path) -> int:
        """As `Database.backup`."""
        loop, db = self._opened()
        return loop.call(db.backup(path))

    def restore(self, path: Path, *, replace: bool = False, timeout: float | None = None) -> SqlResult:
        """As `Database.restore`."""
        loop, db = self._opened()
        return loop.call(db.restore(path, replace=replace, timeout=timeout))

    def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """As `Replica.add`."""
        loop, db = self._opened()
        return loop.call(db.replica.add(server, weight=weight, timeout=timeout))

    def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        """As `Replica.remove`."""
        loop, db = self._opened()
        return loop.call(db.replica.remove(server, timeout=timeout))

    def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """As `Replica.weigh`."""
        loop, db = self._opened()
        return loop.call(db.replica.weigh(server, weight, timeout=timeout))
