"""The simulator and the swarm: deliveries a second of one core, beside the bare event loop."""

import time
from collections.abc import Iterator
from random import Random

from benchmarks.rows import Row, against
from semcast.core.ids import MICROSECOND, SECOND
from semcast.protocols.semantic import Settings
from semcast.sim.cluster import Cluster
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import s_rm
from semcast.sim.swarm import patrol
from semcast.sim.workloads import Content, Representation, Source, constant, overwrites, plain

MEMBERS = 5
SEEDS = 200


def run() -> list[Row]:
    floor = _bare_events()
    annotated = deliveries(overwrites(0.5, 5, Random(1), Representation()))
    unannotated = deliveries(plain())
    started = time.perf_counter()
    broken = sum(bool(report.broken) for report in patrol("s-rm", range(SEEDS)))
    seconds = time.perf_counter() - started
    target = ">= 40,000 deliveries/s"
    return [
        against("S-RM of 5, half annotated / bare events", annotated, "deliveries/s", floor, target),
        against("S-RM of 5, unannotated / bare events", unannotated, "deliveries/s", floor, target),
        against(f"swarm of {SEEDS} seeds, {broken} broken / 3 minutes", seconds, "s", 180.0, "<= 1"),
    ]


def deliveries(contents: Iterator[Content]) -> float:
    """Deliveries a second of processor time."""
    scheduler = Scheduler()
    network = SwitchedNetwork(scheduler, Random(2), MEMBERS, Conditions())
    cluster = Cluster(
        scheduler,
        network,
        s_rm(Settings(buffer_messages=400, senders=(0,))),
        size=MEMBERS,
        rng=Random(3),
        programs=Programs(sources={0: Source(constant(2000.0), contents)}, observe=False),
    )
    cluster.start()
    started = time.process_time()
    cluster.run(5 * SECOND)
    seconds = time.process_time() - started
    return sum(host.stack.stats.delivered for host in cluster.hosts) / seconds


def _bare_events(count: int = 200_000) -> float:
    """The floor: events a second of the scheduler, with nothing to do in them."""
    scheduler = Scheduler()

    def again(left: int) -> None:
        if left:
            scheduler.at(scheduler.now + MICROSECOND, again, left - 1)

    scheduler.at(0, again, count)
    started = time.process_time()
    scheduler.run(SECOND)
    return count / (time.process_time() - started)
