"""Logs, domains and databases in virtual time: ordinary programs that use them, and what a world refuses."""

import asyncio
from functools import partial
from itertools import count
from random import Random

import pytest

import semcast
from semcast import blocking
from semcast.testing import Program, World, swarm, trouble
from semcast.testing.process import Process

FOUNDERS = ["a", "b", "c"]


async def logger() -> None:
    async with semcast.join("orders", stack="gossip", name="log", logger=True, receive=False, data="store"):
        await asyncio.Event().wait()


async def shop(orders: int) -> None:
    async with semcast.join("orders", stack="gossip", name="shop", receive=False) as group:
        for number in range(orders):
            await group.send(b"%d" % number, logged=True)
            await asyncio.sleep(0.2)


async def warehouse(packed: list[int], orders: int) -> None:
    async with semcast.subscribe("orders", durable="warehouse", start="all", ack="explicit") as subscription:
        async for batch in subscription:
            packed += [int(message.payload) for message in batch]
            await batch.ack()
            if packed[-1] == orders - 1:
                return


@swarm(seeds=6, hosts=["log", "shop", "warehouse"], loss=0.02)
def test_a_subscriber_that_is_killed_goes_on_where_it_was(world: World) -> None:
    packed: list[int] = []
    world.start("log", logger)
    world.start("shop", shop, 40)
    world.start("warehouse", warehouse, packed, 40)
    world.sleep(3)
    world.crash("warehouse")
    world.sleep(world.rng.uniform(0.1, 3))
    last = world.restart("warehouse")
    world.crash("log")
    world.sleep(1)
    world.restart("log")
    world.wait(last, timeout=120)
    assert sorted(set(packed)) == list(range(40)), (
        "none is lost; one that was not acknowledged may come twice"
    )
    world.check()


def logged(seed: int) -> list[str]:
    """All that happens where a shop's orders are logged, and logger and warehouse crash."""
    world = World(seed=seed, hosts=["log", "shop", "warehouse"], loss=0.02, jitter=0.001)
    packed: list[int] = []
    world.start("log", logger)
    world.start("shop", shop, 20)
    world.start("warehouse", warehouse, packed, 20)
    world.sleep(2)
    for host in ("warehouse", "log"):
        world.crash(host)
        world.sleep(0.5)
        world.restart(host)
    trouble(world, 5, ["loss", "pause"])
    world.sleep(20)
    world.check()
    return [*world.trace(), str(packed)]


def test_with_loggers_one_seed_is_one_run_and_another_seed_another() -> None:
    first = logged(21)
    assert len(first) > 20
    assert logged(21) == first
    assert logged(22) != first


def test_chance_from_elsewhere_would_be_seen_with_loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()  # goes on from one run to the next
    monkeypatch.setattr(Process, "chance", lambda _process: Random(next(numbers)))
    assert logged(21) != logged(21)


@swarm(seeds=4)
def test_programs_of_a_domain_read_one_order(world: World) -> None:
    async def program(name: str) -> list[bytes]:
        read: list[bytes] = []
        async with semcast.domain("floor", name=name) as floor:
            for group in ("quotes", "orders"):
                await floor.join(group)
            await asyncio.sleep(5)
            for number in range(10):
                await floor.send("quotes" if number % 2 else "orders", b"%s %d" % (name.encode(), number))
            async for _, event in floor:
                if isinstance(event, semcast.Message):
                    read.append(event.payload)
                    if len(read) == 30:
                        break
            await asyncio.sleep(1)
        return read

    started = [world.start(host, program, host) for host in world.hosts]
    world.wait(timeout=120)
    reads = [process.result() for process in started]
    assert reads[0] == reads[1] == reads[2]
    world.check()


async def bank(name: str, updates: int) -> tuple[list[tuple[object, ...]], str]:
    async with semcast.database("bank", name=name, founders=FOUNDERS, data="store") as database:
        session = database.session()
        await session.execute("create table if not exists entries (id integer primary key, what text)")
        for number in range(updates):
            await session.execute("insert into entries (what) values (?)", (f"{name} {number}",))
            await asyncio.sleep(0.5)
        await asyncio.sleep(60)
        return database.weak("select what from entries order by id"), database.digest()


@swarm(seeds=4)
def test_servers_of_a_database_end_with_the_same_tables(world: World) -> None:
    started = [world.start(host, bank, host, 10) for host in world.hosts]
    trouble(world, 8)
    left = [each for each in started if not each.crashed]
    left += [each for each in world.processes if each not in left]
    world.wait(timeout=300)
    (rows, first), *others = [process.result() for process in left]
    assert rows
    assert {digest for _, digest in others} == {first}
    world.check()


def test_a_database_in_virtual_time_is_the_same_for_the_same_seed() -> None:
    def trace() -> list[str]:
        with World(seed=7, hosts=FOUNDERS) as world:
            for host in world.hosts:
                world.start(host, bank, host, 5)
            trouble(world, 6)
            world.wait(timeout=300)
            return world.trace()

    assert trace() == trace()


def test_digests_are_made_without_a_thread() -> None:
    async def server() -> object:
        async with semcast.database("one", name="a", founders=["a"], data="store") as database:
            await database.execute("create table t (a integer primary key)")
            return await database.digests(await database.mark())

    with World(hosts=1) as world:
        assert list(world.run(server)) == ["t", "(schema)"]


def test_a_server_that_crashes_within_a_transaction_leaves_no_lock() -> None:
    """A dirty read of what is not ordered yet keeps a transaction open in SQLite."""

    async def server(name: str, *, waits: bool) -> list[tuple[object, ...]]:
        async with semcast.database("locked", name=name, founders=FOUNDERS, data="store") as database:
            if name == "a" and waits:
                await database.execute("create table t (a integer primary key)")
                await asyncio.sleep(5)  # by now the others are cut off
                await database.execute("insert into t values (1)", level="queued")
                await database.query("select * from t", level="dirty")
                await asyncio.sleep(60)
            await asyncio.sleep(30)
            return database.weak("select * from t")

    with World(seed=3, hosts=FOUNDERS) as world:
        for host in world.hosts:
            world.start(host, partial(server, waits=True), host)
        world.sleep(3)
        world.partition({"a"})
        world.sleep(10)
        world.heal()
        again = world.restart("a", partial(server, waits=False), "a")
        world.wait(again, timeout=120)
        assert again.result() == [(1,)]


async def _connects() -> None:
    async with semcast.connect():
        pass


async def _serves_metrics() -> None:
    async with semcast.join("g", metrics="127.0.0.1:9100"):
        pass


async def _asks_a_server() -> None:
    async with semcast.database("bank", servers=["a:4001"]) as database:
        await database.query("select 1")


async def _blocks() -> None:
    with blocking.database("bank", name="a", founders=["a"], data="store"):
        pass


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (_connects, "no daemons: semcast.domain gives a program the same Domain"),
        (_serves_metrics, "no TCP servers: leave out metrics="),
        (_asks_a_server, "TCP connections: run a server of the database with data="),
        (_blocks, "needs threads, and a simulated world has none"),
    ],
)
def test_what_a_world_does_not_have_is_refused(program: Program, says: str) -> None:
    with World(hosts=1) as world, pytest.raises(Exception, match=says):
        world.run(program)
