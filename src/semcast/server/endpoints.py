"""The requests of our own clients: `/v1/...`."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from starlette.requests import Request
from starlette.responses import Response

from semcast.server.answers import answer_response, bounded, members_json, outcome_response
from semcast.server.backups import BackupResponse
from semcast.server.bodies import keep_file, read_body
from semcast.server.interface import Database
from semcast.server.limits import Limits
from semcast.server.messages import (
    Change,
    Execute,
    Marked,
    Marking,
    Numbered,
    Query,
    Restoring,
    Transaction,
    expectations,
    read,
    read_query,
    statements,
    values,
)
from semcast.server.problems import busy, malformed
from semcast.server.waiting import answered, read_level, update_level, updated
from semcast.sql.actions import Expectation, Statement


class Endpoints:
    """What clients may ask of a database.

    Args:
        database: that is served.
        limits: of what they may ask for.
    """

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        self._backups = 0
        self._restores = False
        self._waiting = 0

    async def execute(self, request: Request) -> Response:
        """Do one statement."""
        asked = read(await read_body(request, self._limits), Execute)
        return await self._update(asked, [Statement(asked.sql, values(asked.params))], ())

    async def transaction(self, request: Request) -> Response:
        """Do statements together."""
        asked = read(await read_body(request, self._limits), Transaction)
        most = self._limits.statements
        return await self._update(asked, statements(asked.statements, most), expectations(asked.expect, most))

    async def _update(
        self, asked: Numbered, given: Sequence[Statement], expect: Sequence[Expectation]
    ) -> Response:
        level, seconds = update_level(asked.level), self._seconds(asked.timeout)
        identity = asked.identity()
        with self._room(needed=level == "strict"):
            work = self._database.transaction(given, expect=expect, level=level, timeout=seconds, **identity)
            return outcome_response(await updated(work, seconds), self._limits)

    async def query(self, request: Request) -> Response:
        """Answer a query."""
        asked = read(await read_body(request, self._limits), Query)
        level, seconds = read_level(asked.level), self._seconds(asked.timeout)
        parameters, position = values(asked.params), asked.position
        with self._room(needed=level in ("linear", "session")):
            work = self._database.query(
                asked.sql, parameters, level=level, position=position, timeout=seconds
            )
            return answer_response(await answered(work, seconds), self._limits)

    @contextmanager
    def _room(self, *, needed: bool) -> Iterator[None]:
        """For what may have to wait for a primary: not so much of it that nothing else is answered."""
        if not needed:
            yield
            return
        if self._waiting >= self._limits.requests // 2:
            raise busy(f"{self._waiting} requests wait for a primary: weak and dirty queries need none")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def status(self, request: Request) -> Response:  # noqa: ARG002
        """How this server is."""
        return bounded({"database": self._database.name, **self._database.status()}, self._limits)

    async def members(self, request: Request) -> Response:  # noqa: ARG002
        """The servers of the database."""
        return bounded(members_json(self._database.status()), self._limits)

    async def change_members(self, request: Request) -> Response:
        """Add, remove or weigh a server."""
        asked = read(await read_body(request, self._limits), Change)
        seconds = self._seconds(asked.timeout)
        match asked.change:
            case "add":
                work = self._database.add_server(asked.server, weight=asked.weight, timeout=seconds)
            case "remove":
                work = self._database.remove_server(asked.server, timeout=seconds)
            case "weight":
                work = self._database.weigh_server(asked.server, asked.weight, timeout=seconds)
            case other:
                raise malformed(f"change: one of add, remove, weight, not {other[:40]!r}")
        position = await updated(work, seconds)
        return bounded({"position": position, **members_json(self._database.status())}, self._limits)

    async def mark(self, request: Request) -> Response:
        """Have every server make digests of its tables at one place in the order."""
        seconds = self._seconds(read(await read_body(request, self._limits), Marking).timeout)
        position = await answered(self._database.mark(timeout=seconds), seconds)
        return bounded({"position": position}, self._limits)

    async def digests(self, request: Request) -> Response:
        """Of each table here, at a place that was marked."""
        asked = read(await read_body(request, self._limits), Marked)
        seconds = self._seconds(asked.timeout)
        tables = await answered(self._database.digests(asked.position, timeout=seconds), seconds)
        server = str(self._database.status()["server"]).rpartition("/")[0]
        return bounded({"server": server, "tables": dict(tables)}, self._limits)

    async def backup(self, request: Request) -> Response:  # noqa: ARG002
        """All that is green, as a SQLite file."""
        if self._backups >= self._limits.backups:
            raise busy(f"{self._limits.backups} backups are under way already: try again later")
        self._backups += 1
        try:
            file, position = await answered(self._copied(), self._limits.timeout)
        except BaseException:
            self._backed_up()
            raise
        return BackupResponse(file, f"{self._database.name}-{position}.sqlite", position, self._backed_up)

    async def _copied(self) -> tuple[BinaryIO, int]:
        """A copy that has no name any more: it is gone as soon as it is sent, whatever happens."""
        with tempfile.TemporaryDirectory(prefix="semcast-backup-") as folder:
            path = Path(folder) / "backup.sqlite"
            position = await self._database.backup(path)
            return path.open("rb"), position

    def _backed_up(self) -> None:
        self._backups -= 1

    async def restore(self, request: Request) -> Response:
        """Put the tables of a SQLite file in the place of all that are here."""
        asked = read_query(request, Restoring)
        if self._restores:
            raise busy("another file is being restored: try again later")
        self._restores = True
        seconds = self._seconds(asked.timeout)
        try:
            with tempfile.TemporaryDirectory(prefix="semcast-restore-") as folder:
                path = Path(folder) / "upload.sqlite"
                await keep_file(request, self._limits, path)
                work = self._database.restore(path, replace=asked.replace, timeout=seconds)
                return outcome_response(await updated(work, seconds), self._limits)
        finally:
            self._restores = False

    def _seconds(self, wanted: float) -> float:
        return min(wanted, self._limits.timeout)
