"""A process of ours: it is told things on its standard input, and tells, a JSON object a line either way."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from semcast.extensions import VARIABLE

Line = dict[str, Any]


class Child:
    """One run of a module. Of the environment's `SEMCAST_*` only the families of others are passed on.

    Args:
        module: of Python, run as a program.
        arguments: for it.
        hear: called with every line that it says.
        prefix: the command that runs it somewhere else.
        folder: to run it in.
        errors: file that its standard error is appended to.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        hear: Callable[[Line], None],
        *,
        prefix: Sequence[str] = (),
        folder: Path | None = None,
        errors: Path | None = None,
    ) -> None:
        self.ended = False
        """Whether it is over, and everything that it said was heard."""
        self._command = [*prefix, sys.executable, "-m", module, *arguments]
        self._hear = hear
        self._folder = folder
        self._errors = errors
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it."""
        environment = {key: value for key, value in os.environ.items() if not _is_setting(key)}
        errors = None if self._errors is None else self._errors.open("ab")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._folder,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        finally:
            if errors is not None:
                errors.close()
        self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(json.JSONDecodeError):  # the last line of one that was killed
                self._hear(json.loads(line))
        await process.wait()
        self.ended = True

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def tell(self, what: Line) -> None:
        """Say something to it. Who is dead does not hear it."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            await self._process.stdin.drain()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it is over."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def wait(self, seconds: float) -> int:
        """How it ended; raises TimeoutError where it does not."""
        assert self._process is not None
        assert self._reader is not None
        async with asyncio.timeout(seconds):
            await asyncio.shield(self._reader)
            return await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL: it has no time for anything."""
        if self.running:
            self.signal(signal.SIGKILL)
        if self._reader is not None:
            await self._reader


def _is_setting(variable: str) -> bool:
    return variable.startswith("SEMCAST_") and variable != VARIABLE
