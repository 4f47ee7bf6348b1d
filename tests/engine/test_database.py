"""A replicated SQLite database in process: levels, refusals, restarts, a short log, a newcomer."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_engine import NAMES, play
from tests.engine.test_engine_snapshots import start_of

import semcast
import semcast.blocking
from semcast.engine import SqlReceipt, SqlResult
from semcast.engine.blocking_database import BlockingDatabase, BlockingSqlReceipt
from semcast.sql import DatabaseError, StatementError

BANK = f"bank {os.getpid()}"


def server(folder: Path, name: str, **given: Any) -> semcast.Database:
    settings = {"founders": NAMES, "data": str(folder), "name": name, **given}
    return semcast.database(BANK, servers=None, **settings)


async def three(folder: Path, **given: Any) -> list[semcast.Database]:
    servers = [server(folder, name, **given) for name in NAMES]
    return list(await asyncio.gather(*servers))


async def close(*servers: semcast.Database) -> None:
    await asyncio.gather(*(each.close() for each in servers))


async def equal(*servers: semcast.Database) -> None:
    """All have come equally far, and have the same tables."""
    for each in servers:
        await each.query("select 1", level="linear")
    while len({each.status().position for each in servers}) > 1:
        await asyncio.sleep(0.01)
    assert len({each.digest() for each in servers}) == 1


def test_statements_and_queries_of_all_levels(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = await three(tmp_path)
        await a.execute("create table accounts (id integer primary key, balance, at)")
        made = await a.execute("insert into accounts (balance) values (?) returning id, balance", (10,))
        assert isinstance(made, SqlResult)
        assert (made.changes, made.rows) == (1, ((1, 10),))
        done = await b.transaction(
            [
                ("update accounts set balance = balance - ? where id = ?", (4, 1)),
                "select balance from accounts",
            ],
            expect=[("select balance from accounts where id = ?", (1,), [(10,)])],
        )
        assert isinstance(done, SqlResult)
        assert done.rows == ((6,),)
        with pytest.raises(semcast.ActionError, match="expectation failed"):
            await b.transaction(
                ["delete from accounts"], expect=[("select balance from accounts", (), [(10,)])]
            )
        with pytest.raises(semcast.ActionError, match="UNIQUE constraint failed"):
            await c.execute("insert into accounts (id) values (1)")
        receipt = await c.execute("insert into accounts (balance) values (random())", level="queued")
        assert isinstance(receipt, SqlReceipt)
        assert (await receipt.ordered()).last_rowid == 2
        await c.put("accounts", {"id": 3}, {"balance": 7}, at=5)
        early = await a.put("accounts", {"id": 3}, {"balance": 8}, at=4)
        assert isinstance(early, SqlReceipt)
        await early.ordered()
        added = await b.add("accounts", {"id": 3}, "balance", 1)
        assert isinstance(added, SqlReceipt)
        await added.ordered()
        for level in ("linear", "session", "weak", "dirty"):
            answer = await b.query("select balance from accounts where id = 3", level=level)
            assert answer.rows == [(8,)], level
            assert answer.columns == ("balance",)
        assert b.weak("select count(*) from accounts") == [(3,)]
        await equal(a, b, c)
        assert await a.backup(tmp_path / "copy.db") == a.status().position
        await close(a, b, c)

    play(scenario)


def test_a_minority_shows_red_to_dirty_reads_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = await three(tmp_path)
        await a.execute("create table stock (part primary key, count)")
        await equal(a, b, c)
        await close(a, b)
        while c.status().primary:
            await asyncio.sleep(0.01)
        await c.add("stock", {"part": "bolt"}, "count", 3)
        await c.add("stock", {"part": "bolt"}, "count", -1)
        dirty = await c.query("select count from stock", level="dirty")
        assert dirty.rows == [(2,)]
        assert (await c.query("select count from stock", level="weak")).rows == []
        a, b = await asyncio.gather(server(tmp_path, "a"), server(tmp_path, "b"))
        await equal(a, b, c)
        assert a.weak("select count from stock") == [(2,)]
        await close(a, b, c)

    play(scenario)


def test_requests_are_done_once_also_after_a_restart_of_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        servers = await three(tmp_path)
        session = servers[0].session(client="till")
        await session.execute("create table t (v)")
        first = await session.execute("insert into t values (1) returning v")
        assert (await session.query("select count(*) from t")).rows == [(1,)]
        token = session.token
        await close(*servers)
        servers = await three(tmp_path)
        again = servers[1].session(token=token)
        assert await again.execute("insert into t values (1) returning v", number=2) == first
        assert (await again.query("select count(*) from t", level="linear")).rows == [(1,)]
        await equal(*servers)
        await close(*servers)

    play(scenario)


@pytest.mark.parametrize("durability", ["disk", "memory"])
def test_the_log_is_short_and_who_comes_late_gets_the_file(tmp_path: Path, durability: str) -> None:
    given = {"trim_every": 50, "retention": 20, "durability": durability}

    async def scenario() -> None:
        a, b, c = await three(tmp_path, **given)
        await a.execute("create table t (id integer primary key, v)")
        await c.close()
        for number in range(200):
            await a.execute("insert into t (v) values (?)", (number,))
        while min(start_of(a.replica), start_of(b.replica)) <= 100:
            await asyncio.sleep(0.05)
        c = await server(tmp_path, "c", **given)
        assert start_of(c.replica) > 100
        assert c.weak("select count(*) from t") == [(200,)]
        await equal(a, b, c)
        await close(a, b, c)
        a, b, c = await three(tmp_path, **given)
        assert a.weak("select count(*) from t") == [(200,)]
        await equal(a, b, c)
        await close(a, b, c)

    play(scenario)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda db: db.execute("delete from t limit 1"), StatementError, "LIMIT without ORDER BY"),
        (lambda db: db.execute("attach 'x' as y"), semcast.ActionError, "refused"),
        (lambda db: db.execute("vacuum"), semcast.ActionError, "VACUUM"),
        (lambda db: db.execute("nonsense"), semcast.ActionError, "syntax error"),
        (lambda db: db.execute(5), TypeError, "sql of type int"),
        (lambda db: db.execute("select ?", "x"), TypeError, "parameters of type str"),
        (lambda db: db.execute("select ?", (object(),)), TypeError, "a parameter of type object"),
        (lambda db: db.execute("select ?", (1 << 70,)), StatementError, "parameters: can.t serialize"),
        (lambda db: db.transaction([]), semcast.RequestError, "steps"),
        (lambda db: db.transaction("select 1"), semcast.RequestError, "steps"),
        (lambda db: db.execute("select 1", level="fast"), semcast.RequestError, "level 'fast'"),
        (lambda db: db.query("select 1", level="fast"), semcast.RequestError, "level 'fast'"),
        (lambda db: db.query("nonsense"), StatementError, "syntax error"),
        (lambda db: db.query("nonsense", level="linear"), StatementError, "syntax error"),
        (lambda db: db.query("delete from t"), StatementError, "only queries"),
        (lambda db: db.put("t", {}, {}, at=1), StatementError, "key: at least one column"),
    ],
)
def test_what_makes_no_sense_is_refused_and_the_server_goes_on(
    tmp_path: Path, ask: Callable[[Any], Awaitable[Any]], error: Any, words: str
) -> None:
    async def scenario() -> None:
        async with server(tmp_path, "a", founders=["a"]) as db:
            await db.execute("create table t (v)")
            with pytest.raises(error, match=words):
                await ask(db)
            assert (await db.query("select count(*) from t", level="linear")).rows == [(0,)]

    play(scenario)


def test_a_file_that_is_no_database_is_named_and_the_folder_is_let_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        await (await server(tmp_path, "a", founders=["a"])).close()
        [path] = tmp_path.glob("*/a/database.sqlite")
        for each in path.parent.glob("database.sqlite*"):
            each.unlink()
        path.write_bytes(b"this is no database at all" * 100)
        for _ in range(2):
            with pytest.raises(DatabaseError, match=r"database\.sqlite"):
                server(tmp_path, "a", founders=["a"])

    play(scenario)


def test_tables_are_compared_at_one_place_and_who_differs_is_found(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = await three(tmp_path)
        await a.execute("create table t (v)")
        await a.execute("create table u (v)")
        await a.execute("insert into t values (cast(x'ff' as text))")  # no text that could be shown
        writing = asyncio.gather(*(b.execute("insert into u values (?)", (each,)) for each in range(200)))
        position = await c.mark()
        await writing
        found = [await each.digests(position) for each in (a, b, c)]
        assert found[0] == found[1] == found[2]
        assert set(found[0]) == {"t", "u", "(schema)"}
        with pytest.raises(semcast.RequestError, match="nobody marked it"):
            await a.digests(1)
        await close(a, b, c)
        path = next(tmp_path.glob("*/c/database.sqlite"))
        with sqlite3.connect(path) as damaged:
            damaged.execute("delete from t")
        damaged.close()
        a, b, c = await three(tmp_path)
        position = await a.mark()
        found = [await each.digests(position) for each in (a, b, c)]
        assert found[0] == found[1]
        assert {name for name in found[0] if found[0][name] != found[2][name]} == {"t"}
        await close(a, b, c)

    play(scenario)


def test_a_backup_is_restored_at_all_servers_at_one_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = await three(tmp_path)
        await a.execute("create table t (id integer primary key, v)")
        for number in range(20):
            await a.execute("insert into t (v) values (?)", (bytes(10_000) + bytes([number]),))
        await a.backup(tmp_path / "backup.db")
        await b.execute("delete from t")
        with pytest.raises(semcast.ActionError, match="the database is not empty, it has t"):
            await b.restore(tmp_path / "backup.db")
        with pytest.raises(StatementError, match="there is no such file"):
            await b.restore(tmp_path / "nowhere.db")
        done, _ = await asyncio.gather(
            c.restore(tmp_path / "backup.db", replace=True),
            a.execute("create table late (a)", level="queued"),
        )
        assert (done.changes, done.rows) == (20, (("t", 20),))
        await equal(a, b, c)
        await close(a, b, c)
        a, b, c = await three(tmp_path)  # and it is in the log like any other action
        await equal(a, b, c)
        assert a.weak("select count(*) from t") == [(20,)]
        await close(a, b, c)

    play(scenario)


def test_a_server_for_programs_without_asyncio(tmp_path: Path) -> None:
    def opened(**given: Any) -> BlockingDatabase:
        settings = {"name": "a", "founders": ["a"], "data": str(tmp_path / "data"), **given}
        return semcast.blocking.database(f"blocking {BANK}", servers=None, **settings)

    with opened() as db:
        made = db.execute("create table t (id integer primary key, v, at)")
        assert isinstance(made, SqlResult)
        session = db.session(client="till")
        assert isinstance(session.execute("insert into t (v) values (?)", (1,)), SqlResult)
        assert session.query("select v from t").rows == [(1,)]
        kept = db.execute("insert into t (v) values (2)", level="queued")
        assert isinstance(kept, BlockingSqlReceipt)
        assert kept.ordered().last_rowid == 2
        late = db.put("t", {"id": 3}, {"v": 5}, at=1)
        assert isinstance(late, BlockingSqlReceipt)
        late.ordered()
        with pytest.raises(semcast.ActionError, match="UNIQUE"):
            db.execute("insert into t (id) values (1)")
        done = db.transaction(["delete from t where id = 3"], expect=[("select count(*) from t", (), [(3,)])])
        assert isinstance(done, SqlResult)
        found: list[object] = []
        others = [
            threading.Thread(target=lambda: found.extend(db.weak("select count(*) from t"))) for _ in "ab"
        ]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        assert found == [(2,), (2,)]
        assert db.digests(db.mark()).keys() == {"t", "(schema)"}
        assert db.backup(tmp_path / "copy.db") == db.status().position
        assert db.restore(tmp_path / "copy.db", replace=True).rows == (("t", 2),)
        assert db.status().primary
        with pytest.raises(semcast.ConfigurationError, match="in use by process"):
            opened().__enter__()
    with pytest.raises(semcast.GroupClosedError, match="is not open"):
        db.execute("delete from t")
    with opened() as db:
        assert db.query("select count(*) from t", level="linear").rows == [(2,)]
        with pytest.raises(semcast.GroupError, match="was entered before"):
            db.__enter__()


def test_a_long_query_holds_up_nobody(tmp_path: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

    async def scenario() -> None:
        servers = await three(tmp_path)
        a, b, _ = servers
        await a.execute("create table t (v)")
        views = [each.replica.group.stack.view().id for each in servers]
        waiting = [
            asyncio.create_task(a.query(endless, level=level, timeout=2.5)) for level in ("weak", "linear")
        ]
        longest, done = 0.0, 0
        while not all(task.done() for task in waiting):
            begun = time.monotonic()
            await b.execute("insert into t values (?)", (done,))
            longest, done = max(longest, time.monotonic() - begun), done + 1
        for task in waiting:
            with pytest.raises(TimeoutError):
                task.result()
        assert done > 5
        assert longest < 2.0
        given_up = asyncio.create_task(a.query(endless, level="weak"))
        await asyncio.sleep(0.1)
        given_up.cancel()
        assert (await a.query("select count(*) from t", level="session")).rows == [(done,)]
        await equal(*servers)
        assert [each.replica.group.stack.view().id for each in servers] == views
        asking = asyncio.create_task(a.query(endless, level="weak"))
        await asyncio.sleep(0.1)
        await close(*servers)
        with pytest.raises(semcast.GroupClosedError):
            await asking

    play(scenario)
