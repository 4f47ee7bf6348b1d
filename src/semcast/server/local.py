"""A database in this process, in the shape that the server needs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from semcast.engine import Database
from semcast.engine.database import SqlAnswer, SqlReceipt
from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.engine.results import SqlResult
from semcast.group.errors import GroupError
from semcast.sql.actions import Expectation, Statement, Value


class LocalDatabase:
    """A server of a database, for clients elsewhere.

    Args:
        database: open already.
    """

    def __init__(self, database: Database) -> None:
        self.name = database.replica.name
        self._database = database
        self._closed = False

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        expect: Sequence[Expectation] = (),
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: str = "",
        timeout: float | None = None,
    ) -> SqlResult | SqlReceipt:
        """Do statements together or not at all."""
        return await self._database.transaction(
            statements,
            expect=[(each.sql, each.parameters, each.rows) for each in expect],  # type: ignore[misc]
            level=level,
            client=client,
            number=number,
            floor=floor,
            seen=seen,
            timeout=timeout,
        )

    async def query(
        self,
        sql: str,
        params: Sequence[Value] = (),
        *,
        level: ReadLevel = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> SqlAnswer:
        """Answer a query."""
        return await self._database.query(sql, params, level=level, position=position, timeout=timeout)

    def status(self) -> Mapping[str, object]:
        """How this server is."""
        found: dict[str, object] = msgspec.to_builtins(self._database.status())
        return found

    async def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """Let a server in that waits for it."""
        return await self._database.replica.add(server, weight=weight, timeout=timeout)

    async def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        """Put a server out for good."""
        return await self._database.replica.remove(server, timeout=timeout)

    async def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """Let a server count for so much in a quorum."""
        return await self._database.replica.weigh(server, weight, timeout=timeout)

    async def mark(self, *, timeout: float | None = None) -> int:
        """Have every server make digests of its tables at one place in the order; returns that place."""
        return await self._database.mark(timeout=timeout)

    async def digests(self, position: int, *, timeout: float | None = None) -> Mapping[str, str]:
        """Of each table here, at a place that was marked."""
        return await self._database.digests(position, timeout=timeout)

    async def backup(self, target: Path) -> int:
        """Write all that is green into a new SQLite file; returns its position."""
        return await self._database.backup(target)

    async def restore(
        self, source: Path, *, replace: bool = False, timeout: float | None = None
    ) -> SqlResult:
        """Put the tables of a SQLite file in the place of all that are here, at every server."""
        return await self._database.restore(source, replace=replace, timeout=timeout)

    @property
    def over(self) -> str:
        """Why this server has ended by itself, if it has: it cannot go on, or it was removed."""
        if self._closed:
            return ""
        try:
            return "it has stopped" if self._database.replica.group.is_over() else ""
        except GroupError as error:
            return str(error)

    async def close(self) -> None:
        """Stop."""
        if not self._closed:
            self._closed = True
            await self._database.close()
