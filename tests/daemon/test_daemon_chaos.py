"""Daemons and programs that are killed at random; what the daemons recorded is judged.

`python -m tests.daemon.test_daemon_chaos 120` does so for as many seconds.
"""

import json
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from random import Random

from tests.daemon.processes import DaemonProcess, program

from semcast.history import read_history
from semcast.specs import check

NAMES = ("a", "b", "c")
PROGRAM = """
import sys, random, time, semcast_client as s
path, name, seed = sys.argv[1:]
rng = random.Random(seed)
while True:
    try:
        client = s.Client(path, name)
        client.socket.settimeout(30)
        for group in ("e0", "e1", "v0"):
            if rng.random() < 0.8:
                client.join(group, "vs" if group == "v0" else "evs")
        for n in range(10_000):
            group = rng.choice(("e0", "e0", "e1"))
            client.cast([group], [b"x"] * rng.randint(1, 5))
            client.settle()
            client.pending.clear()
            time.sleep(rng.random() / 50)
    except (s.SemcastError, OSError):
        time.sleep(0.1)
"""


def chaos(folder: Path, seconds: float, seed: int) -> dict[str, str]:
    """Let them run, and kill some now and then; returns what the checkers say of it."""
    rng, domain = Random(seed), f"chaos-{uuid.uuid4().hex}"
    record = ("--record", str(folder / "run"), "--record-run", "run")

    def daemon(name: str) -> DaemonProcess:
        return DaemonProcess(folder / f"{name}.sock", domain, name, *record)

    def client(number: int) -> "subprocess.Popen[str]":
        return program(PROGRAM, str(folder / f"{NAMES[number % 3]}.sock"), f"c{number}", str(rng.random()))

    daemons = {name: daemon(name) for name in NAMES}
    for each in daemons.values():
        each.ready()
    clients = {number: client(number) for number in range(6)}
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.3, 1.5))
            if rng.random() < 0.4:
                name = rng.choice(NAMES)
                daemons[name].kill()
                time.sleep(rng.choice((0.0, 0.5, 1.0)))
                daemons[name] = daemon(name).ready()
            else:
                number = rng.randrange(6)
                _end(clients[number])
                clients[number] = client(number)
    finally:
        for running in clients.values():
            _end(running)
        time.sleep(1.0)
        ends = [each.end() for each in daemons.values()]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    verdicts = check(read_history(folder / "run"))
    return {verdict.property: str(verdict) for verdict in verdicts if verdict.status.value == "violated"} | {
        "judged": json.dumps([verdict.property for verdict in verdicts])
    }


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_daemons_and_programs_are_killed(tmp_path: Path) -> None:
    found = chaos(tmp_path, 6.0, 7)
    assert "lw_settled" in found.pop("judged")
    assert found == {}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(chaos(Path(folder), float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
