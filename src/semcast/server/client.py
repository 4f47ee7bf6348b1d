"""A client of a replicated database: the calls of a program that has it in its own process, over HTTP.

It stays with one server and takes the next when that is gone. Every update has a number of this client: asked
again at another server, it is done once.
"""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from semcast.engine import ActionError, RequestError
from semcast.engine.database import SqlAnswer, Step
from semcast.engine.levels import DIRTY, SESSION, STRICT, check_read, check_update
from semcast.engine.restoring import prepared
from semcast.engine.results import SqlResult
from semcast.group.errors import GroupClosedError, GroupError
from semcast.server.addresses import parse
from semcast.server.calling import Caller, Content
from semcast.server.errors import PendingError
from semcast.server.limits import SQLITE
from semcast.server.numbers import Numbers
from semcast.server.values import row_from_json, row_to_json, rows_to_json
from semcast.server.verifying import Verified, verified
from semcast.sql import updates
from semcast.sql.actions import Row, Statement, Value
from semcast.sql.errors import StatementError

TIMEOUT = 30.0
RESTORE_TIMEOUT = 300.0
_MANY = 1000
"""Updates without a place, from which on the client looks whether they have one by now."""

Expected = tuple[str, Sequence[Value], Sequence[Sequence[Value]]]
"""A query, its parameters, and the rows that it must give."""


class ServedResult(SqlResult, frozen=True):
    """What an update did."""

    truncated: bool = False
    """Whether there were more rows than a server sends."""


class Promise:
    """An update that will be done exactly once; its place is not known yet."""

    def __init__(self, client: "Client", content: Content) -> None:
        self._client = client
        self._content = content
        self._done: SqlResult | ActionError | None = None

    @property
    def number(self) -> int:
        """Of the update."""
        return int(self._content["number"])

    async def ordered(self, timeout: float | None = None) -> SqlResult:
        """Wait until it has its place; what it did there.

        Raises `ActionError` where it could not be done, `PendingError` where there is no primary in time.
        """
        if self._done is None:
            try:
                self._done = await self._client._ask(self._content, timeout)
            except ActionError as error:
                self._done = error
        if isinstance(self._done, ActionError):
            raise self._done
        return self._done


