"""Run one scenario: a plain function from a scenario to its history and figures."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.history import History, RunInfo
from semcast.sim.cluster import DATAGRAM_LIMIT, GROUP, Cluster, member_names
from semcast.sim.families import FAMILIES
from semcast.sim.hosts import CpuModel
from semcast.sim.mutants import Mutant
from semcast.sim.networks import IP_OVERHEAD, Conditions, Network, SharedSegment, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scenario import BANDWIDTH, Scenario, Traffic
from semcast.sim.scheduler import Scheduler
from semcast.sim.statistics import HostStatistics
from semcast.sim.topologies import tiered
from semcast.sim.traces import read_trace, replay_arrivals, replay_contents
from semcast.sim.workloads import (
    Bitmaps,
    Content,
    Enumerated,
    Representation,
    Source,
    bursts,
    constant,
    operations,
    overwrites,
    plain,
    poisson,
    shared,
    stocks,
)

PATIENCE: Nanos = 120 * SECOND


class RunOutcome(msgspec.Struct):
    """What came of a run."""

    history: History
    beside: list[History]
    """Of processes that are no members: clients, and their calls."""
    settled: bool
    stuck: list[MemberId]
    """Correct members whose application still waits to send."""
    views: dict[MemberId, View | None]
    """The last view of each correct member's application."""
    united_after: Nanos | None
    """How long after healing all came to be in one view for good; None if they did not."""
    stacks: list[Statistics]
    hosts: list[HostStatistics]
    raised: int
    """Calls of `send` that failed because their program had to read first."""
    unanswered: list[MemberId]
    """Correct members that never said what became of a message they were asked about."""
    oversized: int
    """Datagrams that the network could not carry."""
    steps: int
    ended: Nanos


def simulate(scenario: Scenario, mutant: Mutant | None = None, most: int = 0) -> RunOutcome:
    """Run with faults for the scenario's duration, then heal everything and wait for what is owed.

    With `most`, `EndlessRunError` where it takes more steps than that.
    """
    cluster = build(scenario, mutant or Mutant(), most)
    cluster.schedule(scenario.faults)
    cluster.start(scenario.late)
    cluster.run(scenario.duration)
    cluster.heal()
    settled = cluster.settle(PATIENCE)
    return RunOutcome(
        history=cluster.finish(quiesced=True),
        beside=FAMILIES.of(scenario.stack).beside([host.stack for host in cluster.hosts if not host.crashed]),
        settled=settled,
        stuck=[host.member for host in cluster.hosts if host.waiting and not host.crashed],
        views={host.member: host.view for host in cluster.hosts if not host.crashed},
        united_after=cluster.united_after,
        stacks=[host.stack.stats for host in cluster.hosts],
        hosts=[host.stats for host in cluster.hosts],
        raised=sum(host.application.raised for host in cluster.hosts),
        unanswered=[host.member for host in cluster.hosts if host.owed and not host.crashed],
        oversized=cluster.network.oversized,
        steps=cluster.scheduler.steps,
        ended=cluster.scheduler.now,
    )


