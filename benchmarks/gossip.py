"""Gossip and loggers, live: ingest, acknowledgement and replay of a log, beside S-RM and peers in one run.

The logger is a process of its own, and so is a member beside it; the publisher, and then the subscriber, are
this one.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import semcast
from benchmarks import logpeers
from benchmarks.rows import Row, against
from semcast.bench import Case, measure
from semcast.core.messages import Batch

COUNT = int(os.environ.get("SEMCAST_BENCH_LOGGED", "50_000"))
ASKED = 500
"""Messages for whose log a publisher waits, one by one."""
MANY = 500
MISSED = int(os.environ.get("SEMCAST_BENCH_MISSED", "1_000_000"))
"""Updates that a session misses while it is away."""
ITEMS = 1000
LAST = b"last"


def run() -> list[Row]:
    """All rows."""
    static = _rate(Case(stack="s-rm", order="fifo", count=COUNT))
    free = _rate(Case(stack="gossip", order="fifo", count=COUNT))
    small = asyncio.run(_log(64, COUNT))
    large = asyncio.run(_log(1024, COUNT // 2))
    followed = asyncio.run(_followed(64, COUNT))
    updates = asyncio.run(_away(MISSED))
    return [
        against("gossip, 64 B, no logger / s-rm", free, "messages/s", static, ">= 0.8"),
        against("64 B, synced ingest / s-rm", small[0], "messages/s", static, ">= 100,000"),
        against("64 B, synced ingest / no logger", small[0], "messages/s", free, ""),
        against(
            "64 B, a member beside it / synced ingest of that run",
            followed[0],
            "messages/s",
            followed[1],
            ">= 0.9",
        ),
        against("64 B, synced ingest beside a member / without", followed[1], "messages/s", small[0], ""),
        against("1 KiB, synced ingest / s-rm", large[0], "messages/s", static, ">= 40,000"),
        against("logged, median / 3 ms", small[1], "ms", 3.0, "<= 1"),
        against("64 B, replay / s-rm", small[2], "messages/s", static, ">= 200,000"),
        against("1 KiB, replay / s-rm", large[2], "messages/s", static, ">= 60,000"),
        against("64 B, synced ingest of updates / plain", updates[0], "messages/s", small[0], ""),
        against(f"away for {MISSED:,} of {ITEMS:,} items / for one", updates[1], "s", updates[2], "< 1 s"),
        *logpeers.rows(logpeers.Rates(small[0], small[2]), 64),
        *logpeers.rows(logpeers.Rates(large[0], large[2]), 1024),
    ]


def _rate(case: Case) -> float:
    """At the slowest member."""
    return min(each.rate for each in measure(case))


async def _log(size: int, count: int) -> tuple[float, float, float]:
    """Messages a second that are taken in and synced, milliseconds until one is, and replayed a second."""
    group = f"bench-log-{token_hex(4)}"
    with _logger(group):
        async with semcast.join(
            group, stack="gossip", name="p", receive=False, durable=True, bind="127.0.0.1:0"
        ) as publisher:
            await publisher.send(b"first", logged=True)
            payloads = [bytes(size)] * MANY
            began = time.perf_counter()
            for _ in range(count // MANY):
                await publisher.send_many(payloads)
            await publisher.send(LAST, logged=True)
            ingest = count / (time.perf_counter() - began)
            waits = sorted([await _logged(publisher) for _ in range(ASKED)])
            began = time.perf_counter()
            read = await _read(group, count + ASKED + 2)
            return ingest, 1e3 * waits[ASKED // 2], read / (time.perf_counter() - began)


async def _followed(size: int, count: int) -> tuple[float, float]:
    """Messages a second that a member in a process of its own is given, and that are synced meanwhile."""
    group = f"bench-beside-{token_hex(4)}"
    with _logger(group):
        async with semcast.join(
            group, stack="gossip", name="p", receive=False, durable=True, bind="127.0.0.1:0"
        ) as publisher:
            await publisher.send(b"first", logged=True)
            words = ["-m", "benchmarks.gossip", group]
            member = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=subprocess.PIPE)
            assert member.stdout is not None
            await member.stdout.readline()  # it is there
            payloads = [bytes(size)] * MANY
            began = time.perf_counter()
            for _ in range(count // MANY):
                await publisher.send_many(payloads)
            await publisher.send(LAST, logged=True)
            ingest = count / (time.perf_counter() - began)
            seconds = float(await member.stdout.readline())
            await member.wait()
            return count / seconds, ingest


async def _follow(group: str) -> None:
    """A member that says when it is there, and how long it took from the first message to the last."""
    async with semcast.join(
        group, stack="gossip", name="q", durable=True, queue_messages=1 << 16, bind="127.0.0.1:0"
    ) as member:
        print("there", flush=True)
        began = 0.0
        async for deliveries in member.batches():
            batches = [each for each in deliveries if isinstance(each, Batch)]
            if batches and not began:
                began = time.perf_counter()
            if any(batch.payloads[-1] == LAST for batch in batches):
                print(time.perf_counter() - began, flush=True)
                return


async def _away(count: int) -> tuple[float, float, float]:
    """Updates a second that are synced; seconds until a session has caught up with them, and with one more.

    From the moment at which its program starts to subscribe until it was given the last of them.
    """
    group = f"bench-away-{token_hex(4)}"
    with _logger(group):
        async with semcast.join(
            group, stack="gossip", name="p", receive=False, durable=True, bind="127.0.0.1:0"
        ) as publisher:
            await publisher.send(b"first", logged=True)
            await _catch_up(group, b"first")
            payload = bytes(64)
            began = time.perf_counter()
            for start in range(0, count, MANY):
                await publisher.send_items(
                    [(f"item {each % ITEMS}", payload) for each in range(start, start + MANY)]
                )
            await publisher.send(LAST, logged=True)
            ingest = count / (time.perf_counter() - began)
            many = await _catch_up(group, LAST)
            await publisher.send(b"one more", logged=True)
            return ingest, many, await _catch_up(group, b"one more")


async def _catch_up(group: str, last: bytes) -> float:
    began = time.perf_counter()
    async with semcast.subscribe(
        group, durable="desk", start="all", queue_messages=1 << 16, bind="127.0.0.1:0"
    ) as log:
        async for batch in log:
            if any(message.payload == last for message in batch):
                return time.perf_counter() - began
    raise AssertionError("a subscription does not end by itself")


async def _logged(publisher: semcast.Group) -> float:
    began = time.perf_counter()
    await publisher.send(b"asked", logged=True)
    return time.perf_counter() - began


async def _read(group: str, count: int) -> int:
    found = 0
    async with semcast.subscribe(group, start="all", queue_messages=1 << 16, bind="127.0.0.1:0") as log:
        async for batch in log:
            found += len(batch)
            if found >= count:
                break
    return found


@contextmanager
def _logger(group: str) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="semcast-bench-", dir=Path.cwd()) as folder:
        words = ["-m", "semcast", "logger", folder, "--group", group, "--json", "--bind", "127.0.0.1:0"]
        process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE)  # noqa: S603
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.terminate()
            process.communicate()


if __name__ == "__main__":
    asyncio.run(_follow(sys.argv[1]))
