"""Actions that take long: the event loop of the program goes on, and nothing is done twice or by half."""

import asyncio
import os
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_engine import NAMES, play

import semcast
from semcast.engine.outcomes import Outcome
from semcast.engine.pacing import SLICE, Apart, Pace
from semcast.engine.service import Context
from semcast.engine.store import Done, Todo, TooSlowError
from semcast.sql import SqlAction, SqliteStore, Statement
from semcast.sql.actions import encode
from semcast.sql.digest import digest
from semcast.sql.errors import SlowActionsError, StatementError
from semcast.sql.store import Ordered

LONG = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 600000) select max(i) from n"


def ordered(sql: str) -> Ordered:
    return Ordered(encode(SqlAction((Statement(sql),))), 1000, 7)


async def ticks_during(what: Awaitable[Any]) -> int:
    """How often others may run until something is done."""
    task, ticks = asyncio.ensure_future(what), 0
    while not task.done():
        await asyncio.sleep(0)
        ticks += 1
    await task
    return ticks


def test_slices_are_as_large_as_the_time_allows() -> None:
    pace = Pace()
    first = pace.most
    pace.took(first, SLICE / 10)
    assert pace.most == 2 * first
    pace.took(pace.most, 4 * SLICE)
    assert pace.most == first
    pace.took(1, SLICE / 100)
    assert pace.most == first, "a short slice says nothing of a long one"
    while pace.most > 1:
        pace.took(pace.most, 2 * SLICE)
    pace.took(1, 2 * SLICE)
    assert pace.most == 1


class Slow:
    """A store whose actions take too long in the loop, for a while."""

    def __init__(self, slow: int) -> None:
        self.slow = slow
        self.limits: list[float | None] = []

    def apply(self, actions: list[Todo], upto: int, seconds: float | None = None) -> list[Done]:
        self.limits.append(seconds)
        if seconds is not None and self.slow:
            raise TooSlowError
        if self.slow:
            self.slow -= 1
            time.sleep(0.06)
        return [(token, None, Outcome(upto)) for _, _, token, _, _ in actions]


def test_what_is_slow_is_done_in_a_thread_until_it_is_quick() -> None:
    async def scenario() -> None:
        store, apart = Slow(2), Apart()
        todo: Todo = (b"", Context(1, 0, 0), 5, None, None)
        for position in range(1, 6):
            assert await apart.run(store, [todo], position) == [(5, None, Outcome(position))]  # type: ignore[arg-type]
        await apart.close()
        here = [limit is not None for limit in store.limits]
        assert here == [True, False, False, False, True, True], "tried once, then apart as long as it is slow"

    asyncio.run(scenario())


def test_actions_that_are_too_slow_here_are_undone_and_come_to_the_same_elsewhere(tmp_path: Path) -> None:
    one, other = SqliteStore(tmp_path / "one.db"), SqliteStore(tmp_path / "other.db")
    actions = [ordered("insert into t (v) values (1)"), ordered("insert into t (v) " + LONG)]
    for each in (one, other):
        each.apply([ordered("create table t (id integer primary key, v)")])
    with pytest.raises(SlowActionsError):
        one.apply(actions, {b"k": b"v"}, seconds=0.0)
    assert (one.position, list(one.notes())) == (1, [])
    assert one.weak("select count(*) from t").rows == [(0,)]
    assert one.apply(actions) == other.apply(actions)
    assert one.position == other.position == 3
    assert digest(one.reader()) == digest(other.reader())
    with pytest.raises(SlowActionsError):  # a statement that only reads does not undo its transaction
        one.apply([ordered("insert into t (v) values (2)"), ordered(LONG)], seconds=0.0)
    assert one.weak("select count(*) from t").rows == [(2,)]
    one.close()
    other.close()


def test_a_long_update_does_not_keep_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with semcast.database(
            f"long {os.getpid()}", name="a", founders=["a"], data=str(tmp_path)
        ) as db:
            await db.execute("create table t (v)")
            ticks = await ticks_during(db.execute("insert into t " + LONG))
            assert ticks > 1000
            assert (await db.query("select v from t")).rows == [(600000,)]

    play(scenario)


def test_a_long_dirty_query_does_not_keep_the_loop_and_close_waits_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        group = f"dirty {os.getpid()}"
        servers = [semcast.database(group, name=each, founders=NAMES, data=str(tmp_path)) for each in NAMES]
        a, b, c = await asyncio.gather(*servers)
        await a.execute("create table t (v)")
        await c.query("select 1", level="linear")
        await asyncio.gather(a.close(), b.close())
        while c.status().primary:
            await asyncio.sleep(0.01)
        await c.execute("insert into t values (1)", level="queued")
        endless = LONG.replace("600000", "600000000") + ", t"
        slow = c.query(endless, level="dirty")
        assert await ticks_during(asyncio.gather(slow, return_exceptions=True)) > 1000
        with pytest.raises(StatementError, match="took more than 1 s"):
            await c.query(endless, level="dirty")
        assert (await c.query("select v from t", level="dirty")).rows == [(1,)]
        assert (await c.query("select v from t", level="weak")).rows == []
        leaving = asyncio.ensure_future(c.query(endless, level="dirty"))
        await asyncio.sleep(0.02)
        leaving.cancel()
        await c.close()

    play(scenario)


class Sluggish:
    """A service that takes its time."""

    def __init__(self) -> None:
        self.done = 0

    def apply(self, _action: bytes, _context: semcast.Context) -> bytes:
        time.sleep(0.001)
        self.done += 1
        return b""

    def query(self, _question: bytes) -> bytes:
        return str(self.done).encode()

    def snapshot(self) -> bytes:
        return str(self.done).encode()

    def restore(self, state: bytes) -> None:
        self.done = int(state)


def test_many_actions_of_a_slow_service_are_done_in_slices(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = Sluggish()
        group = f"slow {os.getpid()}"
        async with semcast.replicate(group, service, name="a", founders=["a"], data=str(tmp_path)) as replica:
            updates = asyncio.ensure_future(replica.update_many([b"x"] * 400))
            seen = set()
            while not updates.done():
                await asyncio.sleep(0)
                seen.add(service.done)
            assert len(seen) > 5, "others ran between slices"
            assert (await replica.query(b"")).result == b"400"

    play(scenario)
