"""The compiled wheel beside the same sources interpreted: processor time a message, alternating, medians.

Make an environment with the wheel first, and say where its Python is:
`python -m tools.wheel --outdir W && python -m tools.wheel.environment W/*.whl E`, then
`SEMCAST_BENCH_COMPILED=E/bin/python python -m benchmarks compiled`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

import msgspec

from benchmarks.carrying import Bench
from benchmarks.ring import AT_ONCE, PAYLOAD
from benchmarks.rows import Row, against
from benchmarks.simulation import deliveries
from benchmarks.vsync import BASE
from semcast.bench import Case, measure
from semcast.core import Outbox
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.vsync import Engine, Order, VirtualSynchrony, VsyncSettings
from semcast.sim.workloads import plain

ROUNDS = 5
MESSAGES = 100_000
ROOT = Path(__file__).parents[1]


def _ring(packet_bytes: int) -> float:
    settings = RingSettings(
        packet_bytes=packet_bytes, queue_messages=1 << 20, send_messages=4 * AT_ONCE, adaptive=False
    )
    return _carried(Bench(lambda member, number: Ring(member, settings, Random(number), Outbox())))


def _vsync(settings: VsyncSettings) -> float:
    return _carried(
        Bench(lambda member, number: VirtualSynchrony(member, settings, Random(number), Outbox()))
    )


def _carried(bench: Bench) -> float:
    bench.form()
    started = time.process_time()
    bench.spread([PAYLOAD] * AT_ONCE, MESSAGES)
    return 1e6 * (time.process_time() - started) / MESSAGES


def _live(case: Case) -> float:
    figures = measure(case)
    return 1e6 * sum(each.cpu for each in figures) / figures[0].delivered


TOTAL = msgspec.structs.replace(BASE, order=Order.TOTAL, engine=Engine.TOKEN)
KINDS: dict[str, Callable[[], float]] = {
    "ring of 3 in memory, 64 B, packets of 1300 B": lambda: _ring(1300),
    "ring of 3 in memory, 64 B, packets of 8 KB": lambda: _ring(8000),
    "vsync of 3 in memory, 64 B, FIFO, frames of 8 KB": lambda: _vsync(BASE),
    "vsync of 3 in memory, 64 B, total, frames of 8 KB": lambda: _vsync(TOTAL),
    "vsync of 3 in memory, 64 B, FIFO, frames of 1300 B": lambda: _vsync(
        msgspec.structs.replace(BASE, frame_bytes=1300)
    ),
    "s-rm of 5 in the simulator": lambda: 1e6 / deliveries(plain()),
    "ring of 3, live, 64 B": lambda: _live(Case(count=1_000_000)),
    "ring of 3, live, 1 KiB": lambda: _live(Case(size=1024, count=200_000)),
    "ring of 3, live, 1 KiB, datagrams of 1400 B": lambda: _live(
        Case(size=1024, count=60_000, datagram=1400)
    ),
    "vsync of 3, live, FIFO, 1 KiB": lambda: _live(
        Case(stack="vsync", order="fifo", size=1024, count=200_000)
    ),
}
"""Processor time of all members, us a message."""


def run() -> list[Row]:
    pythons = {"compiled": os.environ["SEMCAST_BENCH_COMPILED"], "pure": sys.executable}
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(ROUNDS):
        for kind in KINDS:
            for name in sorted(pythons, reverse=bool(number % 2)):
                found.setdefault((kind, name), []).append(_one(pythons[name], kind, name))
    rows = []
    for kind in KINDS:
        pure, compiled = found[kind, "pure"], found[kind, "compiled"]
        rows.append(against(f"{kind}, pure / compiled", median(pure), "CPU us", median(compiled), ""))
    return rows


def _one(python: str, kind: str, name: str) -> float:
    command = [python, "-m", "benchmarks.compiled", kind]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    figure, file = ran.stdout.split()
    assert file.endswith(".so") == (name == "compiled"), file
    return float(figure)


if __name__ == "__main__":
    from semcast.protocols.ring import rotation

    print(KINDS[sys.argv[1]](), rotation.__file__)
