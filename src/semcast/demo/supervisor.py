"""Starts, watches, kills and restarts the processes of the demo."""

import asyncio
import time
from collections.abc import Callable

from semcast.processes import Child, Line


class DemoError(Exception):
    """A process of the demo did not do what it should; says which and what."""


class Process:
    """One member in a process of its own, and the last thing it said."""

    def __init__(self, group: str, name: str, **options: str | float) -> None:
        self.name = name
        self.report: Line = {}
        self.rate = 0.0
        """Messages a second delivered, lately."""
        self._arguments = [group, name, *(f"--{key}={value}" for key, value in options.items() if value)]
        self._child: Child | None = None
        self._reported_at = 0.0

    async def start(self) -> None:
        """Start it, or start it again."""
        self.report, self.rate = {}, 0.0
        self._child = Child("semcast.demo.member", self._arguments, self._hear)
        await self._child.start()

    def _hear(self, report: Line) -> None:
        now = time.monotonic()
        if self.report:
            seconds = max(now - self._reported_at, 0.01)
            fresh = (report["delivered"] - self.report["delivered"]) / seconds
            self.rate = 0.5 * self.rate + 0.5 * fresh
        self.report, self._reported_at = report, now

    async def tell(self, word: str) -> None:
        """Give it an order."""
        assert self._child is not None
        await self._child.tell({"do": word})

    async def kill(self) -> None:
        """SIGKILL: it has no time for anything."""
        assert self._child is not None
        await self._child.kill()
        self.report, self.rate = {}, 0.0

    async def stop(self) -> None:
        """Ask it to leave; insist after some seconds."""
        if self._child is None or not self._child.running:
            return
        await self.tell("quit")
        try:
            await self._child.wait(10)
        except TimeoutError:
            await self.kill()
            raise DemoError(f"{self.name} did not leave within 10 s") from None


class DemoGroup:
    """Several processes that share a table."""

    def __init__(self, processes: list[Process]) -> None:
        self.processes = processes

    async def start(self, seconds: float = 20.0) -> None:
        """Start all at once, and wait until each sees all."""
        await asyncio.gather(*(process.start() for process in self.processes))
        await self.until(self.together, seconds, "find each other")

    def together(self) -> bool:
        """Whether everybody sees everybody."""
        size = len(self.processes)
        return all(process.report.get("view") == size for process in self.processes)

    def agreed(self) -> bool:
        """Whether all tables are the same, and not empty."""
        digests = {process.report.get("digest") for process in self.processes}
        return len(digests) == 1 and all(process.report.get("items") for process in self.processes)

    async def until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise DemoError(f"the members did not {what} within {seconds:.0f} s")
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        """Let all leave."""
        await asyncio.gather(*(process.stop() for process in self.processes))
