"""Between a supervisor and the process of a member: lines of JSON on its standard input and output."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from semcast.processes import Line

MARK = b"mark:"
"""Messages that begin with it are looked for by all."""


def say(event: str, **about: Any) -> None:
    """A line for the supervisor."""
    print(json.dumps({"event": event, **about}), flush=True)


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

    async def stop(self) -> None:
        """Nothing more is carried out."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
