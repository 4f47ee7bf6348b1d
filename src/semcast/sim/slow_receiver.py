"""One slow receiver in a group (Pereira 2002, 5.4.1 and figure 5.3), with the real protocol code."""

from random import Random

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.protocols.semantic import ChannelSettings, Settings
from semcast.sim.cluster import Cluster
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory, reliable, s_rm, s_srm
from semcast.sim.workloads import Representation, Source, constant, overwrites


class SlowReceiver(msgspec.Struct, frozen=True):
    """A sender, fast receivers, and one whose application takes `delay` for each message."""

    stack: str
    delay: Nanos
    rate: float = 100.0
    r: float = 0.5
    d: int = 1
    buffer: int = 20
    members: int = 3
    warmup: Nanos = 5 * SECOND
    measured: Nanos = 20 * SECOND
    seed: int = 1


class Throughput(msgspec.Struct, frozen=True):
    """Messages a second once the group is in its steady state, and what became of the others."""

    sent: float
    delivered_fast: float
    delivered_slow: float
    purged_at_slow: float
    """Share of the messages sent that the slow member did not have to deliver."""
    blocked: float
    """Share of the time the sender had to wait."""


def measure(case: SlowReceiver) -> Throughput:
    """Run one case in virtual time."""
    cluster = _build(case)
    sender, slow = cluster.hosts[0], cluster.hosts[-1]
    fast = cluster.hosts[1] if case.members > 2 else sender
    cluster.start()
    cluster.run(case.warmup)
    before = [host.stack.stats.delivered for host in (sender, fast, slow)]
    sent, blocked = sender.stack.stats.sent, sender.stats.blocked_time
    cluster.run(case.warmup + case.measured)
    seconds = case.measured / SECOND
    _, fast_rate, slow_rate = (
        (host.stack.stats.delivered - earlier) / seconds
        for host, earlier in zip((sender, fast, slow), before, strict=True)
    )
    sent_rate = (sender.stack.stats.sent - sent) / seconds
    return Throughput(
        sent=sent_rate,
        delivered_fast=fast_rate,
        delivered_slow=slow_rate,
        purged_at_slow=max(0.0, 1 - slow_rate / sent_rate) if sent_rate else 0.0,
        blocked=(sender.stats.blocked_time - blocked) / case.measured,
    )


def _build(case: SlowReceiver) -> Cluster:
    seeds = Random(case.seed)
    scheduler = Scheduler()
    network = SwitchedNetwork(scheduler, Random(seeds.getrandbits(64)), case.members, Conditions())
    contents = overwrites(case.r, case.d, Random(seeds.getrandbits(64)), Representation())
    return Cluster(
        scheduler,
        network,
        _stack(case),
        size=case.members,
        rng=Random(seeds.getrandbits(64)),
        sources={0: Source(constant(case.rate), contents)},
        app_delays={case.members - 1: case.delay},
        observe=False,
    )


def _stack(case: SlowReceiver) -> StackFactory:
    if case.stack == "s-srm":
        return s_srm(ChannelSettings(buffer_messages=case.buffer))
    settings = Settings(buffer_messages=case.buffer, senders=(0,))
    if case.stack == "s-rm":
        return s_rm(settings)
    if case.stack == "reliable":
        return reliable(settings)
    raise ValueError(f"no stack named {case.stack!r}")
