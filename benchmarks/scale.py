"""The simulator with many members: what a delivery costs besides the protocol, in time and memory.

The stack hardly does anything, so that its cost is that of hosts, turns and network. Each run has a process
of its own: its peak of memory is its own, too.
"""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import NamedTuple

import msgspec

from benchmarks.rows import Row, against
from semcast.core.annotations import Annotation
from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import Data, Request
from semcast.sim.cluster import Cluster
from semcast.sim.networks import Conditions, Network, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory, s_rm
from semcast.sim.topologies import thirty, tiered
from semcast.sim.workloads import Source, plain, poisson

ROUND: Nanos = 250 * MILLISECOND
BUDGET_S, BUDGET_MB = 60.0, 1000.0
CELL_S = 6.0


def run() -> list[Row]:
    rows = []
    for members in (1000, 3000):
        for network in ("switched", "routed"):
            rate = 100.0 if members == 1000 else 100.0 / 3
            cell = _alone(_measure, network, members, rate, 10, "trivial")
            name = f"{members:,} members, {network}, {cell.deliveries:,} deliveries"
            rows.append(against(f"{name} / {BUDGET_S:.0f} s", cell.seconds, "s CPU", BUDGET_S, "<= 1"))
            rows.append(against(f"{name} / 1 GB", cell.megabytes, "MB", BUDGET_MB, "<= 1"))
    for stack, gossip in (("s-rm-250ms", "gossip each 250 ms"), ("s-rm", "gossip as set by default")):
        cell = _alone(_measure, "thirty", 18, 360.0, 10, stack)
        name = f"18 members, 1 % a link, S-RM, {gossip}, {cell.deliveries:,} deliveries / {CELL_S:.0f} s"
        rows.append(against(name, cell.seconds, "s CPU", CELL_S, "<= 1"))
    return rows


class Cell(NamedTuple):
    """What one run cost."""

    deliveries: int
    seconds: float
    megabytes: float


def _alone(call: Callable[..., Cell], *args: object) -> Cell:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *args).result()


def _measure(network: str, members: int, rate: float, seconds: int, stack: str) -> Cell:
    """Everybody sends; set-up counts."""
    began = time.process_time()
    scheduler = Scheduler()
    cluster = Cluster(
        scheduler,
        _network(network, scheduler, members),
        _stack(stack),
        size=members,
        rng=Random(3),
        programs=Programs(sources=_sources(members, rate), observe=False),
    )
    cluster.start()
    cluster.run(seconds * SECOND)
    spent = time.process_time() - began
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Cell(sum(host.stack.stats.delivered for host in cluster.hosts), spent, kilobytes / 1000)


def _sources(members: int, rate: float) -> dict[int, Source]:
    """A tenth of a large group sends, or all of a small one."""
    senders = min(members, 100)
    return {number: Source(poisson(rate / senders, Random(number)), plain()) for number in range(senders)}


def _network(kind: str, scheduler: Scheduler, members: int) -> Network:
    if kind == "switched":
        return SwitchedNetwork(scheduler, Random(1), members, Conditions())
    if kind == "thirty":
        return RoutedNetwork(scheduler, Random(1), Conditions(link_loss=0.01), *thirty(1, members))
    topology = tiered(Random(2), 3, 9, members)
    return RoutedNetwork(scheduler, Random(1), Conditions(), topology, range(12, 12 + members))


def _stack(name: str) -> StackFactory:
    if name == "trivial":
        return Trivial
    settings = Settings(buffer_messages=4000)
    rare = msgspec.structs.replace(settings, gossip_period=ROUND, gossip_fanout=1)
    return s_rm(rare if name == "s-rm-250ms" else settings)


class Round(Timer):
    """When a member talks to another."""

    NEXT = "next"


class Trivial(Stack):
    """Multicasts once, delivers what comes, and asks a random member something in every round."""

    def __init__(self, me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> None:
        self.out, self.stats = out, Statistics()
        self._members, self._rng = members, rng
        self._me, self._rank = me, members.index(me)
        self._view = View(1, tuple(members))
        self._sent = 0
        self._arrived: list[Batch] = []

    def start(self, now: Nanos) -> None:
        self.out.set_timer(Round.NEXT, now + self._rng.randrange(ROUND))

    def phase(self) -> str:
        return "operational"

    def view(self) -> View:
        return self._view

    def multicast(
        self,
        now: Nanos,  # noqa: ARG002
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        first, count = self._sent + 1, len(payloads)
        self._sent += count
        self.stats.sent += count
        self.out.multicast(Data(self._rank, first, list(payloads)))
        self._arrived.append(Batch(self._me, first, list(payloads)))
        return count

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:  # noqa: ARG002
        if isinstance(frame, Data):
            self._arrived.append(Batch(source, frame.first, frame.payloads))

    def on_timer(self, now: Nanos, timer: Timer) -> None:  # noqa: ARG002
        other = self._rng.randrange(len(self._members) - 1)
        peer = self._members[other + (other >= self._rank)]
        self.out.send(peer, Request(self._rank, [(1, max(1, self._sent))]))
        self.out.set_timer(Round.NEXT, now + ROUND)

    def deliver(self, now: Nanos, most: int) -> Sequence[Batch]:  # noqa: ARG002
        arrived, self._arrived = self._arrived, []
        self.stats.delivered += sum([len(batch.payloads) for batch in arrived])
        return arrived

    def deliverable(self) -> bool:
        return bool(self._arrived)

    def buffered(self) -> int:
        return len(self._arrived)


if __name__ == "__main__":  # one cell, to profile
    print(_measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
