"""The reference client beside a daemon that says why it leaves, and closes, before the client has read it."""

import importlib
import socket
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.daemon.processes import CLIENTS, PATIENCE

SAID = """
import sys
import semcast_client as s

client = s.Client(sys.argv[1])
client.seq = 1
sys.stdin.read()
try:
    READS
except s.SemcastError as error:
    print(error)
"""


def encoder() -> ModuleType:
    """The reference client, as a module."""
    return importlib.import_module("semcast_client")


def frame(*fields: object) -> bytes:
    """As the daemon writes it."""
    body: bytes = encoder().pack(list(fields))
    return struct.pack(">I", len(body)) + body


@pytest.fixture(autouse=True)
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CLIENTS / "python"))
    monkeypatch.setenv("PYTHONPATH", str(CLIENTS / "python"))


@pytest.mark.parametrize(
    "reads", ["for _ in client.events(): pass", "client.cast(['g'], [b'x'])", "client.settle()"]
)
def test_its_last_words_are_read(tmp_path: Path, reads: str) -> None:
    """What the client answers, and asks for, goes nowhere: that hides nothing."""
    kinds = encoder()
    where = str(tmp_path / "d.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(where)
        door.listen()
        door.settimeout(PATIENCE)
        program = subprocess.Popen(
            [sys.executable, "-c", SAID.replace("READS", reads), where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        daemon, _ = door.accept()
        daemon.recv(1 << 16)
        daemon.sendall(frame(kinds.WELCOME, 1, ["c", 1], ["d", 1], "domain", [], 10, 1 << 16, 1 << 16))
        daemon.sendall(
            frame(kinds.CREDITS, 1, 1)
            + frame(kinds.PLACED, 0) * 3
            + frame(kinds.LEFT, "the daemon left: asked to")
        )
        daemon.close()
        said, _ = program.communicate("", timeout=PATIENCE)
    assert said.splitlines() == ["the daemon left: asked to"]
