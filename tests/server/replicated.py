"""SQL as a service of the engine, in the shape that the server needs: everything but speed, for tests."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.server.standin import Done, Found

import semcast
from semcast.server.interface import Receipt
from semcast.sql import SqlAction, SqliteStore, Statement
from semcast.sql.actions import Expectation, Value, decode_outcome, encode
from semcast.sql.refusals import check
from semcast.sql.snapshot import take
from semcast.sql.store import Ordered


class SqlService:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = SqliteStore(self.folder / "db")

    def apply(self, action: bytes, context: semcast.Context) -> bytes:
        (outcome,) = self.store.apply([Ordered(action, context.stamp, context.seed)])
        if outcome.error:
            raise semcast.ActionError(outcome.error)
        return encode(outcome)

    def query(self, question: bytes) -> bytes:
        sql, params = msgspec.msgpack.decode(question)
        return msgspec.msgpack.encode(self.store.weak(sql, params))

    def snapshot(self) -> bytes:
        copy = self.folder / "copy"
        take(self.store.path, copy)
        state = copy.read_bytes()
        copy.unlink()
        return state

    def restore(self, state: bytes) -> None:
        self.close()
        self.__init__()  # type: ignore[misc]
        self.store.close()
        (self.folder / "db").write_bytes(state)
        self.store = SqliteStore(self.folder / "db")

    def fork(self) -> "SqlService":
        made = SqlService()
        made.restore(self.snapshot())
        return made

    def close(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class Promised:
    def __init__(self, receipt: semcast.Receipt) -> None:
        self._receipt = receipt

    async def ordered(self) -> Done:
        return _done(await self._receipt.ordered())


def _done(outcome: semcast.Outcome) -> Done:
    found = decode_outcome(outcome.result)
    return Done(outcome.position, found.changes, found.last_rowid, found.columns, found.rows)


class ReplicatedDatabase:
    def __init__(self, replica: semcast.Replica, service: SqlService) -> None:
        self._replica = replica
        self._service = service
        self.name = replica.name

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        expect: Sequence[Expectation] = (),
        **options: Any,
    ) -> Done | Receipt:
        for each in statements:
            check(each.sql)
        action = encode(SqlAction(tuple(statements), tuple(expect)))
        done = await self._replica.update(action, **options)
        return _done(done) if isinstance(done, semcast.Outcome) else Promised(done)

    async def query(self, sql: str, params: Sequence[Value] = (), **options: Any) -> Found:
        answer = await self._replica.query(msgspec.msgpack.encode((sql, params)), **options)
        columns, rows = msgspec.msgpack.decode(answer.result)
        return Found(answer.position, columns, [tuple(row) for row in rows], answer.seen)

    def status(self) -> Mapping[str, object]:
        found: dict[str, object] = msgspec.to_builtins(self._replica.status())
        return found

    async def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        return await self._replica.add(server, weight=weight, timeout=timeout)

    async def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        return await self._replica.remove(server, timeout=timeout)

    async def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        return await self._replica.weigh(server, weight, timeout=timeout)

    async def backup(self, target: Path) -> int:
        return take(self._service.store.path, target)

    async def close(self) -> None:
        if self._service.folder.exists():
            await self._replica.close()
            self._service.close()


async def database(group: str, **settings: Any) -> ReplicatedDatabase:
    service = SqlService()
    return ReplicatedDatabase(await semcast.replicate(group, service, **settings), service)
