"""A replicated database through a partition: both sides work, at every level, and become one again."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from semcast.demo.partition import MAJORITY, MINORITY, NetworkCut
from semcast.demo.servers import NAMES, Servers
from semcast.demo.supervisor import DemoError
from semcast.processes import Child, Line

_PATIENCE = 30.0
_NO_PRIMARY = 1.5
"""Seconds that the demo waits for what needs a primary, where there is none."""

INTEREST = "update account set balance = balance + balance / 10 where id = 1"
"""An active action: what it comes to is computed where it has its place, the same everywhere."""
TABLES = (
    "create table account(id integer primary key, balance integer not null)",
    "create table taxi(id integer primary key, street text, at integer)",
    "create table stock(part text primary key, count integer not null)",
    "insert into account values (1, 100)",
)


class Step(msgspec.Struct, frozen=True):
    """What a client asked at one side, and what it was answered."""

    side: str
    level: str
    asked: str
    answer: str


class Teller:
    """A client that is on the side of its server."""

    def __init__(self, database: str, address: str, prefix: Sequence[str]) -> None:
        self._answers: asyncio.Queue[Line] = asyncio.Queue()
        self._child = Child(
            "semcast.demo.teller", [database, address], self._answers.put_nowait, prefix=prefix
        )

    async def start(self) -> None:
        """Connect."""
        await self._child.start()

    async def ask(self, method: str, **arguments: Any) -> Line:
        """Call a method of the client; the answer, which may be an error."""
        await self._child.tell({"do": method, **arguments})
        async with asyncio.timeout(_PATIENCE):
            return await self._answers.get()

    async def stop(self) -> None:
        """End it."""
        await self._child.kill()


class ReplicationStory:
    """Runs the demo.

    Args:
        partition: how to cut.
        data: folder of the servers.
        tell: shown each step.
    """

    def __init__(self, partition: NetworkCut, data: Path, tell: Callable[[Step], None]) -> None:
        self._partition = partition
        self._name = f"demo-{os.getpid()}"
        self._servers = Servers(self._name, data, partition.options, partition.prefix)
        self.journals = self._servers.journals
        """What the servers record."""
        self.rest: int | None = None
        """The time of day at which all were one again, and nothing was under way."""
        self._tellers: dict[str, Teller] = {}
        self._tell = tell

    async def run(self) -> dict[str, Any]:
        """All of it; what came of it. What the servers did is in `journals`."""
        try:
            await self._servers.start()
            await self._connect()
            return await self._through_a_partition()
        finally:
            self._partition.heal(self._servers)
            for teller in self._tellers.values():
                await teller.stop()
            await self._servers.stop()

    async def _connect(self) -> None:
        for name in NAMES:
            address = self._servers.addresses[name]
            self._tellers[name] = Teller(self._name, address, self._partition.prefix(name))
            await self._tellers[name].start()
        for sql in TABLES:
            await self._sure("a", "execute", sql=sql)
        await self._until_equal()

    async def _through_a_partition(self) -> dict[str, Any]:
        self._partition.side(self._servers, MAJORITY)
        for name in MAJORITY:
            await self._until(name, lambda status: status["primary"] and status["view"] == list(MAJORITY))
        await self._majority()
        self._partition.side(self._servers, MINORITY)
        await self._until("c", lambda status: not status["primary"] and status["view"] == list(MINORITY))
        await self._minority()
        self._partition.heal(self._servers)
        started = time.monotonic()
        for name in NAMES:
            await self._until(name, lambda status: status["primary"] and status["view"] == list(NAMES))
        digest = await self._until_equal()
        self.rest = time.time_ns()
        seconds = time.monotonic() - started
        return {"digest": digest, "seconds": round(seconds, 2), **await self._result()}

    async def _majority(self) -> None:
        """The side that is primary: everything is answered, and at once."""
        withdraw = "update account set balance = balance - 30 where id = 1"
        await self._step("a", "strict", "execute", "withdraw 30", sql=withdraw)
        await self._step("a", "interactive", "transaction", "1 more, if it is 70", **_if(70, 1))
        await self._step("b", "commutative", "add", "8 bolts come in", **_bolts(8))
        await self._step("b", "timestamped", "put", "taxi 7 is in High St at 5", **_taxi("High St", 5))
        for level in ("linear", "session", "weak", "dirty"):
            await self._step("b", level, "query", "balance?", sql="select balance from account", level=level)

    async def _minority(self) -> None:
        """The other side: what needs a primary waits, everything else is answered."""
        deposit = "update account set balance = balance + 50 where id = 1"
        await self._step("c", "strict", "execute", "deposit 50", sql=deposit, timeout=_NO_PRIMARY)
        await self._step(
            "c", "queued", "execute", "deposit 5", sql=deposit.replace("50", "5"), level="queued"
        )
        await self._step("c", "active", "execute", "10 % interest", sql=INTEREST, level="queued")
        condition = _if(100, -20, "queued")
        await self._step("c", "interactive", "transaction", "20 less, if it is 100", **condition)
        await self._step("c", "commutative", "add", "3 bolts go out", **_bolts(-3))
        await self._step("c", "timestamped", "put", "taxi 7 is in Low St at 9", **_taxi("Low St", 9))
        for level in ("weak", "dirty", "linear"):
            timeout = {"timeout": _NO_PRIMARY} if level == "linear" else {}
            sql = "select balance from account"
            await self._step("c", level, "query", "balance?", sql=sql, level=level, **timeout)

    async def _step(self, server: str, level: str, method: str, asked: str, /, **arguments: Any) -> None:
        answer = await self._tellers[server].ask(method, **arguments)
        self._tell(Step(_side(server), level, asked, _words(answer)))

    async def _sure(self, server: str, method: str, **arguments: Any) -> Line:
        answer = await self._tellers[server].ask(method, **arguments)
        if "error" in answer:
            raise DemoError(f"{server}: {method}: {answer['why']}")
        return answer

    async def _result(self) -> dict[str, Any]:
        """What each server says in the end, and whether it is what the two sides did."""
        found = {
            name: [
                (await self._sure(name, "query", sql=sql, level="weak"))["rows"]
                for sql in (
                    "select balance from account",
                    "select street from taxi",
                    "select count from stock",
                )
            ]
            for name in NAMES
        }
        before = 100 - 30 + 1 + 50 + 5
        expected = [[[before + before // 10]], [["Low St"]], [[8 - 3]]]
        return {"tables": found["a"], "held": all(each == expected for each in found.values())}

    async def _until(self, server: str, true: Callable[[Line], bool]) -> None:
        async with asyncio.timeout(_PATIENCE):
            while not true(await self._sure(server, "status")):
                await asyncio.sleep(0.05)

    async def _until_equal(self) -> str:
        """Until all servers have the same tables; their digest."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                lines = {(await self._sure(name, "status"))["position"] for name in NAMES}
                digests = {(await self._sure(name, "digest"))["digest"] for name in NAMES}
                if len(lines) == 1 and len(digests) == 1:
                    return str(digests.pop())
                await asyncio.sleep(0.05)


def _side(server: str) -> str:
    return f"{server} of {', '.join(MAJORITY if server in MAJORITY else MINORITY)}"


def _if(balance: int, delta: int, level: str = "strict") -> dict[str, Any]:
    """An interactive action: the client has read the balance, and what it asks for depends on that."""
    return {
        "steps": [["update account set balance = balance + ? where id = 1", [delta]]],
        "expect": [["select balance from account", [], [[balance]]]],
        "level": level,
    }


def _bolts(delta: int) -> dict[str, Any]:
    return {"table": "stock", "key": {"part": "bolt"}, "column": "count", "delta": delta}


def _taxi(street: str, at: int) -> dict[str, Any]:
    return {"table": "taxi", "key": {"id": 7}, "values": {"street": street}, "at": at}


def _words(answer: Line) -> str:
    if "error" in answer:
        return f"waits for a primary ({answer['error']})" if "Error" in answer["error"] else answer["why"]
    if "kept" in answer:
        return "kept: will be done, exactly once"
    if "rows" in answer:
        return str(answer["rows"][0][0])
    return f"done, position {answer['position']}"