class Client:
    """Made by `connect`. Several tasks may use it."""

    def __init__(
        self,
        name: str,
        servers: Iterable[str],
        *,
        token: str = "",
        tls: bool = False,
        ca: str = "",
        insecure: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        if isinstance(servers, str):
            raise RequestError("servers: a list of host:port")
        found = [parse(each, tls=tls or bool(ca)) for each in servers]
        if not found:
            raise RequestError("servers: name at least one, as host:port")
        open_ones = [each.url for each in found if not each.local and not each.encrypted]
        if token and open_ones and not insecure:
            raise RequestError(f"{open_ones[0]}: the token would travel in the open; set tls, or insecure")
        self.name = name
        self._timeout = _seconds(timeout)
        self._caller = Caller(found, token, ca)
        self._numbers = Numbers()
        self._promises: dict[int, Promise] = {}
        self._position = 0
        self._seen = ""
        self._closed = False

    # Life

    def __await__(self) -> Generator[Any, None, "Client"]:
        """`db = await connect(...)`, where `async with` does not fit; then `close` is up to you."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "Client":
        try:
            status = await self.status()
            if status.get("database") != self.name:
                raise GroupError(
                    f"{self._caller.server} serves the database {status.get('database')!r}, not {self.name!r}"
                )
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        self._closed = True
        await self._caller.close()

    @property
    def server(self) -> str:
        """The server that is asked now."""
        return self._caller.server

    # Updates

    async def execute(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        *,
        level: str = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | Promise:
        """Do a statement.

        Args:
            sql: one statement.
            parameters: for its question marks.
            level: `strict`: answered when it has its place, with what it did; waits for a primary. `queued`,
                `timestamped`, `commutative`: answered at once, with a `Promise`.
            number: of an update of this client that had no answer (`PendingError.number`), asked again.
            timeout: seconds; the client's own by default.
        """
        content = {"sql": sql, "params": row_to_json(parameters)}
        return await self._update("/v1/execute", content, level, number, timeout)

    async def transaction(
        self,
        steps: Sequence[Step],
        *,
        expect: Sequence[Expected] = (),
        level: str = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | Promise:
        """Do statements together or not at all, and only if what was read before is still so.

        Args:
            steps: each SQL, or SQL with parameters.
            expect: each a query, its parameters, and the rows it must give at the place of this update.
            level: as for `execute`.
            number: as for `execute`.
            timeout: as for `execute`.
        """
        content = {
            "statements": [_statement(each) for each in steps],
            "expect": [
                {"sql": sql, "params": row_to_json(params), "rows": rows_to_json(map(tuple, rows))}
                for sql, params, rows in expect
            ],
        }
        return await self._update("/v1/transaction", content, level, number, timeout)

    async def put(
        self,
        table: str,
        key: Mapping[str, Value],
        values: Mapping[str, Value],
        *,
        at: int,
        column: str = "at",
        timeout: float | None = None,
    ) -> Promise:
        """Write a row unless a later one is there: answered at once, also where there is no primary."""
        made = updates.put(table, key, values, at, column=column)
        return await self._early(made, "timestamped", timeout)

    async def add(
        self,
        table: str,
        key: Mapping[str, Value],
        column: str,
        delta: int | float,
        *,
        timeout: float | None = None,
    ) -> Promise:
        """Add to a number: answered at once, also where there is no primary."""
        return await self._early(updates.add(table, key, column, delta), "commutative", timeout)

    async def _early(self, made: Statement, level: str, timeout: float | None) -> Promise:
        content = {"sql": made.sql, "params": row_to_json(made.parameters)}
        done = await self._update("/v1/execute", content, level, 0, timeout)
        assert isinstance(done, Promise)
        return done

    async def _update(
        self, path: str, content: Content, level: str, number: int, timeout: float | None
    ) -> SqlResult | Promise:
        check_update(level)
        await self._look_at_promises()
        chosen = self._numbers.take(number)
        asked = {"path": path, **content, "level": level, "client": self._numbers.client, "number": chosen}
        if level == STRICT:
            return await self._ask(asked, timeout, fresh=not number)
        await self._send(asked, timeout, fresh=not number)
        promise = self._promises[chosen] = Promise(self, {**asked, "level": STRICT})
        return promise

    async def _ask(self, content: Content, timeout: float | None, *, fresh: bool = False) -> SqlResult:
        """What an update did, once it has its place."""
        number = content["number"]
        try:
            found = await self._send(content, timeout, fresh=fresh)
        except ActionError:
            self._settle(number)
            raise
        done = _result(found)
        self._settle(number)
        self._position = max(self._position, done.position)
        return done

    async def _send(self, content: Content, timeout: float | None, *, fresh: bool) -> Content:
        """Ask for an update; `fresh` if no server can know of it yet."""
        self._check_open()
        number = content["number"]
        told = {key: value for key, value in content.items() if key != "path"}
        told |= {"floor": min(self._numbers.floor, number), "seen": self._seen}
        try:
            return await self._caller.post(content["path"], told, self._seconds(timeout))
        except TimeoutError as error:
            raise PendingError(f"update {number}: {error}", number) from error
        except (GroupError, StatementError):
            if fresh:
                self._settle(number)  # nobody took it
            raise

    async def numbered(self, path: str, content: Content, timeout: float | None = None) -> int:
        """Do an update under a client and a number of its own; returns its position."""
        self._check_open()
        found = await self._caller.post(path, {**content, "level": STRICT}, self._seconds(timeout))
        position = int(found["position"])
        self._position = max(self._position, position)
        return position

    def _settle(self, number: int) -> None:
        self._numbers.settle(number)
        self._promises.pop(number, None)

    async def _look_at_promises(self) -> None:
        """Servers keep what is answered early until this client has its outcome: now and then it asks."""
        if len(self._promises) < _MANY:
            return
        for promise in list(self._promises.values())[: _MANY // 2]:
            try:
                await promise.ordered(1.0)
            except ActionError:
                continue
            except (GroupError, TimeoutError):
                return

    # Queries

    async def query(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        *,
        level: str = "session",
        timeout: float | None = None,
    ) -> SqlAnswer:
        """Answer a query.

        Args:
            sql: a query.
            parameters: for its question marks.
            level: `linear`, `session`, `weak` or `dirty`; see `docs/database.md`.
            timeout: seconds; the client's own by default.
        """
        check_read(level)
        self._check_open()
        if level == SESSION:
            for promise in list(self._promises.values()):  # a session shows all that it wrote
                try:
                    await promise.ordered(timeout)
                except ActionError:
                    continue
        content = {"sql": sql, "params": row_to_json(parameters), "level": level, "position": self._position}
        found = await self._caller.post("/v1/query", content, self._seconds(timeout))
        self._position = max(self._position, found["position"])
        if level == DIRTY:
            self._seen = found["seen"]
        rows: list[Row] = [row_from_json(row) for row in found["rows"]]
        return SqlAnswer(tuple(found["columns"]), rows, found["position"], found["seen"])

    # About the servers

    async def status(self) -> Mapping[str, Any]:
        """How the server is that this client talks to."""
        self._check_open()
        return await self._caller.get("/v1/status", self._timeout)

    async def members(self) -> Mapping[str, Any]:
        """The servers of the database and their weights, those within reach, and those that want in."""
        self._check_open()
        return await self._caller.get("/v1/members", self._timeout)

    async def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """Let a server in that waits for it; returns the position of that."""
        return await self._change("add", server, weight, timeout)

    async def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        """Put a server out for good."""
        return await self._change("remove", server, 1, timeout)

    async def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """Let a server count for so much in a quorum."""
        return await self._change("weight", server, weight, timeout)

    async def _change(self, change: str, server: str, weight: int, timeout: float | None) -> int:
        self._check_open()
        content = {"change": change, "server": server, "weight": weight}
        found = await self._caller.post("/v1/members", content, self._seconds(timeout))
        return int(found["position"])

    async def verify(self, *, timeout: float | None = None) -> Verified:
        """Compare the tables of all servers that this client was given, at one place in the order."""
        self._check_open()
        seconds = self._seconds(timeout)
        position = int((await self._caller.post("/v1/mark", {"timeout": seconds}, seconds))["position"])
        said = await self._caller.each("/v1/digests", {"position": position}, seconds)
        members = await self.members()
        return verified(position, said, list(members["servers"]))

    async def backup(self, target: Path) -> int:
        """Write all that has a place into a new SQLite file; returns its position."""
        self._check_open()
        if target.exists():
            raise RequestError(f"{target}: there is a file already")
        answer = await self._caller.download("/v1/backup", self._timeout)
        part = target.with_name(target.name + ".part")
        try:
            with part.open("wb") as file:
                async for piece in answer.aiter_bytes():
                    file.write(piece)
            part.rename(target)
        finally:
            await answer.aclose()
            part.unlink(missing_ok=True)
        return int(answer.headers["X-Semcast-Position"])

    async def restore(
        self, source: Path, *, replace: bool = False, timeout: float = RESTORE_TIMEOUT
    ) -> SqlResult:
        """Put the tables of a SQLite file, a backup or any other, in the place of all that are there.

        It happens at every server, at one place in the order, or not at all. One server is sent the file, and
        no other is asked where that fails: `PendingError` means that nobody knows whether it happened.

        Args:
            source: the file.
            replace: allow it although the database has tables, which are lost.
            timeout: seconds.
        """
        self._check_open()
        with TemporaryDirectory(prefix="semcast-restore-") as folder:
            copy = Path(folder) / "copy.sqlite"
            await asyncio.to_thread(prepared, source, copy)
            path = f"/v1/restore?replace={str(replace).lower()}&timeout={_seconds(timeout)}"
            with copy.open("rb") as file:
                try:
                    found = await self._caller.upload(path, file, SQLITE, timeout)
                except TimeoutError as error:
                    raise PendingError(f"restore: {error}", 0) from error
        done = _result(found)
        self._position = max(self._position, done.position)
        return done

    def _seconds(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else _seconds(timeout)

    def _check_open(self) -> None:
        if self._closed:
            raise GroupClosedError(f"the connection to {self.name} is closed")


def _result(found: Content) -> ServedResult:
    return ServedResult(
        found["position"],
        found.get("changes", 0),
        found.get("last_rowid", 0),
        tuple(found.get("columns", ())),
        tuple([row_from_json(row) for row in found.get("rows", ())]),
        found.get("truncated", False),
    )


def _seconds(timeout: float) -> float:
    if not timeout > 0:
        raise RequestError(f"timeout {timeout!r}: seconds, more than 0")
    return float(timeout)


def _statement(given: Step) -> object:
    if isinstance(given, str):
        return given
    sql, params = (given.sql, given.parameters) if isinstance(given, Statement) else given
    return [sql, row_to_json(params)]
