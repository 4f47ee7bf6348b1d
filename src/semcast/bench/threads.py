"""A member of a benchmark without asyncio: reads one by one, and sends from a thread of its own."""

import resource
import struct
import threading
import time
from typing import Any

import semcast
from semcast import blocking
from semcast.bench.case import Case
from semcast.bench.measuring import Figures

_STAMP = struct.Struct("<d")
LAST = b"last message of this sender "
AT_ONCE = 500


def run(group: str, number: int, case: Case, settings: dict[str, Any]) -> Figures:
    """Send a share, and count what comes until everybody's last message has."""
    with blocking.join(group, **settings) as joined:
        before = time.process_time()
        sending = threading.Thread(target=_send, args=(joined, case))
        if number < case.senders:
            sending.start()
        delivered, seconds = _read(joined, case)
        if number < case.senders:
            sending.join()
        used, usage = time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF)
        time.sleep(0.5)  # let the slower ones have the last messages before this one leaves
        return Figures(
            member=number,
            delivered=delivered,
            purged=joined.stats().stack.purged_delivery,
            seconds=seconds,
            cpu=used,
            memory_mb=usage.ru_maxrss / 1024,
            latency_ms=None,
            fresh_after=None,
        )


def _send(group: blocking.BlockingGroup, case: Case) -> None:
    group.wait_for(case.members)
    payloads, count = [bytes(max(case.size, _STAMP.size))] * AT_ONCE, case.count // case.senders
    for start in range(0, count, AT_ONCE):
        group.send_many(payloads[: count - start])
    group.send(_STAMP.pack(time.perf_counter()) + LAST)


def _read(group: blocking.BlockingGroup, case: Case) -> tuple[int, float]:
    """Messages, and the seconds from the first of them to the last."""
    delivered = ended = 0
    first = time.perf_counter()
    for event in group.events():
        if type(event) is semcast.Message:
            if not delivered:
                first = time.perf_counter()
            delivered += 1
            if event.payload.startswith(LAST, _STAMP.size):
                ended += 1
                if ended == case.senders:
                    break
    return delivered, time.perf_counter() - first
