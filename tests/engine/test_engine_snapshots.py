"""Snapshots, live: logs stay short, and who comes late is given a state instead of all actions."""

import asyncio
from pathlib import Path

from tests.engine.services import Counter
from tests.engine.test_engine import NAMES, play, server, total

import semcast
from semcast.replication.stack import Replication

SHORT = {"trim_every": 50, "retention": 20}


def start_of(replica: semcast.Replica) -> int:
    stack = replica.group.stack
    assert isinstance(stack, Replication)
    return stack.books.colours.start


async def until_trimmed(*replicas: semcast.Replica, beyond: int = 0) -> None:
    while min(map(start_of, replicas)) <= beyond:
        await asyncio.sleep(0.01)


async def add(replica: semcast.Replica, count: int) -> None:
    for _ in range(count):
        await replica.update(b"1")


def test_a_log_is_trimmed_and_the_service_is_there_again_after_a_restart_of_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        servers = [server(tmp_path, name, **SHORT) for name in NAMES]
        await asyncio.gather(*servers)
        once = await servers[0].update(b"5", client="till", number=1)
        await add(servers[0], 120)
        await until_trimmed(*servers, beyond=40)
        await asyncio.gather(*(each.close() for each in servers))

        services = [Counter() for _ in NAMES]
        servers = [
            server(tmp_path, name, service=service, **SHORT)
            for name, service in zip(NAMES, services, strict=True)
        ]
        await asyncio.gather(*servers)
        assert [service.total for service in services] == [125] * 3
        assert all(map(start_of, servers))
        assert await servers[1].update(b"5", client="till", number=1) == once, "outcomes are in the snapshot"
        assert await total(servers[2], level="linear") == 125
        await asyncio.gather(*(each.close() for each in servers))

    play(scenario)


def test_who_was_away_for_long_and_who_is_new_are_given_snapshots(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = (server(tmp_path, name, **SHORT) for name in NAMES)
        await asyncio.gather(a, b, c)
        await a.update(b"5", client="till", number=1)
        await c.close()
        await add(a, 200)
        await until_trimmed(a, b, beyond=100)
        late = Counter()
        c = await server(tmp_path, "c", service=late, **SHORT)
        assert late.total == 205
        assert start_of(c) > 100, "it was not given all actions"
        assert (await c.update(b"5", client="till", number=1)).position == 1

        new = Counter()
        d = server(tmp_path, "d", founders=(), newcomer=True, service=new, **SHORT)
        entering = asyncio.ensure_future(d.__aenter__())
        while "d" not in a.status().strangers:
            await asyncio.sleep(0.01)
        await a.add("d")
        await entering
        assert new.total == 205
        assert (await d.update(b"1")).result == b"206"
        assert (await d.update(b"5", client="till", number=1)).position == 1
        await asyncio.gather(*(each.close() for each in (a, b, c, d)))

    play(scenario)
