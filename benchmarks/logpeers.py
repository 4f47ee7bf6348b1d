"""What people would use in the place of a logger, measured in the same run, as ratios.

JetStream is the `nats-server` on the path or what `SEMCAST_BENCH_NATS` names, Redis the `redis-server` or
what `SEMCAST_BENCH_REDIS` names (Debian has both). What is not there is skipped, and the row says so.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.logclients import JetStream, RedisStream
from benchmarks.rows import Row, against
from benchmarks.servers import folder

NATS = os.environ.get("SEMCAST_BENCH_NATS") or shutil.which("nats-server")
REDIS = os.environ.get("SEMCAST_BENCH_REDIS") or shutil.which("redis-server")
COUNT = int(os.environ.get("SEMCAST_BENCH_PEER_MESSAGES", "20_000"))
_PATIENCE = 15


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages a second."""

    ingest: float
    replay: float


@dataclass(frozen=True, slots=True)
class Peer:
    """A server with certain settings."""

    name: str
    synced: bool
    """Whether what is acknowledged is on disk."""
    measure: Callable[[int], Rates]


def peers() -> list[Peer]:
    """All that can be compared with."""
    return [
        Peer("JetStream, sync always", True, lambda size: _jetstream(size, always=True)),
        Peer("JetStream", False, lambda size: _jetstream(size, always=False)),
        Peer("Redis stream, appendfsync always", True, lambda size: _redis(size, "always")),
        Peer("Redis stream, appendfsync everysec", False, lambda size: _redis(size, "everysec")),
    ]


def rows(ours: Rates, size: int) -> list[Row]:
    """Our rates over theirs, for messages of this size."""
    found: list[Row] = []
    for peer in peers():
        try:
            theirs = peer.measure(size)
        except _MissingError as missing:
            found.append(Row(f"{peer.name}: skipped, {missing}", 0, "messages/s", 0, 0, ""))
            continue
        target = ">= 1" if peer.synced else ""
        found += [
            against(f"logged, {size} B / {peer.name}", ours.ingest, "messages/s", theirs.ingest, target),
            against(f"replay, {size} B / {peer.name}", ours.replay, "messages/s", theirs.replay, ""),
        ]
    return found


class _MissingError(Exception):
    """A peer cannot be measured."""


def _jetstream(size: int, *, always: bool) -> Rates:
    if not NATS:
        raise _MissingError("nats-server is not installed")
    with folder() as data:
        sync = ", sync_interval: always" if always else ""
        settings = Path(data) / "nats.conf"
        settings.write_text(f'jetstream {{ store_dir: "{data}/store"{sync} }}\n')
        port = _port()
        with _running([NATS, "-a", "127.0.0.1", "-p", str(port), "-c", str(settings)], port):
            return _rates(JetStream(port), size)


def _redis(size: int, sync: str) -> Rates:
    if not REDIS:
        raise _MissingError("redis-server is not installed")
    with folder() as data:
        port = _port()
        options = {"port": port, "dir": data, "save": "", "appendonly": "yes", "appendfsync": sync}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with _running([REDIS, *words], port):
            return _rates(RedisStream(port), size)


def _rates(client: JetStream | RedisStream, size: int) -> Rates:
    with client:
        began = time.perf_counter()
        client.publish(COUNT, size)
        between = time.perf_counter()
        client.replay(COUNT)
        ended = time.perf_counter()
    return Rates(COUNT / (between - began), COUNT / (ended - between))


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _await(server, port)
        yield
    finally:
        server.kill()
        server.wait()


def _await(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Until it can be reached; a server that does not know a setting ends at once."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise _MissingError("this version does not know the setting")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise _MissingError(f"it cannot be reached after {_PATIENCE} s")


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
