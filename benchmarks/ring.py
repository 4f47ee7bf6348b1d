"""The ring in memory: three stacks in one process, no network, beside the same messages through a deque."""

import time
from collections import deque
from random import Random

from benchmarks.carrying import MEMBERS, Bench
from benchmarks.rows import Row, against
from semcast.core import Outbox
from semcast.protocols.ring import Ring, RingSettings

MESSAGES = 300_000
AT_ONCE = 1000
PAYLOAD = b"x" * 64


def run() -> list[Row]:
    floor = deque_floor()
    target = ">= 600,000 messages/s"
    return [
        against("ring of 3, packets of 1300 B / deque", _ring(1300), "messages/s", floor, target),
        against("ring of 3, packets of 8 KB / deque", _ring(8000), "messages/s", floor, target),
        against("ring of 3, not accelerated / deque", _ring(1300, accelerated=0), "messages/s", floor, ""),
    ]


def _ring(packet_bytes: int, accelerated: int = 16) -> float:
    """Messages a second of processor time, ordered and delivered at all members."""
    settings = RingSettings(
        packet_bytes=packet_bytes,
        queue_messages=1 << 20,
        send_messages=4 * AT_ONCE,
        adaptive=False,
        accelerated=accelerated,
    )
    bench = Bench(lambda member, number: Ring(member, settings, Random(number), Outbox()))
    bench.form()
    started = time.process_time()
    bench.spread([PAYLOAD] * AT_ONCE, MESSAGES)
    return MESSAGES / (time.process_time() - started)


def deque_floor() -> float:
    """The floor: the same messages through a queue for each member, one by one."""
    queues: list[deque[bytes]] = [deque() for _ in range(MEMBERS)]
    started = time.process_time()
    for _ in range(MESSAGES // AT_ONCE):
        for _ in range(AT_ONCE):
            for queue in queues:
                queue.append(PAYLOAD)
        for queue in queues:
            while queue:
                queue.popleft()
    return MESSAGES / (time.process_time() - started)