def build(scenario: Scenario, mutant: Mutant, most: int = 0) -> Cluster:
    """The cluster a scenario describes, ready to start; ValueError if its family has no groups so large."""
    largest = FAMILIES.of(scenario.stack).largest
    if largest is not None and scenario.size > largest:
        raise ValueError(f"{scenario.stack}: {scenario.size} members, a group has {largest} at most")
    seeds = Random(scenario.seed)
    scheduler = Scheduler(most)
    members = member_names(scenario.size, scenario.name_bytes)
    family = FAMILIES.of(scenario.stack)
    info = RunInfo.one(
        run=f"{scenario.stack}-{scenario.seed}",
        group=GROUP,
        stack=scenario.stack,
        seed=scenario.seed,
        members=members,
        buffer_limit=family.limit(scenario),
        uniform=scenario.uniform,
        quiesced=False,
        order=family.order(scenario),
    )
    network = network_of(scenario, scheduler, Random(seeds.getrandbits(64)))
    rng = Random(seeds.getrandbits(64))
    traffic = {each.sender: (each, seeds.getrandbits(64)) for each in scenario.traffic}

    def source(number: int, member: MemberId) -> Source | None:
        if number not in traffic:
            return None
        what, seed = traffic[number]
        return source_of(what, member, Random(seed + member.incarnation), mutant)

    sources = {number: source(number, member) for number, member in enumerate(members)}
    programs = Programs(
        sources={number: found for number, found in sources.items() if found is not None},
        again=source,
        delays=scenario.app_delays,
        habits=scenario.habits,
        bursts=scenario.bursts,
        transfers=family.transfers(scenario),
        goes_on=family.goes_on,
        queue_messages=family.queue(scenario),
        queue_bytes=family.queue_bytes(scenario),
        handover=mutant.handover,
    )
    return Cluster(
        scheduler,
        network,
        family.stack(scenario, mutant),
        size=scenario.size,
        name_bytes=scenario.name_bytes,
        datagram=datagram_of(scenario),
        rng=rng,
        programs=programs,
        cpu=CpuModel(scenario.cpu, scenario.cpu),
        record=info,
        announces=family.announces,
        disks=family.disk(scenario),
        quiet=family.quiet(scenario),
        absence=family.absence,
    )


def datagram_of(scenario: Scenario) -> int:
    """Bytes that frames share a datagram up to: what the network carries whole."""
    return DATAGRAM_LIMIT if scenario.mtu is None else min(DATAGRAM_LIMIT, scenario.mtu - IP_OVERHEAD)


def network_of(scenario: Scenario, scheduler: Scheduler, rng: Random) -> Network:
    """The network a scenario asks for."""
    conditions = Conditions(
        scenario.loss, scenario.duplication, scenario.jitter, scenario.mtu, scenario.link_loss
    )
    if scenario.network == "shared":
        return SharedSegment(scheduler, rng, scenario.size, conditions, latency=scenario.latency)
    if scenario.network == "routed":
        topology = tiered(rng, core=3, regions=4, fringe=scenario.size)
        places = range(7, 7 + scenario.size)
        return RoutedNetwork(
            scheduler, rng, conditions, topology, places, queue_packets=scenario.queue_packets
        )
    return SwitchedNetwork(
        scheduler, rng, scenario.size, conditions, bandwidth=BANDWIDTH, latency=scenario.latency
    )


def source_of(traffic: Traffic, me: MemberId, rng: Random, mutant: Mutant) -> Source:
    """The workload of one sender."""
    if traffic.trace is not None:
        rows = read_trace(Path(traffic.trace), traffic.count)
        return Source(replay_arrivals(rows), replay_contents(rows, Bitmaps(traffic.k)), len(rows))
    arrivals: Iterator[Nanos]
    if traffic.arrivals == "constant":
        arrivals = constant(traffic.rate)
    elif traffic.arrivals == "poisson":
        arrivals = poisson(traffic.rate, Random(rng.getrandbits(64)))
    else:
        arrivals = bursts(traffic.rate, 5)
    contents = contents_of(traffic, me, rng, mutant)
    return Source(arrivals, contents, traffic.count, traffic.size, traffic.safe_every)


def contents_of(traffic: Traffic, me: MemberId, rng: Random, mutant: Mutant) -> Iterator[Content]:
    """The messages of one sender."""
    match traffic.content:
        case "plain":
            return plain()
        case "operations":
            return operations(traffic.d, 3, rng, mutant.operations(traffic.k))
        case "stocks":
            return stocks(rng, Bitmaps(traffic.k))
        case "items":
            return overwrites(traffic.r, traffic.d, rng, Representation())
        case "bitmaps":
            return overwrites(traffic.r, traffic.d, rng, Bitmaps(traffic.k))
        case "shared":
            return shared(traffic.r, traffic.k, rng)
        case "enumerated":
            return overwrites(traffic.r, traffic.d, rng, Enumerated(me, traffic.k))
