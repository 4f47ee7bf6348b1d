"""A database of one server, for tests of what stands around a database: everything is green at once."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from semcast.engine import ActionError
from semcast.server.interface import Receipt
from semcast.sql import SqlAction, SqliteStore, Statement
from semcast.sql.actions import Expectation, Restore, Row, Stage, Value, encode
from semcast.sql.digest import digests
from semcast.sql.refusals import check
from semcast.sql.restoring import digest_of, pieces_of
from semcast.sql.snapshot import take
from semcast.sql.store import Ordered


class Done(NamedTuple):
    position: int
    changes: int
    last_rowid: int
    columns: Sequence[str]
    rows: Sequence[Row]


class Found(NamedTuple):
    position: int
    columns: Sequence[str]
    rows: Sequence[Row]
    seen: str = ""


class Later:
    def __init__(self, done: Done) -> None:
        self._done = done

    async def ordered(self) -> Done:
        return self._done


class StandIn:
    name = "standin"

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)
        self.primary = asyncio.Event()
        self.primary.set()
        self.server = "a/1"
        self.servers = {"a": 1}
        self.asked: list[Mapping[str, object]] = []
        self._done: dict[tuple[str, int], Done] = {}

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        expect: Sequence[Expectation] = (),
        level: str = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: str = "",
        timeout: float | None = None,
    ) -> Done | Receipt:
        self.asked.append({"client": client, "number": number, "floor": floor, "seen": seen, "level": level})
        for each in statements:
            check(each.sql)
        if level == "strict":
            async with asyncio.timeout(timeout):
                await self.primary.wait()
        done = self._done.get((client, number)) if client else None
        if done is None:
            body = encode(SqlAction(tuple(statements), tuple(expect)))
            (outcome,) = self.store.apply([Ordered(body, 1000, 7)])
            if outcome.error:
                raise ActionError(outcome.error)
            done = Done(
                self.store.position, outcome.changes, outcome.last_rowid, outcome.columns, outcome.rows
            )
            self._done[client, number] = done
        return done if level == "strict" else Later(done)

    async def query(
        self,
        sql: str,
        params: Sequence[Value] = (),
        *,
        level: str = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> Found:
        if level in ("linear", "session"):
            async with asyncio.timeout(timeout):
                await self.primary.wait()
        answer = self.store.weak(sql, params)
        return Found(self.store.position, answer.columns, answer.rows, "x" if level == "dirty" else "")

    def status(self) -> Mapping[str, object]:
        return {
            "server": self.server,
            "state": "reg-prim",
            "primary": self.primary.is_set(),
            "position": self.store.position,
            "view": ["a"],
            "servers": self.servers,
            "strangers": [],
        }

    async def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        self.servers[server] = weight
        return self.store.position

    async def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        del self.servers[server]
        return self.store.position

    async def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        self.servers[server] = weight
        return self.store.position

    async def backup(self, target: Path) -> int:
        return take(self.store.path, target)

    async def restore(self, source: Path, *, replace: bool = False, timeout: float | None = None) -> Done:
        def applied(deed: Stage | Restore) -> Done:
            (outcome,) = self.store.apply([Ordered(encode(SqlAction((), (), deed)), 1000, 7)])
            if outcome.error:
                raise ActionError(outcome.error)
            return Done(self.store.position, outcome.changes, 0, outcome.columns, outcome.rows)

        pieces = list(pieces_of(source))
        for number, piece in enumerate(pieces):
            applied(Stage("upload", number, piece))
        return applied(Restore("upload", len(pieces), digest_of(source), replace))

    async def mark(self, *, timeout: float | None = None) -> int:
        return self.store.position

    async def digests(self, position: int, *, timeout: float | None = None) -> Mapping[str, str]:
        return {name: found.hex() for name, found in digests(self.store.reader()).items()}
