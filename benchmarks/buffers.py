"""Buffers: the purging buffer against deque.append, the buffer simulation against a plain queue.

Costs are in nanoseconds. Every measurement is cut into slices of about a millisecond, and the best round
of each slice counts: other programs use the machine, too, and take turns of a few milliseconds.
"""

import gc
from collections import deque
from collections.abc import Callable
from statistics import mean
from time import perf_counter_ns

from benchmarks.rows import Row, against
from semcast.core import Batch, Item, MemberId
from semcast.core.messages import batch_of
from semcast.models import Frd, ModelTraffic, Scenario, Stock, simulate
from semcast.obsolescence import PurgingBuffer

ADDS = 20_000
SLICE = 1_000
MESSAGES = 5_000
ROUNDS = 25
SENDER = MemberId("p")


def run() -> list[Row]:
    """All rows."""
    return [*_purging_buffer(), *_simulation()]


def _purging_buffer() -> list[Row]:
    small, large = _tagged(100), _tagged(10_000)
    one, fifty = _untagged(1), _untagged(50)
    costs = _best_of(
        append=lambda: _adding(deque[Batch]().append, small),
        small=lambda: _replacing(100, small),
        large=lambda: _replacing(10_000, large),
        one=lambda: _adding(PurgingBuffer().add, one),
        fifty=lambda: _adding(PurgingBuffer().add, fifty),
    )
    floor = costs["append"]
    return [
        against("add that purges one, buffer of 100 / deque.append", costs["small"], "ns", floor, "<= 25"),
        against("add that purges one, buffer of 10,000 / deque.append", costs["large"], "ns", floor, "<= 25"),
        against("add that purges one, buffer of 10,000 / 100", costs["large"], "ns", costs["small"], "<= 2"),
        against("add of 50 plain messages / of one", costs["fifty"], "ns", costs["one"], "<= 3"),
    ]


def _simulation() -> list[Row]:
    costs = _best_of(
        queue=lambda: _running(_plain_queue),
        f_rd=lambda: _running(_simulated(Scenario(100, 40, n=20), Frd(r=0.5, d=5))),
        stock=lambda: _running(_simulated(Scenario(100, 60, n=20), Stock())),
    )
    rates = {name: 1e9 / cost for name, cost in costs.items()}
    floor, target = rates["queue"], ">= 200,000 msg/s"
    return [
        against("buffer simulation, f_rd / deque", rates["f_rd"], "msg/s", floor, target),
        against("buffer simulation, stock / deque", rates["stock"], "msg/s", floor, target),
    ]


def _best_of(**measures: Callable[[], list[float]]) -> dict[str, float]:
    """The mean over slices of the lowest cost of each slice. The measures take turns."""
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(ROUNDS)]
    return {name: mean(map(min, zip(*(found[name] for found in rounds), strict=True))) for name in measures}


def _adding(add: Callable[[Batch], object], batches: list[Batch]) -> list[float]:
    """The cost of a batch, slice by slice; the collector is held off, as in timeit."""
    costs = []
    gc.collect()
    gc.disable()
    for start in range(0, len(batches), SLICE):
        part = batches[start : start + SLICE]
        began = perf_counter_ns()
        for batch in part:
            add(batch)
        costs.append((perf_counter_ns() - began) / len(part))
    gc.enable()
    return costs


def _replacing(size: int, batches: list[Batch]) -> list[float]:
    """The same for a buffer that is full of what the batches replace."""
    buffer = PurgingBuffer(limit_messages=size)
    for batch in batches[:size]:
        buffer.add(batch)
    costs = _adding(buffer.add, batches[size:])
    assert len(buffer.take_receipts()) == ADDS
    return costs


def _running(body: Callable[[], object]) -> list[float]:
    """The cost of a message, in one slice."""
    began = perf_counter_ns()
    body()
    return [(perf_counter_ns() - began) / MESSAGES]


def _tagged(items: int) -> list[Batch]:
    """Updates of so many items in turn: the first of each, and `ADDS` that replace one."""
    return [batch_of(SENDER, seq, [b"."], Item(f"item {seq % items}")) for seq in range(1, items + ADDS + 1)]


def _untagged(size: int) -> list[Batch]:
    return [batch_of(SENDER, 1 + size * n, [b"."] * size) for n in range(ADDS)]


def _simulated(scenario: Scenario, traffic: ModelTraffic) -> Callable[[], object]:
    return lambda: simulate(scenario, traffic, MESSAGES, warmup=0)


def _plain_queue() -> None:
    queue: deque[int] = deque()
    for seq in range(MESSAGES):
        queue.append(seq)
        if len(queue) >= 20:
            queue.popleft()
