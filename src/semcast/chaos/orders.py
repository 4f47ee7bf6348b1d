"""Between a supervisor and the process of a member: lines of JSON on its standard input and output."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from semcast.processes import Line

MARK = b"mark:"
"""Messages that begin with it are looked for by all."""


def say(event: str, **about: Any) -> None:
    """A line for the supervisor."""
    print(json.dumps({"event": event, **about}), flush=True)


class Opened(Protocol):
    """A group, or a server of a service."""

    def __aenter__(self) -> Coroutine[Any, Any, object]:
        """Become a member."""

    async def close(self) -> None:
        """Leave, and stop."""


class Orders:
    """What a member is told to do: `leave`, or one of these.

    Args:
        what: how each order is carried out; orders run beside each other.
    """

    def __init__(self, what: Mapping[str, Callable[[Line], Awaitable[None]]]) -> None:
        self.leaving = asyncio.Event()
        """Set when it is told to leave, or when nobody is there to tell."""
        self.ready = asyncio.Event()
        """Orders wait until it is set."""
        self._what = what
        self._busy: set[asyncio.Task[None]] = set()

    async def obey(self) -> None:
        """Until it is told to leave."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            order: Line = json.loads(line)
            if order["do"] == "leave":
                break
            task = asyncio.create_task(self._do(order))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)
        self.leaving.set()

    async def _do(self, order: Line) -> None:
        await self.ready.wait()
        await self._what[order["do"]](order)

    async def follow(self, opened: Opened, work: Callable[[asyncio.Task[bool]], Awaitable[None]]) -> None:
        """Enter what was opened, work there until told to leave, and close it: all of a process's life."""
        obeying = asyncio.create_task(self.obey())
        entering = asyncio.create_task(opened.__aenter__())
        leaving = asyncio.create_task(self.leaving.wait())
        await asyncio.wait([entering, leaving], return_when=asyncio.FIRST_COMPLETED)
        try:
            if entering.done():
                await entering
                say("joined")
                await work(leaving)
        finally:
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            await opened.close()
            obeying.cancel()
        say("left")

    async def watch(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Until told to leave. What a task raises ends the process."""
        self.ready.set()
        try:
            while not self.leaving.is_set():
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    await task
                tasks -= done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.stop()

    async def stop(self) -> None:
        """Nothing more is carried out."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
