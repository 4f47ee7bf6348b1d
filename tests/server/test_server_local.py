"""The server around a real database of one server: its engine, its disk, and HTTP."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

import semcast
from semcast.server.application import application
from semcast.server.client import Client
from semcast.server.limits import Limits
from semcast.server.local import LocalDatabase
from semcast.server.serving import HttpServer, ServerAddress
from semcast.server.tokens import Tokens
from semcast.sql import Statement
from semcast.sql.errors import StatementError

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def served(folder: Path, work: Callable[[Client], Coroutine[Any, Any, None]], **limits: Any) -> None:
    async def run() -> None:
        name = f"local-{token_hex(4)}"
        async with semcast.database(name, name="a", founders=["a"], data=str(folder)) as opened:
            database = LocalDatabase(opened)
            async with (
                HttpServer(
                    application(database, Tokens(None), Limits(**limits)), ServerAddress("127.0.0.1:0")
                ) as http,
                semcast.database(name, servers=[http.address]) as db,
            ):
                await work(db)

    asyncio.run(run())


def test_all_levels(tmp_path: Path) -> None:
    async def work(db: Client) -> None:
        await db.execute("create table t(id integer primary key, n, at)")
        for level in ("strict", "queued", "timestamped", "commutative"):
            await db.execute("insert into t(n) values (?)", (level,), level=level)
        for level in ("session", "linear", "weak", "dirty"):
            found = await db.query("select count(*) as many from t", level=level)
            assert (found.columns, found.rows) == (("many",), [(4,)])
        await db.put("t", {"id": 9}, {"n": "x"}, at=1)
        await db.add("t", {"id": 9}, "at", 4)
        assert (await db.query("select at from t where id = 9")).rows == [(5,)]

    served(tmp_path, work)


def test_a_long_query_holds_up_nobody_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["semcast.engine.reading"], "MAX_SECONDS", 1.5)

    async def work(db: Client) -> None:
        await db.execute("create table t(a)")
        long = [asyncio.create_task(db.query(ENDLESS, level=level)) for level in ("weak", "linear", "dirty")]
        await asyncio.sleep(0.1)
        for number in range(10):
            await db.execute("insert into t values (?)", (number,))
        assert not any(each.done() for each in long)
        for each in long:
            with pytest.raises(StatementError, match="took more than"):
                await each

    served(tmp_path, work)


def test_by_its_number_an_update_is_done_once_also_after_a_restart(tmp_path: Path) -> None:
    name = f"local-{token_hex(4)}"
    asked = {"client": "c", "number": 1, "floor": 1}

    async def once() -> tuple[object, object]:
        async with semcast.database(name, name="a", founders=["a"], data=str(tmp_path)) as opened:
            database = LocalDatabase(opened)
            statements = [Statement("insert into t values (1) returning a")]
            if not database.status()["position"]:
                await database.transaction([Statement("create table t(a)")])
            done = await database.transaction(statements, **asked)  # type: ignore[arg-type]
            return done, (await database.query("select count(*) from t")).rows

    first, again = asyncio.run(once()), asyncio.run(once())
    assert first == again
    assert first[1] == [(1,)]
