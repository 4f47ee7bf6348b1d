"""One perturbed receiver in a group (Pereira 2002, 5.3.2), with the real protocol code."""

from collections.abc import Callable
from random import Random

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.semantic import ChannelSettings, Settings
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.cluster import Cluster
from semcast.sim.faults import Sleep
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory, reliable, s_rm, s_srm, vsync
from semcast.sim.workloads import Representation, Source, constant, overwrites


class SlowReceiver(msgspec.Struct, frozen=True):
    """A sender, fast receivers, and a last one that is perturbed in one or several ways."""

    stack: str
    delay: Nanos
    """Time its application takes for each message."""
    rate: float = 100.0
    r: float = 0.5
    d: int = 1
    buffer: int = 20
    members: int = 3
    warmup: Nanos = 5 * SECOND
    measured: Nanos = 20 * SECOND
    seed: int = 1
    payload: int = 0
    """Least size of a message in bytes."""
    purging: Purging = Purging.EAGER
    sleep: Nanos = 0
    """Time its process is not scheduled, in every second."""
    packet_delay: Nanos = 0
    """Extra time for each packet to and from it."""
    bandwidth: int | None = None
    """Bits a second of its link."""


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
    cluster = build(case)
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


def build(case: SlowReceiver) -> Cluster:
    """The group, perturbed from the beginning, ready to start."""
    seeds = Random(case.seed)
    scheduler = Scheduler()
    network = SwitchedNetwork(scheduler, Random(seeds.getrandbits(64)), case.members, Conditions())
    contents = overwrites(case.r, case.d, Random(seeds.getrandbits(64)), Representation())
    slow = case.members - 1
    cluster = Cluster(
        scheduler,
        network,
        subject(case.stack).stack(case),
        size=case.members,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={0: Source(constant(case.rate), contents, size=case.payload)},
            delays={slow: case.delay},
            observe=False,
        ),
    )
    network.disturb_host(slow, delay=case.packet_delay)
    if case.bandwidth is not None:
        network.limit_host(slow, case.bandwidth)
    if case.sleep:
        seconds = range(0, case.warmup + case.measured, SECOND)
        cluster.schedule([Sleep(at, slow, case.sleep) for at in seconds])
    return cluster


class Subject(msgspec.Struct, frozen=True):
    """A protocol that is measured."""

    stack: Callable[[SlowReceiver], StackFactory]
    semantic: bool = True
    """Whether it uses what is known of obsolescence."""


def subject(name: str) -> Subject:
    """By name."""
    if name not in SUBJECTS:
        raise ValueError(f"stack {name!r}: choose from {', '.join(SUBJECTS)}")
    return SUBJECTS[name]


def _s_srm(case: SlowReceiver) -> StackFactory:
    return s_srm(ChannelSettings(buffer_messages=case.buffer, purging=case.purging))


def _s_rm(case: SlowReceiver) -> StackFactory:
    return s_rm(_settings(case))


def _reliable(case: SlowReceiver) -> StackFactory:
    return reliable(_settings(case))


def _settings(case: SlowReceiver) -> Settings:
    return Settings(buffer_messages=case.buffer, senders=(0,), purging=case.purging)


def _vsync(case: SlowReceiver) -> StackFactory:
    return _views(case, case.purging)


def _vsync_reliable(case: SlowReceiver) -> StackFactory:
    return _views(case, Purging.OFF)


def _views(case: SlowReceiver, purging: Purging) -> StackFactory:
    kept = case.members - 1  # a slot for each of the others, who may send as well
    return vsync(VsyncSettings(minimum=case.members, buffer_messages=case.buffer + kept, purging=purging))


SUBJECTS = {
    "s-srm": Subject(_s_srm),
    "s-rm": Subject(_s_rm),
    "reliable": Subject(_reliable, semantic=False),
    "vsync": Subject(_vsync),
    "vsync-reliable": Subject(_vsync_reliable, semantic=False),
}
"""What these experiments compare."""
