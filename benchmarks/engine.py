"""The engine: three servers of a service as processes, each with clients inside, against the ring.

On a shared machine only CPU means anything: microseconds of all three processes together for each action.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import semcast
from benchmarks.rows import Row, against

ACTIONS = int(os.environ.get("SEMCAST_BENCH_ACTIONS", "60_000"))
"""Of all servers together."""
SIZE = 64
CLIENTS, AT_ONCE = 8, 250
ONE_BY_ONE = 256
"""Clients of a server that ask for one statement at a time."""
NAMES = ("a", "b", "c")


class Service:
    """Keeps the last action."""

    def __init__(self) -> None:
        self.last = b""

    def apply(self, action: bytes, _context: semcast.Context) -> bytes:
        self.last = action
        return b""

    def query(self, _question: bytes) -> bytes:
        return self.last

    def snapshot(self) -> bytes:
        return self.last

    def restore(self, state: bytes) -> None:
        self.last = state


async def _engine(name: str, data: str, durability: str) -> None:
    given: dict[str, Any] = {"name": name, "founders": NAMES, "data": data, "durability": durability}
    async with semcast.replicate("bench", Service(), **given) as replica:
        action = bytes(SIZE)
        calls = ACTIONS // len(NAMES) // CLIENTS // AT_ONCE

        async def client() -> None:
            for _ in range(calls):
                await replica.update_many([action] * AT_ONCE)

        async with _measured() as found:
            await asyncio.gather(*(client() for _ in range(CLIENTS)))
            await replica.query(b"", position=calls * CLIENTS * AT_ONCE * len(NAMES))
        await _report({**found, "count": calls * CLIENTS * AT_ONCE * len(NAMES)})


async def _sql(name: str, data: str, rows: str) -> None:
    each = int(rows)
    async with semcast.database("bench", name=name, founders=NAMES, data=data) as db:
        if name == "a":
            await db.execute("create table t (id integer primary key, v)")
        await db.query("select 1", position=1)
        total = ACTIONS // 4 // len(NAMES) // each
        upsert = "insert into t values (?, ?) on conflict (id) do update set v = excluded.v"

        async def client(first: int) -> None:
            for number in range(first, total, ONE_BY_ONE):
                steps = [(upsert, ((number * each + step) % 1000, "x" * SIZE)) for step in range(each)]
                await db.transaction(steps)

        async with _measured() as found:
            await asyncio.gather(*(client(first) for first in range(ONE_BY_ONE)))
            await db.query("select 1", position=1 + total * len(NAMES))
        await _report({**found, "count": total * each * len(NAMES)})


async def _ring(name: str, data: str, _mode: str) -> None:
    async with semcast.join(Path(data).name, name=name, minimum=3, policy="block") as group:
        payload, mine = bytes(SIZE), ACTIONS // len(NAMES)

        async def send() -> None:
            for _ in range(mine // AT_ONCE):
                await group.send_many([payload] * AT_ONCE, order="safe")

        async with _measured() as found:
            sending = asyncio.create_task(send())
            count = 0
            async for deliveries in group.batches():
                count += sum(len(each.payloads) for each in deliveries if isinstance(each, semcast.Batch))
                if count >= mine // AT_ONCE * AT_ONCE * len(NAMES):
                    break
            await sending
        await _report({**found, "count": count})


async def _report(found: dict[str, float]) -> None:
    """Tell what was measured, and stay until all have: those who are left behind could not end."""
    print(json.dumps(found), flush=True)
    await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def _measured() -> AsyncIterator[dict[str, float]]:
    found: dict[str, float] = {}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    yield found
    after = resource.getrusage(resource.RUSAGE_SELF)
    found["wall"] = time.perf_counter() - began
    found["cpu"] = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


_KINDS = {"engine": _engine, "sql": _sql, "ring": _ring}


def measure(kind: str, mode: str) -> tuple[float, float]:
    """Actions a second, and microseconds of CPU for each at all servers together."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-", dir=Path.cwd()) as data:
        running = [
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "benchmarks.engine", kind, name, data, mode],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for name in NAMES
        ]
        found = [json.loads(each.stdout.readline()) for each in running if each.stdout]
        for each in running:
            each.communicate()
    count = found[0]["count"]
    return count / max(each["wall"] for each in found), sum(each["cpu"] for each in found) / count * 1e6


def run() -> list[Row]:
    """All rows."""
    rate, cpu = measure("ring", "safe")
    rows: list[Row] = []
    for kind, mode, name, target in (
        ("engine", "disk", "actions of 64 B, disk", ">= 100,000 a second"),
        ("engine", "memory", "actions of 64 B, memory", ">= 200,000 a second"),
        ("sql", "1", "upserts one by one", ">= 25,000 a second"),
        ("sql", "100", "upserts, 100 a call", ">= 60,000 a second"),
    ):
        found, took = measure(kind, mode)
        rows.append(against(f"{name}, 3 servers / ring safe", found, "a second", rate, target))
        rows.append(against(f"{name}, CPU of all servers / ring safe", took, "us", cpu, ""))
    return rows


if __name__ == "__main__":
    asyncio.run(_KINDS[sys.argv[1]](*sys.argv[2:]))
