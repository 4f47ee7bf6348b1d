"""Virtual synchrony in memory: three stacks in one process, beside the same messages through a deque.

All of them send; nothing is lost, and only timers make time pass. Rates are of processor time. The kinds take
turns, and the best round of each counts: other programs use the machine, too.
"""

import time
from random import Random

import msgspec

from benchmarks.carrying import MEMBERS, Bench
from benchmarks.ring import AT_ONCE, PAYLOAD, deque_floor
from benchmarks.rows import Row, against
from semcast.core import Outbox
from semcast.protocols.vsync import Engine, Order, VirtualSynchrony, VsyncSettings

MESSAGES = 200_000
ROUNDS = 5
FRAME = 8000
LARGE_FRAME = 60_000

BASE = VsyncSettings(minimum=MEMBERS, buffer_messages=1 << 16, window=1 << 16, frame_bytes=FRAME)
KINDS = {
    "fifo": BASE,
    "causal": msgspec.structs.replace(BASE, order=Order.CAUSAL),
    "token": msgspec.structs.replace(BASE, order=Order.TOTAL, engine=Engine.TOKEN),
    "consensus": msgspec.structs.replace(BASE, order=Order.TOTAL, engine=Engine.CONSENSUS),
    "large": msgspec.structs.replace(BASE, frame_bytes=LARGE_FRAME),
    "small": msgspec.structs.replace(BASE, frame_bytes=1300),
}


def run() -> list[Row]:
    floor = deque_floor()
    best = dict.fromkeys(KINDS, 0.0)
    for _ in range(ROUNDS):
        for kind, settings in KINDS.items():
            best[kind] = max(best[kind], rate(settings))
    fifo, unit = best["fifo"], "messages/s"
    return [
        against("FIFO of 3, frames of 8 KB / deque", fifo, unit, floor, ">= 400,000 messages/s"),
        against("FIFO of 3, frames of 60 KB / deque", best["large"], unit, floor, ""),
        against("FIFO of 3, frames of 1300 B / deque", best["small"], unit, floor, ""),
        against("causal / FIFO", best["causal"], unit, fifo, ">= 0.80"),
        against("total, token / FIFO", best["token"], unit, fifo, ">= 0.50"),
        against("total, consensus / FIFO", best["consensus"], unit, fifo, ""),
    ]


def rate(settings: VsyncSettings) -> float:
    """Messages a second of processor time, delivered at all members."""
    bench = Bench(lambda member, number: VirtualSynchrony(member, settings, Random(number), Outbox()))
    bench.form()
    started = time.process_time()
    bench.spread([PAYLOAD] * AT_ONCE, MESSAGES)
    return MESSAGES / (time.process_time() - started)
