"""Three servers of a replicated service as processes, told by their standard input what to do next.

Each runs one of the programs in `PROGRAMS`. It says what it found in lines of JSON, goes on when it is given
a line, and ends when its input does.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import semcast

NAMES = ("a", "b", "c")
SIZE = 64
"""Bytes of an action."""
CLIENTS, AT_ONCE = 8, 250
"""Clients of a server that ask for many actions at a time."""
PROGRAM, LOOP, DISK = PARTS = ("program", "loop", "disk")
"""Threads of a server: clients, requests and applying; sockets, ring and machine; writing and syncing."""
ONE_BY_ONE = 256
"""Clients of a server that ask for one statement at a time."""


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


def _replica(name: str, data: str, **settings: Any) -> semcast.Replica:
    return semcast.replicate("bench", Service(), name=name, founders=NAMES, data=data, **settings)


def _say(found: dict[str, float]) -> None:
    print(json.dumps(found), flush=True)


async def _line() -> str:
    """The next thing to do; empty at the end."""
    return await asyncio.to_thread(sys.stdin.readline)


@asynccontextmanager
async def _measured() -> AsyncIterator[dict[str, float]]:
    found: dict[str, float] = {}
    began, before, parts = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF), _by_thread()
    yield found
    after = resource.getrusage(resource.RUSAGE_SELF)
    found["wall"] = time.perf_counter() - began
    found["cpu"] = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    found |= {part: took - parts.get(part, 0.0) for part, took in _by_thread().items()}


def _by_thread() -> dict[str, float]:
    """Seconds of CPU that each kind of thread has had."""
    found = dict.fromkeys(PARTS, 0.0)
    for thread in threading.enumerate():
        if thread.ident is not None:
            took = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            found[_part_of(thread)] += took
    return found


def _part_of(thread: threading.Thread) -> str:
    if thread.name.startswith("semcast disk"):
        return DISK
    return LOOP if thread.name.startswith("semcast ") and "#" in thread.name else PROGRAM


# Programs


async def rate(name: str, data: str, durability: str, actions: str) -> None:
    """As many actions as possible, from clients at all servers."""
    async with _replica(name, data, durability=durability) as replica:
        calls = int(actions) // len(NAMES) // CLIENTS // AT_ONCE

        async def client() -> None:
            for _ in range(calls):
                await replica.update_many([bytes(SIZE)] * AT_ONCE)

        count = calls * CLIENTS * AT_ONCE * len(NAMES)
        async with _measured() as found:
            await asyncio.gather(*(client() for _ in range(CLIENTS)))
            await replica.query(b"", position=count)
        _say({**found, "count": count})
        await _line()


async def sql(name: str, data: str, rows: str, actions: str) -> None:
    """The same with upserts, so many in a transaction."""
    each = int(rows)
    clients = ONE_BY_ONE if each == 1 else CLIENTS
    async with semcast.database("bench", name=name, founders=NAMES, data=data) as db:
        if name == "a":
            await db.execute("create table t (id integer primary key, v)")
        await db.query("select 1", position=1)
        total = int(actions) // len(NAMES) // each
        upsert = "insert into t values (?, ?) on conflict (id) do update set v = excluded.v"

        async def client(first: int) -> None:
            for number in range(first, total, clients):
                steps = [(upsert, ((number * each + step) % 1000, "x" * SIZE)) for step in range(each)]
                await db.transaction(steps)

        async with _measured() as found:
            await asyncio.gather(*(client(first) for first in range(clients)))
            await db.query("select 1", position=1 + total * len(NAMES))
        _say({**found, "count": total * each * len(NAMES)})
        await _line()


async def ring(name: str, data: str, actions: str) -> None:
    """The group communication below, with safe delivery, and nothing above it."""
    async with semcast.join(Path(data).name, name=name, minimum=3, policy="block") as group:
        payload, mine = bytes(SIZE), int(actions) // len(NAMES)

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
        _say({**found, "count": count})
        await _line()


async def stay(name: str, data: str, *settings: str) -> None:
    """Be there."""
    async with _replica(name, data, **_given(settings)) as replica:
        _say({"position": replica.status().position})
        await _line()


async def trickle(name: str, data: str, actions: str, *settings: str) -> None:
    """First so many actions, when told to; then one client, who says at each line how long it took."""
    async with _replica(name, data, **_given(settings)) as replica:
        _say({})
        while int(actions) and await _line():
            for _ in range(int(actions) // (CLIENTS * AT_ONCE)):
                await asyncio.gather(*(replica.update_many([bytes(SIZE)] * AT_ONCE) for _ in range(CLIENTS)))
            _say({"position": replica.status().position})
            break
        times: list[float] = []

        async def client() -> None:
            while True:
                began = time.perf_counter()
                await replica.update(bytes(SIZE))
                times.append(time.perf_counter() - began)

        working = asyncio.create_task(client())
        while await _line():
            done = sorted(times)
            times.clear()
            _say({"p50": done[len(done) // 2], "p99": done[len(done) * 99 // 100], "most": done[-1]})
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def comes_back(name: str, data: str, position: str, *settings: str) -> None:
    """How long it takes until a server has all that was done while it was away."""
    began = time.perf_counter()
    async with _replica(name, data, **_given(settings)) as replica:
        while replica.status().position < int(position):
            await asyncio.sleep(0.002)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _say({"wall": time.perf_counter() - began, "peak": peak})
        await _line()


def _given(settings: tuple[str, ...]) -> dict[str, int]:
    return {name: int(value) for name, _, value in (each.partition("=") for each in settings)}


PROGRAMS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    each.__name__: each for each in (rate, sql, ring, stay, trickle, comes_back)
}


# The other side


class Server:
    """One of the processes."""

    def __init__(self, program: str, name: str, data: str, *args: object) -> None:
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "benchmarks.servers", program, name, data, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def hear(self) -> dict[str, float]:
        """What it says next."""
        assert self.process.stdout is not None
        found: dict[str, float] = json.loads(self.process.stdout.readline())
        return found

    def tell(self) -> None:
        """It goes on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """It leaves."""
        with suppress(BrokenPipeError):
            self.process.communicate()


@contextmanager
def folder() -> Iterator[str]:
    """For the logs of servers: here, since /tmp may be in memory."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-", dir=Path.cwd()) as data:
        yield data


class Measured(NamedTuple):
    """What three servers did together."""

    rate: float
    """Actions a second."""
    cpu: float
    """Microseconds of CPU for each, at all servers together."""
    parts: dict[str, float]
    """The same by thread."""


def measure(program: str, *args: object) -> Measured:
    """Have three servers do something."""
    with folder() as data:
        servers = [Server(program, name, data, *args) for name in NAMES]
        found = [each.hear() for each in servers]
        for each in servers:
            each.end()
    count = found[0]["count"]

    def each_took(part: str) -> float:
        return sum(each[part] for each in found) / count * 1e6

    rate = count / max(each["wall"] for each in found)
    return Measured(rate, each_took("cpu"), {part: each_took(part) for part in PARTS})


if __name__ == "__main__":
    asyncio.run(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
