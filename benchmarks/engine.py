"""The engine: three servers of a service as processes, each with clients inside, against its parts.

On a shared machine only CPU means anything: microseconds of all three processes together for each action.
"""

import asyncio
import os
import signal
import sqlite3
import time
from pathlib import Path

import semcast
from benchmarks import enginepeers
from benchmarks.rows import Row, against
from benchmarks.servers import DISK, LOOP, NAMES, PROGRAM, Server, folder, measure
from semcast.sim.swarm import report

ACTIONS = int(os.environ.get("SEMCAST_BENCH_ACTIONS", "240_000"))
"""Of all servers together; of statements a quarter."""
MISSED = int(os.environ.get("SEMCAST_BENCH_MISSED", "1_000_000"))
"""Actions that a server has to catch up with."""
SEEDS = int(os.environ.get("SEMCAST_BENCH_SEEDS", "20"))
TOKEN_LOSS = 500
"""Milliseconds after which a silent server is taken for lost: the default of groups."""
WHERE = {
    PROGRAM: "clients, requests, applying",
    LOOP: "sockets, ring, machine",
    DISK: "writing and syncing the log",
}
_KEEP = (f"trim_every={2 * MISSED}", f"retention={2 * MISSED}")
"""So that a server is given the actions themselves, and no snapshot."""


def rates() -> list[Row]:
    """Against the ring below with safe delivery: what the engine adds to it."""
    floor, least, _ = measure("ring", ACTIONS)
    rows: list[Row] = []
    disk = 0.0
    for program, mode, actions, name, target in (
        ("rate", "disk", ACTIONS, "actions of 64 B, disk", ">= 100,000 a second"),
        ("rate", "memory", ACTIONS, "actions of 64 B, memory", ">= 200,000 a second"),
        ("sql", "1", ACTIONS // 4, "upserts one by one", ">= 25,000 a second"),
        ("sql", "100", ACTIONS // 4, "upserts, 100 a call", ">= 60,000 a second"),
    ):
        found, took, parts = measure(program, mode, actions)
        disk = disk or found
        rows.append(against(f"{name}, 3 servers / ring safe", found, "a second", floor, target))
        rows.append(against(f"{name}, CPU of all servers / ring safe", took, "us", least, ""))
        rows += [
            against(f"{name}, CPU of it in {WHERE[part]} / all of it", us, "us", took, "")
            for part, us in parts.items()
        ]
    return [*rows, *enginepeers.rows(disk)]


def one_client() -> list[Row]:
    """A client alone, who waits for the disk each time; then one server of three is killed."""
    with folder() as data:
        sync = _sync(Path(data))
        busy, *others = [
            Server("trickle" if name == "a" else "stay", name, data, *([0] if name == "a" else []))
            for name in NAMES
        ]
        for each in (busy, *others):
            each.hear()
        time.sleep(3)
        busy.tell()
        calm = busy.hear()
        others[-1].process.send_signal(signal.SIGKILL)
        time.sleep(3)
        busy.tell()
        split = busy.hear()
        for each in (busy, *others):
            each.end()
    gap = split["most"] * 1e3
    target = f"<= token_loss + 150 ms + 3 syncs = {TOKEN_LOSS + 150 + 3 * sync:.0f} ms"
    return [
        against("one client, disk, p50 / a sync", calm["p50"] * 1e3, "ms", sync, "<= 2 ms"),
        against("one client, disk, p99 / a sync", calm["p99"] * 1e3, "ms", sync, "<= 6 ms"),
        against("server killed: nothing done for / token_loss", gap, "ms", TOKEN_LOSS, target),
    ]


def _sync(data: Path) -> float:
    """Milliseconds that a small record takes to the disk here."""
    times: list[float] = []
    with (data / "sync").open("wb", buffering=0) as file:
        for _ in range(200):
            began = time.perf_counter()
            file.write(bytes(200))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[100] * 1e3


def catch_up(*settings: str) -> tuple[float, float, float, float]:
    """Seconds until a server that missed actions has them; how long nothing was done before and meanwhile,
    in milliseconds; and the megabytes of memory that it took at most."""
    with folder() as data:
        busy = Server("trickle", "a", data, MISSED, *settings)
        there, away = (Server("stay", name, data, *settings) for name in NAMES[1:])
        for each in (busy, there, away):
            each.hear()
        away.end()
        busy.tell()
        position = busy.hear()["position"]
        time.sleep(2)
        busy.tell()
        before = busy.hear()
        back = Server("comes_back", "c", data, int(position), *settings)
        found = back.hear()
        busy.tell()
        meanwhile = busy.hear()
        for each in (busy, there, back):
            each.end()
    return found["wall"], before["most"] * 1e3, meanwhile["most"] * 1e3, found["peak"]


def catching_up() -> list[Row]:
    """With the actions themselves, and with a snapshot of the service."""
    rows: list[Row] = []
    for name, settings in (("the actions", _KEEP), ("a snapshot", ())):
        took, before, meanwhile, peak = catch_up(*settings)
        what = f"catch-up of {MISSED:,} actions by {name}"
        rows.append(against(f"{what} / target", took, "s", 10, "<= 10 s"))
        rows.append(against(f"{what}: nothing done for / before", meanwhile, "ms", before, "<= 300 ms"))
        rows.append(against(f"{what}: memory at most / 256", peak, "MiB", 256, ""))
    return rows


def weak_queries() -> list[Row]:
    """On the thread of who asks, against SQLite itself."""
    with folder() as data:
        best, bare = asyncio.run(_weak(data))
    return [against("weak queries / bare sqlite3", best, "a CPU second", bare, ">= 0.8")]


async def _weak(data: str) -> tuple[float, float]:
    sql, count = "select v from t where id = ?", 20_000
    ours = theirs = 0.0
    async with semcast.database("bench", name="a", founders=["a"], data=data) as db:
        await db.execute("create table t (id integer primary key, v)")
        await db.transaction([("insert into t values (?, ?)", (n, "x" * 64)) for n in range(1000)])
        bare = sqlite3.connect(next(Path(data).rglob("*.sqlite")))
        for _ in range(5):
            began = time.thread_time()
            for n in range(count):
                db.weak(sql, (n % 1000,))
            between = time.thread_time()
            for n in range(count):
                bare.execute(sql, (n % 1000,)).fetchall()
            ended = time.thread_time()
            ours, theirs = max(ours, count / (between - began)), max(theirs, count / (ended - between))
        bare.close()
    return ours, theirs


def swarm() -> list[Row]:
    """Seconds of CPU that 200 seeds take, by some of them."""
    began = time.process_time()
    for seed in range(SEEDS):
        report(seed, "replication", None)
    took = (time.process_time() - began) * 200 / SEEDS
    return [against(f"swarm of 200 seeds (by {SEEDS}) / target", took, "s", 180, "<= 180 s")]


def run() -> list[Row]:
    """All rows."""
    return [*rates(), *one_client(), *weak_queries(), *catching_up(), *swarm()]
