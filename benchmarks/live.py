"""Live groups of three processes on loopback, beside the same bytes with no protocol, and beside peers.

Rates are the better of two runs: other programs use the machine, too.
"""

import socket
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from benchmarks import peers
from benchmarks.rows import Row, against
from semcast.bench import Case, measure
from semcast.net.keyfile import new_key, save_keyring
from semcast.wire.keyring import Keyring

PACKET = 59_000
PACKETS = 4000
RUNS = 2


def run() -> list[Row]:
    small, large = _floor(64), _floor(1024)
    agreed, single = _rate(Case()), _rate(Case(reading="single"))
    rows = [
        against("ring, 64 B, batches / bare UDP", agreed, "messages/s", small, ">= 1,000,000"),
        against("ring, 64 B, one by one / bare UDP", single, "messages/s", small, ">= 400,000"),
        against(
            "ring, 64 B, one by one, blocking / asyncio",
            _rate(Case(reading="blocking")),
            "messages/s",
            single,
            ">= 0.5",
        ),
        against("ring, 64 B, safe / agreed", _rate(Case(order="safe")), "messages/s", agreed, ">= 0.8"),
        against("ring, 64 B, all send / one sends", _rate(Case(senders=3)), "messages/s", agreed, ">= 1"),
        against(
            "ring, 1 KiB / bare UDP", _rate(Case(size=1024, count=200_000)), "messages/s", large, ">= 400,000"
        ),
        against(
            "ring, 1 KiB, datagrams of 1400 B / bare UDP",
            _rate(Case(size=1024, count=60_000, datagram=1400)),
            "messages/s",
            large,
            ">= 130,000",
        ),
        against(
            "ring, 64 B, 50 items / no items",
            _rate(Case(items=50, count=300_000)),
            "messages/s",
            agreed,
            ">= 0.4",
        ),
        against("s-rm, 64 B / ring", _rate(Case(stack="s-rm", order="fifo")), "messages/s", agreed, ">= 1"),
        *_synchrony(agreed),
        against("ring, 64 B, sealed / not", _sealed(), "messages/s", agreed, ">= 0.65"),
        against("ring, 64 B, recorded / not", _recorded(), "messages/s", agreed, ">= 0.85"),
    ]
    figures = measure(Case(rate=1000.0, count=3000))
    worst = max(each.latency_ms or (0.0, 0.0) for each in figures)
    rows.append(against("latency at 1,000/s, median / 0.6 ms", worst[0], "ms", 0.6, "<= 1"))
    rows.append(against("latency at 1,000/s, 99 % / 3 ms", worst[1], "ms", 3.0, "<= 1"))
    rows += _slow_member()
    return rows + _peers(agreed)


def _rate(case: Case) -> float:
    """At the slowest member."""
    return max(min(each.rate for each in measure(case)) for _ in range(RUNS))


def _synchrony(agreed: float) -> list[Row]:
    fifo = _rate(Case(stack="vsync", order="fifo"))
    causal = _rate(Case(stack="vsync", order="causal"))
    total = _rate(Case(stack="vsync", order="total"))
    return [
        against("vsync, 64 B, fifo / ring", fifo, "messages/s", agreed, ">= 1"),
        against("vsync, 64 B, causal / fifo", causal, "messages/s", fifo, ">= 0.8"),
        against("vsync, 64 B, total / fifo", total, "messages/s", fifo, ">= 0.5"),
    ]


def _sealed() -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.toml"
        key = new_key()
        save_keyring(path, Keyring([key], key.id), replace=False)
        return _rate(Case(key_file=str(path)))


def _recorded() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _rate(Case(record=folder))


def _slow_member() -> list[Row]:
    """One application blocks 10 ms with each message: the others' rate, and how soon it is up to date."""
    case = Case(items=50, count=400_000)
    asleep = msgspec.structs.replace(case, sleeping=10.0)
    alone, kept, fresh = _rate(case), 0.0, 0.0
    for _ in range(RUNS):
        beside = measure(asleep)
        kept = max(kept, min(each.rate for each in beside[:-1]))
        fresh = max(fresh, beside[-1].fresh_after or 0.0)
    return [
        against("50 items, one member asleep / none", kept, "messages/s", alone, ">= 0.95"),
        against("the sleeper has the last values after / 1 s", fresh, "s", 1.0, "<= 1"),
    ]


def _peers(agreed: float) -> list[Row]:
    measured = {
        "pyzmq, no drop": (peers.pyzmq(64, 200_000), ">= 1.5"),
        "zenoh, block": (peers.zenoh(64, 100_000), ""),
        "PySyncObj": (peers.pysyncobj(64, 20_000), ">= 5"),
    }
    return [
        against(f"ring, 64 B / {name}", agreed, "messages/s", rate, target)
        for name, (rate, target) in measured.items()
        if rate is not None
    ]


def _floor(size: int) -> float:
    """The same bytes from one process to two, in full datagrams, with acknowledgements and nothing else."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    readers = [context.Process(target=_swallow, args=(theirs,), daemon=True) for _, theirs in pipes]
    for reader in readers:
        reader.start()
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(("127.0.0.1", 0))
    ports = [ours.recv() for ours, _ in pipes]
    payload = bytes(PACKET)
    started = time.perf_counter()
    for number in range(PACKETS):
        for port in ports:
            own.sendto(payload, ("127.0.0.1", port))
        if number % 16 == 15:
            for _ in ports:
                own.recv(16)
    seconds = time.perf_counter() - started
    for reader in readers:
        reader.kill()
        reader.join()
    own.close()
    return PACKETS * PACKET / size / seconds


def _swallow(pipe: "Connection[int, None]") -> None:
    inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inbox.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    inbox.bind(("127.0.0.1", 0))
    pipe.send(inbox.getsockname()[1])
    count = 0
    while True:
        _, sender = inbox.recvfrom(1 << 16)
        count += 1
        if count % 16 == 0:
            inbox.sendto(b"ok", sender)
