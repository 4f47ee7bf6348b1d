"""Three servers of a replicated database, each a process of its own."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from semcast.demo.supervisor import DemoError
from semcast.processes import Child, Line

NAMES = ("a", "b", "c")
_PATIENCE = 20.0


class Servers:
    """The processes, and what they said last.

    Args:
        database: its name.
        data: folder of all three, and of what they record.
        options: further words of the command line, for each server.
        prefixes: the command that runs a server somewhere else.
    """

    def __init__(
        self,
        database: str,
        data: Path,
        options: Callable[[str], Sequence[str]],
        prefixes: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        self.said: dict[str, Line] = {name: {} for name in NAMES}
        self.addresses: dict[str, str] = {}
        self._news = asyncio.Event()
        self._children: dict[str, Child] = {}
        self.journals = data / "journals"
        """What they record."""
        for name in NAMES:
            words = ["serve", database, "--data", str(data / name), "--name", name, "--with", ",".join(NAMES)]
            words += ["--record", str(self.journals)]
            self._children[name] = Child(
                "semcast",
                [*words, "--json", "--until-closed", *options(name)],
                self._hearing(name),
                prefix=prefixes(name),
            )

    def _hearing(self, name: str) -> Callable[[Line], None]:
        def hear(what: Mapping[str, Any]) -> None:
            self.said[name] = dict(what)
            if what["event"] == "serving":
                self.addresses[name] = what["address"]
            self._news.set()

        return hear

    async def start(self) -> None:
        """Start them all, and wait until all are in one primary."""
        for child in self._children.values():
            await child.start()
        try:
            async with asyncio.timeout(_PATIENCE):
                while not all(self._with_all(said) for said in self.said.values()):
                    if any(child.ended for child in self._children.values()):
                        raise DemoError("a server ended: see what it said above")
                    await self.news()
        except TimeoutError:
            raise DemoError(f"the servers did not find each other within {_PATIENCE:.0f} s") from None

    @staticmethod
    def _with_all(said: Line) -> bool:
        return said.get("event") == "state" and bool(said["primary"]) and len(said["view"]) == len(NAMES)

    async def news(self) -> None:
        """Wait until one of them says something, or for a moment."""
        try:
            async with asyncio.timeout(0.2):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    def gone(self) -> list[str]:
        """Those that have ended."""
        return [name for name in NAMES if self._children[name].ended]

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send one of them a signal."""
        self._children[name].signal(number)

    async def stop(self) -> None:
        """End them, in good order."""
        running = [child for child in self._children.values() if child.running]
        for child in running:
            child.signal(signal.SIGTERM)
        for child in running:
            try:
                await child.wait(_PATIENCE)
            except TimeoutError:
                await child.kill()
