"""Experiments on the ring: T1, T2, T3 (Amir 1995, section 5.3), on a shared segment of 10 Mbit/s.

In the paper's setting each message is one send on the network, and a visit of the token may send `visit` of
them; `setting = "ours"` packs messages, adapts the limit and passes the token on early. The hosts' model: a
datagram takes `send_us` of the sender's processor, which goes on while the wire is busy, and
`receive_us` of each receiver's.
"""

from random import Random
from typing import Literal

import msgspec

from semcast.core.ids import MICROSECOND, SECOND, MemberId, Nanos
from semcast.history import History, Kind, RunInfo
from semcast.protocols.ring import RingSettings
from semcast.sim.cluster import DATAGRAM_LIMIT, GROUP, Cluster, member_names
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SharedSegment
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import ring
from semcast.sim.workloads import Source, constant, plain, poisson

BANDWIDTH = 10_000_000
RECORD = 16
"""Bytes by which a padded message may be larger than asked for: a message must not take two packets."""
FLOOD = 100_000.0
"""Messages a second that no member gets through: there is always something to send."""


class RingCell(Parameters, frozen=True):
    """A group of which every member sends, as much as it may or `rate` messages a second altogether."""

    members: int = 16
    size: int = 1024
    visit: int = 20
    setting: Literal["paper", "ours"] = "paper"
    rate: float = 0.0
    safe: int = 1
    send_us: int = 450
    receive_us: int = 200
    warmup_s: float = 2.0
    measured_s: float = 6.0


def ring_throughput(cell: RingCell) -> Result:
    """T1, T2: messages a second, and the share of the wire that carries them."""
    cluster = _cluster(cell, record=False)
    cluster.start()
    cluster.run(int(cell.warmup_s * SECOND))
    before = cluster.hosts[0].stack.stats.delivered
    cluster.run(int((cell.warmup_s + cell.measured_s) * SECOND))
    throughput = (cluster.hosts[0].stack.stats.delivered - before) / cell.measured_s
    return {"throughput": throughput, "utilization": throughput * cell.size * 8 / BANDWIDTH}


def ring_latency(cell: RingCell) -> Result:
    """T3: time from the application that sends to those that receive, beside a rotation of the token."""
    cluster = _cluster(cell, record=True)
    first, last = int(cell.warmup_s * SECOND), int((cell.warmup_s + cell.measured_s) * SECOND)
    cluster.start()
    cluster.run(first)
    hops = _token_hops(cluster)
    cluster.run(last)
    rotation = cell.measured_s * cell.members / (_token_hops(cluster) - hops)
    sent = {host.member: host.stats.sent_at for host in cluster.hosts}
    throughput = sum(first <= at < last for times in sent.values() for at in times) / cell.measured_s
    latency = _latency(cluster.finish(quiesced=False), sent, first)
    return {
        "throughput": throughput,
        "latency_ms": latency * 1e3,
        "rotation_ms": rotation * 1e3,
        "rotations": latency / rotation,
    }


def _cluster(cell: RingCell, *, record: bool) -> Cluster:
    scheduler = Scheduler()
    seeds = Random(cell.seed)
    network = SharedSegment(
        scheduler, Random(seeds.getrandbits(64)), cell.members, Conditions(), bandwidth=BANDWIDTH
    )
    members = member_names(cell.members)
    info = RunInfo.one("ring", GROUP, "ring", cell.seed, members, None, uniform=False, quiesced=False)
    paper = cell.setting == "paper"
    return Cluster(
        scheduler,
        network,
        ring(_settings(cell)),
        size=cell.members,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={number: _source(cell, seeds) for number in range(cell.members)}, observe=False
        ),
        cpu=CpuModel(cell.receive_us * MICROSECOND, cell.send_us * MICROSECOND),
        record=info if record else None,
        announces=True,
        datagram=1 if paper else DATAGRAM_LIMIT,
    )


def _settings(cell: RingCell) -> RingSettings:
    """Timeouts are long: a rotation of 16 members with 20 messages each takes a third of a second."""
    ours = RingSettings(
        send_messages=2 * cell.visit * max(1, 1300 // cell.size),
        token_loss=3 * SECOND,
        retransmit=SECOND,
        gather=SECOND // 10,
        commit=SECOND // 2,
    )
    if cell.setting == "ours":
        return ours
    return msgspec.structs.replace(
        ours,
        packet_bytes=cell.size + RECORD,
        visit=cell.visit,
        visit_least=1,
        window=max(512, 2 * cell.visit * cell.members),
        adaptive=False,
        accelerated=0,
        hold=1,  # the published ring turns also when nobody has anything to send
        send_messages=2 * cell.visit,
    )


def _source(cell: RingCell, seeds: Random) -> Source:
    rng = Random(seeds.getrandbits(64))
    arrivals = poisson(cell.rate / cell.members, rng) if cell.rate else constant(FLOOD)
    return Source(arrivals, plain(), size=cell.size, safe_every=cell.safe)


def _token_hops(cluster: Cluster) -> int:
    return max(host.stack.stats.token_hops for host in cluster.hosts)


def _latency(history: History, sent: dict[MemberId, list[Nanos]], since: Nanos) -> float:
    """Mean seconds from sending to delivery, over all members."""
    total = count = 0
    for event in history.events:
        if event.kind is Kind.DELIVER and event.sender is not None and event.at >= since:
            for at in sent[event.sender][event.seq - 1 : event.last]:
                total += event.at - at
                count += 1
    return total / max(count, 1) / SECOND
