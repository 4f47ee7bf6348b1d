"""The simulator with many members: what a delivery costs besides the protocol, in time and memory.

The stack hardly does anything, so that its cost is that of hosts, turns and network. Each run has a process
of its own: its peak of memory is its own, too.
"""

import resource
import sys
import time
from collections.abc import Sequence
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
from semcast.history import RunInfo
from semcast.history.schema import FIFO
from semcast.protocols.gossip import GossipSettings, Logger, Member
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import Data, Request
from semcast.sim.cluster import GROUP, Cluster, member_names
from semcast.sim.networks import Conditions, Network, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory, s_rm
from semcast.sim.swarm import report, violated
from semcast.sim.topologies import thirty, tiered
from semcast.sim.workloads import Source, plain, poisson
from semcast.specs import check

ROUND: Nanos = 250 * MILLISECOND
MILLION = 1_000_000
BUDGET_S, BUDGET_MB = 60.0, 1000.0
CELL_S = 6.0
SWARM, SWARM_S = 200, 180.0
LOGGED = "gossip with a logger"


def run() -> list[Row]:
    rows = []
    for network, members, recorded in (
        ("switched", 1000, False),
        ("routed", 1000, False),
        ("routed", 1000, True),
        ("routed", 3000, False),
    ):
        cell = _alone(network, members, MILLION / members / 10, "trivial", recorded)
        name = f"{members:,} members, {network}{', recorded and checked' if recorded else ''}, "
        name += f"{cell.deliveries:,} deliveries"
        rows.append(against(f"{name} / {BUDGET_S:.0f} s", cell.seconds, "s CPU", BUDGET_S, "<= 1"))
        rows.append(against(f"{name} / 1 GB", cell.megabytes, "MB", BUDGET_MB, "<= 1"))
    for stack, gossip in (("s-rm-250ms", "gossip each 250 ms"), ("s-rm", "gossip as set by default")):
        cell = _alone("thirty", 18, 360.0, stack)
        name = f"18 members, 1 % a link, S-RM, {gossip}, {cell.deliveries:,} deliveries / {CELL_S:.0f} s"
        rows.append(against(name, cell.seconds, "s CPU", CELL_S, "<= 1"))
    return rows + _gossip()


def _gossip() -> list[Row]:
    """rpbcast with a logger: 1,000 members, a cell of the paper's size, and a swarm."""
    rows = []
    for network, members, rate, budget in (
        ("lossy", 1000, MILLION / 1000 / 10, BUDGET_S),
        ("thirty", 18, 360.0, CELL_S),
    ):
        cell = _alone(network, members, rate, LOGGED)
        name = f"{members:,} members, 1 % a link, rpbcast with a logger, {cell.deliveries:,} deliveries"
        rows.append(against(f"{name} / {budget:.0f} s", cell.seconds, "s CPU", budget, "<= 1"))
        rows.append(against(f"{name} / 1 GB", cell.megabytes, "MB", BUDGET_MB, "<= 1"))
    began = time.process_time()
    broken = [seed for seed in range(SWARM) if report(seed, "rpbcast", None).broken]
    assert not broken, broken
    spent = time.process_time() - began
    rows.append(
        against(f"swarm of {SWARM} seeds, rpbcast / {SWARM_S:.0f} s", spent, "s CPU", SWARM_S, "<= 1")
    )
    return rows


class Cell(NamedTuple):
    """What one run cost."""

    deliveries: int
    seconds: float
    megabytes: float


def _alone(network: str, members: int, rate: float, stack: str, recorded: bool = False) -> Cell:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, network, members, rate, stack, recorded).result()


def _measure(network: str, members: int, rate: float, stack: str, recorded: bool) -> Cell:
    """Ten seconds of so many messages each; set-up counts, and the judgement where the run is recorded."""
    began = time.process_time()
    scheduler = Scheduler()
    cluster = Cluster(
        scheduler,
        _network(network, scheduler, members),
        _stack(stack, members),
        size=members,
        rng=Random(3),
        programs=Programs(sources=_sources(members - (stack == LOGGED), rate), observe=False),
        record=_info(members) if recorded else None,
        announces=stack == LOGGED,
        disks=stack == LOGGED,
    )
    cluster.start()
    cluster.run(10 * SECOND)
    if recorded:
        broken = violated(check(cluster.finish(quiesced=False)))
        assert not broken, broken
    spent = time.process_time() - began
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Cell(sum(host.stack.stats.delivered for host in cluster.hosts), spent, kilobytes / 1000)


def _info(members: int) -> RunInfo:
    return RunInfo.one(
        run="scale",
        group=GROUP,
        stack="s-rm",
        seed=1,
        members=member_names(members),
        buffer_limit=None,
        uniform=False,
        quiesced=False,
        order=FIFO,
    )


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
    conditions = Conditions(link_loss=0.01 if kind == "lossy" else 0.0)
    return RoutedNetwork(scheduler, Random(1), conditions, topology, range(12, 12 + members))


def _stack(name: str, members: int) -> StackFactory:
    if name == "trivial":
        return Trivial
    if name == LOGGED:
        return _rpbcast(GossipSettings(loggers=(member_names(members)[-1].name,)))
    settings = Settings(buffer_messages=4000)
    rare = msgspec.structs.replace(settings, gossip_period=ROUND, gossip_fanout=1)
    return s_rm(rare if name == "s-rm-250ms" else settings)


def _rpbcast(settings: GossipSettings) -> StackFactory:
    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        kind = Logger if me.name in settings.loggers else Member
        return kind(me, members, settings, rng, out)

    return build


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
    print(_measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], "record" in sys.argv))
