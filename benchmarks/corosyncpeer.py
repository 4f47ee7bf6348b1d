"""corosync CPG beside the daemons: three nodes on this host, a client of each that sends 64 B and reads all.

`SEMCAST_BENCH_COROSYNC` names a folder into which Debian's packages were unpacked (`dpkg-deb -x`: corosync,
libcpg4 and what they need); without it the installed ones are used. Each node has a host name and a mount
namespace of its own, with a /tmp, /run and /dev/shm that only it sees, so nothing outside changes; that takes
root. `python -m benchmarks.corosyncpeer` is a client.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.daemon import Process
from benchmarks.rows import Row, against

NODES, COUNT = 3, 50_000
_DONE = 1
_AGREED, _DISPATCH_ALL = 2, 2
_START = 20.0
"""Seconds until a client is in the group with all others."""
_CONFIGURATION = """totem {{
  version: 2
  cluster_name: bench
  transport: knet
  crypto_cipher: none
  crypto_hash: none
}}
nodelist {{
{nodes}}}
quorum {{
  provider: corosync_votequorum
}}
system {{
  sched_rr: no
  allow_knet_handle_fallback: yes
  state_dir: /run/corosync
}}
logging {{
  to_stderr: yes
  to_syslog: no
}}
"""
_NODE = "  node {{\n    ring0_addr: 127.0.0.{host}\n    nodeid: {number}\n    name: n{number}\n  }}\n"
_START_NODE = """set -e
hostname n{number}
mount --make-rprivate /
mkdir {folder}/etc && mount -t tmpfs t {folder}/etc && mkdir {folder}/etc/upper {folder}/etc/work
mount -t overlay o -o lowerdir=/etc,upperdir={folder}/etc/upper,workdir={folder}/etc/work /etc
mkdir -p /etc/libqb /etc/corosync && touch /etc/libqb/force-filesystem-sockets
cp {folder}/corosync.conf /etc/corosync/corosync.conf
mount -t tmpfs t /run && mkdir -p /run/corosync /run/root /run/here
mount --bind {root} /run/root
mount --bind {here} /run/here
mount -t tmpfs -o size=1G t /dev/shm
mount -t tmpfs t /tmp
exec {program} -f -c /etc/corosync/corosync.conf
"""


class PeerMissingError(Exception):
    """It cannot be run here: why."""


def row(ours: float) -> Row:
    """Our rate beside that of corosync, or why there is none."""
    try:
        theirs = rate()
    except PeerMissingError as error:
        return Row(f"corosync CPG: skipped, {error}", ours, "msg/s", 0, 0, "")
    return against("3 daemons, a client each, 64 B in lists / corosync CPG", ours, "msg/s", theirs, ">= 3")


def rate() -> float:
    """Messages a second of three clients that all send and all receive, at the slowest."""
    with nodes() as prefixes:
        clients = [Process("benchmarks.corosyncpeer", prefix=prefix) for prefix in prefixes]
        try:
            for each in clients:
                each.says()
            for each in clients:
                each.go_on()
            seconds: float = max(each.says()["seconds"] for each in clients)
            return NODES * COUNT / seconds
        finally:
            for each in clients:
                each.end()


@contextmanager
def nodes() -> Iterator[list[list[str]]]:
    """Three that run; gives what to put before a command for a client of each. Raises PeerMissingError."""
    root = os.environ.get("SEMCAST_BENCH_COROSYNC", "")
    program = "/run/root/usr/sbin/corosync" if root else shutil.which("corosync") or ""
    if not program or (root and not Path(root, "usr/sbin/corosync").exists()):
        raise PeerMissingError("corosync is not installed")
    if os.geteuid() != 0:
        raise PeerMissingError("corosync needs root")
    environment = dict(os.environ)
    if root:
        folders = [f"/run/root/{place}/x86_64-linux-gnu" for place in ("usr/lib", "lib")]
        environment["LD_LIBRARY_PATH"] = ":".join(folders)
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number in range(1, NODES + 1):
                running.append(_start(Path(folder), number, program, root or "/", environment))
            time.sleep(3)
            if any(each.poll() is not None for each in running):
                raise PeerMissingError("it did not start")
            there = ["env", "-C", "/run/here", f"LD_LIBRARY_PATH={environment.get('LD_LIBRARY_PATH', '')}"]
            yield [["nsenter", "-t", str(each.pid), "-m", *there] for each in running]
        finally:
            for each in running:
                each.kill()
                each.wait()


def _start(
    folder: Path, number: int, program: str, root: str, environment: dict[str, str]
) -> "subprocess.Popen[bytes]":
    own = folder / str(number)
    own.mkdir()
    all_nodes = "".join(_NODE.format(host=10 + each, number=each) for each in range(1, NODES + 1))
    (own / "corosync.conf").write_text(_CONFIGURATION.format(nodes=all_nodes))
    script = _START_NODE.format(number=number, folder=own, program=program, root=root, here=Path.cwd())
    return subprocess.Popen(  # noqa: S603
        ["unshare", "-m", "-u", "sh", "-c", script],  # noqa: S607
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class _Name(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("value", ctypes.c_char * 128))


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_char_p), ("size", ctypes.c_size_t))


_DELIVER = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.POINTER(_Name),
    ctypes.c_uint32,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_CHANGE = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.POINTER(_Name),
    *[ctypes.c_void_p, ctypes.c_size_t] * 3,
)


class _Callbacks(ctypes.Structure):
    _fields_ = (("deliver", _DELIVER), ("change", _CHANGE))


class Client:
    """Of one node, in the group `bench`."""

    def __init__(self) -> None:
        self.received = self.members = 0
        self._library: Any = ctypes.CDLL("libcpg.so.4")
        self._kept = _DELIVER(self._deliver), _CHANGE(self._change)
        self._callbacks = _Callbacks(*self._kept)
        self._handle = ctypes.c_uint64(0)
        library, name = self._library, _Name(5, b"bench")
        library.cpg_join.argtypes = [ctypes.c_uint64, ctypes.POINTER(_Name)]
        library.cpg_dispatch.argtypes = [ctypes.c_uint64, ctypes.c_int]
        library.cpg_mcast_joined.argtypes = [
            ctypes.c_uint64,
            ctypes.c_int,
            ctypes.POINTER(_Piece),
            ctypes.c_uint,
        ]
        until = time.monotonic() + _START
        handle, callbacks = ctypes.byref(self._handle), ctypes.byref(self._callbacks)
        while library.cpg_initialize(handle, callbacks) != _DONE:
            _wait(until)
        while library.cpg_join(self._handle, ctypes.byref(name)) != _DONE:
            _wait(until)
        while self.members < NODES:
            self.read()
            _wait(until)

    def _deliver(self, *_what: object) -> None:
        self.received += 1

    def _change(self, _handle: int, _group: object, _members: object, count: int, *_more: object) -> None:
        self.members = count

    def read(self) -> None:
        """What has come."""
        self._library.cpg_dispatch(self._handle, _DISPATCH_ALL)

    def talk(self, payload: bytes, count: int, total: int) -> None:
        """Send so many, as fast as it accepts them, and read until all have come."""
        piece = ctypes.byref(_Piece(payload, len(payload)))
        send, handle, left = self._library.cpg_mcast_joined, self._handle, count
        while self.received < total:
            while left and send(handle, _AGREED, piece, 1) == _DONE:
                left -= 1
                if not left % 64:
                    break
            self.read()


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError("no group of all in time")
    time.sleep(0.02)


def main() -> None:
    """Be a client: say when it is ready, and how long it took."""
    from benchmarks.daemonclients import PAYLOAD, say  # noqa: PLC0415

    client = Client()
    say(ready=True)
    sys.stdin.readline()
    began, used = time.perf_counter(), time.process_time()
    client.talk(PAYLOAD, COUNT, NODES * COUNT)
    say(seconds=time.perf_counter() - began, cpu=time.process_time() - used)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
