"""`semcast logger` as a process: killed, stopped, started twice, with a full disk."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcast import blocking
from semcast.group.errors import SendTimeoutError

PATIENCE = 30.0


class Process:
    """A logger."""

    def __init__(self, folder: Path, group: str, *more: str, blocks: int = 0) -> None:
        command = [sys.executable, "-m", "semcast", "logger", str(folder), "--group", group, "--json", *more]
        if blocks:  # files may have so many kilobytes, about
            command = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", *command]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def says(self) -> dict[str, object]:
        assert self._process.stdout is not None
        found: dict[str, object] = json.loads(self._process.stdout.readline())
        return found

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        if self._process.poll() is None:
            self._process.send_signal(number)
        _, told = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, told

    def over(self) -> tuple[int, str]:
        """It ends by itself."""
        _, told = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, told


@pytest.fixture
def group() -> str:
    return f"logger {uuid.uuid4().hex}"


@pytest.fixture
def started(tmp_path: Path, group: str) -> Iterator[list[Process]]:
    processes: list[Process] = []
    yield processes
    for each in processes:
        each.kill()


def publish(group: blocking.BlockingGroup, *payloads: bytes) -> None:
    for payload in payloads:
        group.send(payload, logged=True, timeout=PATIENCE)


def fill(publisher: blocking.BlockingGroup) -> int:
    """Send until nothing is logged any more; how many messages were."""
    for number in range(1000):
        try:
            publisher.send(bytes(2000), logged=True, timeout=2.0)
        except SendTimeoutError:
            return number
    raise AssertionError


def replayed(folder: Path) -> list[str]:
    command = [sys.executable, "-m", "semcast", "log", "replay", str(folder), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line)["text"] for line in ran.stdout.splitlines()]


def test_what_is_logged_survives_kill_9(tmp_path: Path, group: str, started: list[Process]) -> None:
    started.append(Process(tmp_path, group, "--metrics", "127.0.0.1:0"))
    assert started[0].says()["messages"] == 0
    address = started[0].says()["address"]
    with blocking.join(group, stack="gossip", name="p", receive=False, durable=True) as publisher:
        publish(publisher, b"1", b"2")
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as answer:
            assert f'semcast_log_messages{{group="{group}"}} 2' in answer.read().decode()
        second = Process(tmp_path, group)
        started.append(second)
        code, told = second.over()
        assert code == 2
        assert "is in use by the logger with process id" in told
        started[0].kill()
        with pytest.raises(SendTimeoutError, match="no logger said"):
            publisher.send(b"3", logged=True, timeout=0.5)
        started.append(Process(tmp_path, group))
        assert started[-1].says()["messages"] == 2
        publish(publisher, b"4")
        assert started[-1].end() == (0, "")
    assert replayed(tmp_path) == ["1", "2", "3", "4"]


def there(address: object, group: str) -> int:
    """How many messages are in the log, by its metrics."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f'semcast_log_messages{{group="{group}"}} '):
                return int(line.split()[-1])
    raise AssertionError


@pytest.mark.parametrize("retention", ["live", "stable"])
def test_a_log_stays_below_its_bytes_whoever_is_away(
    retention: str, tmp_path: Path, group: str, started: list[Process]
) -> None:
    """Nothing is replaced, and a session needs all of it."""
    bounds = ("--retention", retention, "--bytes", "1kB", "--metrics", "127.0.0.1:0")
    started.append(Process(tmp_path, group, *bounds))
    started[0].says()
    address = started[0].says()["address"]
    with blocking.join(group, stack="gossip", name="p", receive=False, durable=True) as publisher:
        with blocking.subscribe(group, durable="desk-7", start="new"):
            pass
        sent = [b"%0100d" % number for number in range(50)]
        publish(publisher, *sent)
        until = time.monotonic() + PATIENCE
        while there(address, group) > 10 and time.monotonic() < until:
            time.sleep(0.05)
        assert there(address, group) == 10
        with blocking.subscribe(group, durable="desk-7", start="acknowledged") as desk:
            found: list[bytes] = []
            lost = 0
            for batch in desk.batches(PATIENCE):
                found += [message.payload for message in batch]
                lost += sum(each.last - each.first + 1 for each in batch.lost)
                if found and found[-1] == sent[-1]:
                    break
        assert found == sent[-10:]
        assert lost == 40
        assert started[0].end() == (0, "")


def test_a_full_disk_ends_it_and_loses_nothing(tmp_path: Path, group: str, started: list[Process]) -> None:
    started.append(Process(tmp_path, group, blocks=20))
    started[0].says()
    with blocking.join(group, stack="gossip", name="p", receive=False, durable=True) as publisher:
        logged = fill(publisher)
        code, told = started[0].over()
        assert code == 3
        assert "File too large: nothing can be kept any more" in told
        started.append(Process(tmp_path, group))
        found = started[-1].says()["messages"]
        assert isinstance(found, int)
        assert found >= logged
        publish(publisher, b"on")
    assert logged > 1
