"""A logger, two publishers, and subscribers that are killed, go away, and come late: all have everything."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from semcast.demo.supervisor import DemoError
from semcast.history.journal import record_crash
from semcast.processes import Child, Line

_PATIENCE = 30.0
_RATE = 500
"""Messages a second of each publisher, about."""
PUBLISHERS = ("p1", "p2")


class Player:
    """A process of the demo, and what it said last."""

    def __init__(self, module: str, arguments: list[str], errors: Path) -> None:
        self.said: dict[str, Line] = {}
        self._module, self._arguments, self._errors = module, arguments, errors
        self.child: Child | None = None

    async def start(self, ready: str) -> None:
        """Start it, or start it again, and wait until it says that it is ready."""
        self.said.clear()
        self.child = Child(self._module, self._arguments, self._hear, errors=self._errors)
        await self.child.start()
        await self.until(lambda: ready in self.said, "start")

    def _hear(self, line: Line) -> None:
        self.said[line["event"]] = line

    @property
    def report(self) -> Line:
        """What it said of its work last."""
        return self.said.get("report", {})

    async def tell(self) -> None:
        """The next step: to stop, or to leave."""
        assert self.child is not None
        await self.child.tell({})

    def signal(self, number: signal.Signals) -> None:
        """Stop it, or let it go on."""
        assert self.child is not None
        self.child.signal(number)

    async def kill(self) -> None:
        """SIGKILL."""
        if self.child is not None:
            await self.child.kill()

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something; DemoError if it does not come."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            name = " ".join(self._arguments)[:60]
            if self.child is not None and self.child.ended:
                raise DemoError(f"{name} ended: {_last_line(self._errors)}")
            if time.monotonic() > deadline:
                raise DemoError(f"{name} did not {what} in time")
            await asyncio.sleep(0.02)


class LogStory:
    """One run of it.

    Args:
        folder: for everything.
        tell: called with each line for people.
        seconds: that publishers work before anything happens, and after it.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None], seconds: float) -> None:
        self.journals = folder / "journals"
        self.rest = 0
        """The time of day at which everybody had everything."""
        self._folder = folder
        self._tell = tell
        self._seconds = seconds
        self._group = f"demo-log-{os.getpid()}"
        self._players: list[Player] = []

    async def run(self) -> dict[str, Any]:
        """From the first start to the last end."""
        self.journals.mkdir(parents=True)
        try:
            return await self._run()
        finally:
            for player in self._players:
                await player.kill()

    async def _run(self) -> dict[str, Any]:
        logger = await self._logger()
        publishers = [await self._publisher(name) for name in PUBLISHERS]
        desk, phone = [await self._reader(name, "all") for name in ("desk", "phone")]
        self._tell("a logger, two publishers, and two subscribers, desk and phone, that keep what they read")
        await asyncio.sleep(self._seconds)
        phone.signal(signal.SIGSTOP)
        self._tell("phone goes away (SIGSTOP); desk is killed (kill -9); the publishers do not notice")
        before = await self._crash(desk)
        await asyncio.sleep(self._seconds)
        phone.signal(signal.SIGCONT)
        began = time.monotonic()
        await desk.start("ready")
        await desk.until(lambda: desk.report.get("received", 0) > 0, "read")
        self._tell(f"desk is back after {time.monotonic() - began:.1f} s; phone, too")
        await asyncio.sleep(self._seconds)
        late = await self._reader("late", "compacted")
        self._tell("late joins, and reads the compacted log: the last price of each item, and every trade")
        done = await self._stop(publishers)
        expected = _expected(done)
        for reader, name in ((desk, "desk"), (phone, "phone"), (late, "late")):
            await reader.until(lambda reader=reader: _has(reader, expected), f"get everything ({name})")  # type: ignore[misc]
        await asyncio.sleep(3.0)  # until what is said only now and then was said again
        self.rest = time.time_ns()
        result = self._result(done, before, desk, phone, late)
        for player in publishers:
            await player.tell()
        for player in (desk, phone, late):
            await player.tell()
        for player in (*publishers, desk, phone, late):
            assert player.child is not None
            await player.child.wait(_PATIENCE)
        logger.signal(signal.SIGTERM)
        assert logger.child is not None
        await logger.child.wait(_PATIENCE)
        return result

    async def _crash(self, desk: Player) -> int:
        received = int(desk.report.get("received", 0))
        await desk.kill()
        record_crash(self.journals, "desk")
        return received

    async def _stop(self, publishers: list[Player]) -> list[Line]:
        for player in publishers:
            await player.tell()
        for player in publishers:
            await player.until(lambda player=player: "done" in player.said, "stop")  # type: ignore[misc]
        return [player.said["done"] for player in publishers]

    def _result(
        self, done: list[Line], before: int, desk: Player, phone: Player, late: Player
    ) -> dict[str, Any]:
        return {
            "sent": sum(each["sent"] for each in done),
            "trades": sum(each["trades"] for each in done),
            "items": sum(len(each["prices"]) for each in done),
            "desk": before + desk.report["received"],
            "desk again": desk.report["again"],
            "phone": phone.report["received"],
            "late": late.report["received"],
        }

    # Processes

    async def _logger(self) -> Player:
        words = ["logger", str(self._folder / "log"), "--group", self._group, "--json"]
        words += ["--record", str(self.journals), "--record-run", "demo", "--name", "log", "--until-closed"]
        return await self._begin("semcast", words, "logging")

    async def _publisher(self, name: str) -> Player:
        order = {"role": "publish", "rate": _RATE, "settings": self._settings(name=name, stack="gossip")}
        return await self._member(order)

    async def _reader(self, name: str, start: str) -> Player:
        file = str(self._folder / f"{name}.json")
        return await self._member(
            {"role": "read", "name": name, "start": start, "file": file, "settings": self._settings()}
        )

    def _settings(self, **more: str) -> dict[str, Any]:
        return {"record": str(self.journals), "record_run": "demo", **more}

    async def _member(self, order: dict[str, Any]) -> Player:
        text = msgspec.json.encode({"group": self._group, **order}).decode()
        return await self._begin("semcast.demo.logged", [text], "ready")

    async def _begin(self, module: str, arguments: list[str], ready: str) -> Player:
        player = Player(module, arguments, self._folder / "errors.txt")
        self._players.append(player)
        await player.start(ready)
        return player


def _last_line(errors: Path) -> str:
    """What a process said before it ended."""
    lines = errors.read_text(encoding="utf8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it did not say why"


def _expected(done: list[Line]) -> tuple[dict[str, str], dict[str, int]]:
    """The last price of each item, and the last trade of each publisher."""
    prices = {item: price for each in done for item, price in each["prices"].items()}
    return prices, {name: each["trades"] for name, each in zip(PUBLISHERS, done, strict=True)}


def _has(reader: Player, expected: tuple[dict[str, str], dict[str, int]]) -> bool:
    return (reader.report.get("prices"), reader.report.get("trades")) == expected
