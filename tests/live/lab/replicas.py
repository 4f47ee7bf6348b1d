"""Real processes that are servers of one group, told what to do line by line."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60
ROOT = Path(__file__).parents[3]


class Process:
    """A program of this folder, with JSON lines in and out."""

    def __init__(self, program: str, **settings: Any) -> None:
        command = [sys.executable, "-m", f"tests.live.lab.{program}", json.dumps(settings)]
        self.running = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        )

    def ask(self, **command: Any) -> Any:
        """Have it do something, and wait for what it says."""
        self.tell(**command)
        return self.answer()

    def tell(self, **command: Any) -> None:
        """Have it do something."""
        assert self.running.stdin is not None
        self.running.stdin.write(json.dumps(command) + "\n")
        self.running.stdin.flush()

    def answer(self) -> Any:
        """What it says next."""
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        assert line, f"the process ended with {self.running.wait(PATIENCE)}"
        return json.loads(line)

    def kill(self) -> None:
        """kill -9."""
        self.running.send_signal(signal.SIGKILL)
        self.running.wait(PATIENCE)
        self._close()

    def end(self) -> None:
        """In good order."""
        assert self.running.stdin is not None
        self.running.stdin.close()
        code = self.running.wait(PATIENCE)
        self._close()
        assert code == 0

    def _close(self) -> None:
        for pipe in (self.running.stdin, self.running.stdout):
            if pipe is not None:
                pipe.close()


class Fleet:
    """Several of them, by name; none outlives a test."""

    def __init__(self, program: str, data: Path, names: str = "abc", **settings: Any) -> None:
        self._program, self._data, self._names, self._settings = program, data, names, settings
        self.processes: dict[str, Process] = {}

    def __enter__(self) -> "Fleet":
        for name in self._names:
            self.start(name)
        for process in self.processes.values():
            process.answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            if process.running.poll() is None:
                process.kill()

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]

    def start(self, name: str, **settings: Any) -> Process:
        """Begin, or begin again. It says something once it takes requests."""
        self.processes[name] = process = Process(
            self._program,
            **{"founders": list(self._names), **self._settings, **settings},
            name=name,
            data=str(self._data),
        )
        return process

    def kill(self, *names: str) -> None:
        """kill -9."""
        for name in names:
            self[name].kill()

    def all(self, **command: Any) -> list[Any]:
        """Have all who run do something at once; what they say."""
        running = [process for process in self.processes.values() if process.running.poll() is None]
        for process in running:
            process.tell(**command)
        return [process.answer() for process in running]


def chain(before: str, payload: bytes) -> str:
    """A hash of all payloads up to one."""
    return hashlib.blake2b(before.encode() + payload, digest_size=8).hexdigest()
