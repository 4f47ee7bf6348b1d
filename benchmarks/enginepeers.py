"""What people would use in the place of the engine, measured in the same run, as ratios.

PySyncObj and `grpcio` are used from the Python that `SEMCAST_BENCH_PYTHON` names, or from this one; etcd is
what `SEMCAST_BENCH_ETCD` names, or the one on the path (Debian: `etcd-server`). What is not there is skipped,
and the row says so.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.rows import Row, against
from benchmarks.servers import SIZE, folder

PYTHON = os.environ.get("SEMCAST_BENCH_PYTHON", sys.executable)
ETCD = os.environ.get("SEMCAST_BENCH_ETCD") or shutil.which("etcd")
COUNT = int(os.environ.get("SEMCAST_BENCH_PEER_ACTIONS", "30_000"))
_HERE = Path(__file__).parent


def rows(ours: float) -> list[Row]:
    """Our rate, durable, over theirs."""
    found: list[Row] = []
    for name, missing, peer in (
        ("PySyncObj with journal", "" if _has("pysyncobj") else "pysyncobj is not installed", pysyncobj),
        ("etcd, 100 puts a transaction", _without_etcd(), etcd),
    ):
        what = f"actions of 64 B, disk / {name}"
        if missing:
            found.append(Row(f"{what}: skipped, {missing}", ours, "a second", 0, 0, ""))
        else:
            found.append(against(what, ours, "a second", peer(), ">= 5"))
    return found


def _has(package: str) -> bool:
    return subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True).returncode == 0  # noqa: S603, PLW1510


def _without_etcd() -> str:
    if not ETCD:
        return "etcd is not installed"
    return "" if _has("grpc") else "grpcio is not installed"


def pysyncobj() -> float:
    """Actions a second."""
    with folder() as data:
        ports = [_port() for _ in range(3)]
        members = [
            _start([PYTHON, _HERE / "raftpeer.py", number, data, COUNT, SIZE, *ports]) for number in range(3)
        ]
        found = [_hear(each) for each in members]
        for each in members:
            each.kill()
            each.wait()
    return COUNT / max(each["wall"] for each in found)


def etcd() -> float:
    """Puts a second, from a client at each of three servers."""
    assert ETCD
    with folder() as data:
        clients, peers = [_port() for _ in range(3)], [_port() for _ in range(3)]
        cluster = ",".join(f"n{n}=http://127.0.0.1:{port}" for n, port in enumerate(peers))
        servers = [_etcd(ETCD, data, n, clients[n], peers[n], cluster) for n in range(3)]
        try:
            time.sleep(3)
            each = COUNT // 3
            loads = [_start([PYTHON, _HERE / "etcdpeer.py", port, each, SIZE]) for port in clients]
            for load in loads:
                _hear(load)
            for load in loads:
                assert load.stdin is not None
                load.stdin.write(b"\n")
                load.stdin.flush()
            found = [_hear(load) for load in loads]
            for load in loads:
                load.communicate()
        finally:
            for server in servers:
                server.kill()
                server.wait()
    return COUNT / max(load["wall"] for load in found)


def _etcd(
    program: str, data: str, number: int, client: int, peer: int, cluster: str
) -> "subprocess.Popen[bytes]":
    urls = {"client": f"http://127.0.0.1:{client}", "peer": f"http://127.0.0.1:{peer}"}
    options = {
        "name": f"n{number}",
        "data-dir": f"{data}/n{number}",
        "log-level": "error",
        "listen-client-urls": urls["client"],
        "advertise-client-urls": urls["client"],
        "listen-peer-urls": urls["peer"],
        "initial-advertise-peer-urls": urls["peer"],
        "initial-cluster": cluster,
    }
    return _start([program, *(f"--{name}={value}" for name, value in options.items())])


def _start(command: list[object]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _hear(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    assert process.stdout is not None
    found: dict[str, float] = json.loads(process.stdout.readline())
    return found


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
