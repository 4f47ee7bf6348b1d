"""Daemons and their clients as processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from semcast.daemon.asking import ask

PATIENCE = 30.0
CLIENTS = Path(__file__).parents[2] / "examples" / "clients"


class DaemonProcess:
    """One daemon."""

    def __init__(self, socket: Path, domain: str, name: str, *more: str) -> None:
        self.socket = str(socket)
        command = ["daemon", "--socket", self.socket, "--domain", domain, "--name", name, "--json", *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "semcast", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.doors: list[str] = []

    def says(self) -> dict[str, Any]:
        """What happens next."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def ready(self) -> "DaemonProcess":
        """Wait until it serves."""
        self.doors = self.says()["doors"]
        return self

    def asked(self, what: str, about: str = "") -> Any:
        """What it says of itself."""
        return json.loads(ask(self.socket, what, about))

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Like `kill -9`."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """Ask it to end; returns its code, and what it said to people."""
        self.process.send_signal(signal.SIGTERM)
        _, told = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, told


def program(text: str, *arguments: str) -> "subprocess.Popen[str]":
    """A program of a user: the reference client is there to be imported."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENTS / "python")}
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )


def finished(process: "subprocess.Popen[str]") -> str:
    """What a program said until it ended well."""
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return said


STAYS = """
import sys, time, semcast_client as s
client = s.Client(sys.argv[1])
client.join(sys.argv[2])
time.sleep(99)
"""
"""Joins a group, and never reads."""
SENDS = """
import sys, semcast_client as s
client = s.Client(sys.argv[1])
client.cast([sys.argv[2]], [b'yo'])
client.settle()
"""
