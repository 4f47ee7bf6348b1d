"""A program in groups of a domain: `python -m tests.live.lab.lodger '{"group": ..., "settings": {...}}'`.

It takes the same orders as `member.py`. Everybody is in `all`; besides, in groups that it joins and leaves.
"""

import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.live.lab.member import MARK, Line, say

import semcast

EVERYBODY = "all"
OTHERS = ("odd", "even", "strict")
_PAUSE = 0.004


class Lodger:
    """A domain, what was delivered, and the commands."""

    def __init__(self, order: Line) -> None:
        self._order = order
        self._floor: semcast.Domain
        self._sent = self._delivered = 0
        self._traffic: asyncio.Task[None] | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self._commands: dict[str, Callable[[Line], Coroutine[Any, Any, Line]]] = {
            "traffic": self._on_traffic,
            "quiet": self._on_quiet,
            "mark": self._on_mark,
            "block": self._on_block,
            "burst": self._on_burst,
        }

    async def run(self) -> None:
        """Until told to leave."""
        async with semcast.domain(self._order["group"], **self._order["settings"]) as self._floor:
            await self._floor.join(EVERYBODY)
            say("joined", member=[self._floor.member.name, self._floor.member.incarnation])
            reading = asyncio.create_task(self._read())
            obeying = asyncio.create_task(self._obey())
            await asyncio.wait([reading, obeying], return_when=asyncio.FIRST_COMPLETED)
            tasks = [obeying, *self._busy, *([self._traffic] if self._traffic else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await reading
        say("left", delivered=self._delivered)

    async def _obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            command: Line = json.loads(line)
            if command["do"] == "leave":
                return
            task = asyncio.create_task(self._answer(command))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)

    async def _answer(self, command: Line) -> None:
        say("done", id=command["id"], **await self._commands[command["do"]](command))

    async def _read(self) -> None:
        last = 0
        async for group, event in self._floor:
            if isinstance(event, semcast.Message):
                assert event.order is not None
                if event.order <= last:
                    say("corrupt", order=[last, event.order])
                last = event.order
                self._delivered += 1
                if event.payload.startswith(MARK):
                    say("mark", mark=event.payload[len(MARK) :].decode())
            elif isinstance(event, semcast.ViewChange) and group == EVERYBODY:
                say("view", number=event.view.id, members=[each.name for each in event.view.members])
            elif isinstance(event, semcast.Rejoining):
                last = 0
                say("rejoining", cause=event.cause, unsettled=len(event.unsettled))

    async def _on_traffic(self, command: Line) -> Line:
        self._traffic = asyncio.create_task(self._work(random.Random(command.get("seed", 0))))
        return {}

    async def _work(self, rng: random.Random) -> None:
        """What programs do in domains, at random."""
        floor = self._floor
        for number in itertools.count():
            payload, here = b"%d" % number, {group.name: group for group in floor.groups()}
            choice, name = rng.random(), rng.choice(OTHERS)
            if choice < 0.05 and name not in here:
                await floor.join(name, flavour="vs" if name == "strict" else "evs")
            elif choice < 0.08 and name in here:
                await here[name].leave()
            elif choice < 0.4:
                await floor.send(EVERYBODY, payload, order="safe" if number % 5 == 0 else "agreed")
            elif choice < 0.5:
                await floor.cast([EVERYBODY, *OTHERS], payload)
            elif choice < 0.6:
                members = here[EVERYBODY].members()
                await floor.send_to(rng.choice(members or [floor.member]), payload)
            else:
                await floor.send_many(name, [payload] * 3)
            self._sent += 1
            await asyncio.sleep(_PAUSE)

    async def _on_quiet(self, command: Line) -> Line:
        if self._traffic is not None:
            self._traffic.cancel()
            result = await asyncio.gather(self._traffic, return_exceptions=True)
            if not isinstance(result[0], asyncio.CancelledError):
                say("error", text=repr(result[0]))
            self._traffic = None
        return {"sent": self._sent}

    async def _on_mark(self, command: Line) -> Line:
        await self._floor.send(EVERYBODY, MARK + command["text"].encode())
        return {}

    async def _on_burst(self, command: Line) -> Line:
        """Messages of which no two go the same way, so that each is an event of its own."""
        for number in range(command["count"]):
            await self._floor.cast([EVERYBODY, f"nobody {number}"], b"%d" % number)
        await self._floor.flush()
        return {}

    async def _on_block(self, command: Line) -> Line:
        """Do nothing at all, without giving others a chance, until there is a file of this name."""
        say("blocks")
        while not Path(command["until"]).exists():
            time.sleep(0.01)
        return {}


def main() -> None:
    """Run the program that the argument describes."""
    asyncio.run(Lodger(json.loads(sys.argv[1])).run())


if __name__ == "__main__":
    main()
