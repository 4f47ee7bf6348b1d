"""The walk of one message: which functions it passes from `send` at one member to `async for` at another.

`python tools/walk.py ring` prints them in the order in which they are first called, with the thread that does
so: the sender's loop, the receiver's, or the main thread, where both applications run. Functions of the
package only, each once; what a stack does meanwhile to keep its group together is among them.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from types import FrameType
from typing import Any

import semcast

PACKAGE = str(Path(semcast.__file__).parent)
WARM_UP = 20
SETTINGS: dict[str, dict[str, object]] = {"ring": {}, "vsync": {"stack": "vsync", "minimum": 2}}


class Walk:
    """Notes the functions that are called while it is `on`, by thread."""

    def __init__(self) -> None:
        self.on = False
        self.steps: dict[tuple[str, str, str], None] = {}
        """Who called, file and function."""

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """What `sys.setprofile` wants."""
        code = frame.f_code
        if self.on and event == "call" and code.co_filename.startswith(PACKAGE):
            place = str(Path(code.co_filename).relative_to(PACKAGE))
            name = threading.current_thread().name.removeprefix("semcast ").partition("#")[0]
            self.steps.setdefault((name, place, code.co_qualname))


async def walk(stack: str, noted: Walk) -> None:
    """Two members in one process; the last of several messages is watched on its way."""
    group, settings = f"walk-{token_hex(4)}", SETTINGS[stack]
    async with asyncio.TaskGroup() as tasks:
        ready = asyncio.Barrier(2)
        tasks.create_task(_receive(group, settings, ready, noted))
        tasks.create_task(_send(group, settings, ready, noted))


async def _receive(group: str, settings: dict[str, Any], ready: asyncio.Barrier, noted: Walk) -> None:
    async with semcast.join(group, name="receiver", **settings) as receiver:
        await _both(receiver)
        await ready.wait()
        async for event in receiver:
            if isinstance(event, semcast.Message) and event.payload == b"last":
                noted.on = False
                break
        await ready.wait()


async def _send(group: str, settings: dict[str, Any], ready: asyncio.Barrier, noted: Walk) -> None:
    async with semcast.join(group, name="sender", **settings) as sender:
        await _both(sender)
        await ready.wait()
        for _ in range(WARM_UP):
            await sender.send(b"before")
            await asyncio.sleep(0.02)
        noted.on = True
        await sender.send(b"last")
        await ready.wait()


async def _both(group: semcast.Group) -> None:
    async for event in group:
        if isinstance(event, semcast.ViewChange) and len(event.view.members) == 2:
            return


def report(noted: Walk, say: Callable[[str], None]) -> None:
    """One line a function, and how many there are."""
    functions = {(place, name) for _, place, name in noted.steps}
    for who, place, name in noted.steps:
        say(f"{who:12} {place:34} {name}")
    files = {place for place, _ in functions}
    say(f"{len(functions)} functions in {len(files)} files")


def main() -> int:
    """Walk with the stack that is named."""
    if len(sys.argv) != 2 or sys.argv[1] not in SETTINGS:
        print(f"usage: python tools/walk.py {'|'.join(SETTINGS)}", file=sys.stderr)
        return 2
    noted = Walk()
    threading.setprofile(noted.note)
    sys.setprofile(noted.note)
    asyncio.run(walk(sys.argv[1], noted))
    sys.setprofile(None)
    report(noted, print)
    return 0


if __name__ == "__main__":
    sys.exit(main())
