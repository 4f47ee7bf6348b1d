"""Servers of a database as real processes: `semcast serve`, as people start it."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any

PATIENCE = 30.0


class Server:
    """One process."""

    def __init__(self, words: Sequence[str], most_bytes: int = 0) -> None:
        command = [sys.executable, "-m", "semcast", "serve", *words, "--json"]
        if most_bytes:  # of a file: as on a full disk, no more can be written
            command = ["prlimit", f"--fsize={most_bytes}", *command]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, **wanted: Any) -> dict[str, Any]:
        """Wait until it says something with these values."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for said in self.said[::-1]:
                if {key: said.get(key) for key in wanted} == wanted:
                    return said
            try:
                self.said.append(json.loads(self._lines.get(timeout=deadline - time.monotonic())))
            except (queue.Empty, ValueError):
                raise AssertionError(f"{wanted} was not said: {self.said}, {self.end()}") from None

    def forget(self) -> None:
        """Only what is said from now on counts."""
        self.said.clear()

    @property
    def address(self) -> str:
        return str(self.until(event="serving")["address"])

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Wait until it is over, after a signal; how it ended, and what it complained of."""
        if number is not None:
            self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE if number is not None else 1)
        except subprocess.TimeoutExpired:
            self.process.kill()
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        self._reader.join()
        self.process.stderr.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(), errors


class Servers:
    """Some that find each other, on this host."""

    def __init__(self, data: Path, names: str = "abc") -> None:
        self.database = f"db-{token_hex(4)}"
        self._data = data
        self._founders = ",".join(names)
        self._running: dict[str, Server] = {}
        try:
            for name in names:
                self.start(name)
            for name in names:
                self[name].until(event="state", primary=True, view=list(names))
        except BaseException:  # nobody is left behind
            self.__exit__(None, None, None)
            raise

    def start(self, name: str, *words: str) -> Server:
        """Start one, or start it again."""
        first = () if words else ("--with", self._founders)
        options = ("--data", os.fspath(self._data / name), "--name", name, "--listen", "127.0.0.1:0")
        self._running[name] = Server([self.database, *options, *first, *words])
        return self._running[name]

    def __getitem__(self, name: str) -> Server:
        return self._running[name]

    def addresses(self, names: str = "abc") -> list[str]:
        return [self[name].address for name in names]

    def __enter__(self) -> "Servers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._running.values():
            if server.process.poll() is None:
                server.kill()
            elif server.process.stderr is not None and not server.process.stderr.closed:
                server.end()
