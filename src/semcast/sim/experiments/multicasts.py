"""V1: what a multicast costs against the size of the group (Birman et al. 1991, tables II and III).

As there, on a segment of 10 Mbit/s. Without hardware multicast a datagram is sent once for each destination;
each copy takes `send_us` of the sender's processor and its time on the wire, and `receive_us` of the
receiver's. A call ends with the last of the replies: null datagrams, whose costs are added to the simulated
times of delivery, and `local_us` for what a call costs in any case. The processor times were chosen after the
paper's null CBCAST, to nobody else and to 7; everything else follows.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.history import History, Kind, RunInfo
from semcast.protocols.vsync import DetectorSettings, Engine, Order, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.token import TokenOrder
from semcast.sim.cluster import GROUP, Cluster, member_names
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import FRAME_GAP, FRAME_OVERHEAD, Conditions, Packet, SharedSegment
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import vsync
from semcast.sim.workloads import Source, constant, plain

BANDWIDTH = 10_000_000
CALLER = 1
"""Not the member of rank 0, which has the token at first."""
EVERY: Nanos = 500 * MILLISECOND
FOUNDED: Nanos = 2 * SECOND
HOUR: Nanos = 3600 * SECOND


class MulticastCell(Parameters, frozen=True):
    """One member multicasts to `destinations` others, one call at a time."""

    primitive: Literal["cbcast", "abcast"] = "cbcast"
    destinations: int = 1
    size: int = 0
    holder: Literal["stays", "moves"] = "stays"
    """Whether the token comes to who sends most; at first another has it."""
    hardware: int = 0
    """Whether one datagram reaches all destinations."""
    send_us: int = 1530
    receive_us: int = 1530
    local_us: int = 1510
    calls: int = 10


def v1(cell: MulticastCell) -> Result:
    """Time of a call with replies, and what the multicast in it costs: processor time, and bytes sent."""
    group = _group(cell)
    first, last = FOUNDED + EVERY // 2, FOUNDED + EVERY // 2 + cell.calls * EVERY
    group.start()
    group.run(first)
    busy, sent = _busy(group), _bytes(group)
    group.run(last)
    busy, sent = _busy(group) - busy, _bytes(group) - sent
    caller = group.hosts[CALLER]
    delivered = _deliveries(group.finish(quiesced=False), caller.member)
    times = [
        _call(cell, at, [times[number] for times in delivered])
        for number, at in enumerate(caller.stats.sent_at)
        if first < at < last
    ]
    return {
        "call_ms": sum(times) / len(times) / MILLISECOND,
        "cpu_ms": busy / len(times) / MILLISECOND,
        "bytes": sent / len(times),
    }


class Unicasts(SharedSegment):
    """No hardware multicast: the sender sends to one destination after the other."""

    def __init__(self, scheduler: Scheduler, rng: Random, hosts: int, send: Nanos) -> None:
        super().__init__(scheduler, rng, hosts, Conditions(), bandwidth=BANDWIDTH, queue_bytes=1 << 30)
        self.send = send
        self._free_at = [0] * hosts
        self.copies = 0
        self.copied_bytes = 0

    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        for each in self._dests(packet, dest):
            at = self._free_at[packet.source] = max(at, self._free_at[packet.source]) + self.send
            self.copies += 1
            self.copied_bytes += packet.size
            self._scheduler.at(at, self._on_wire, packet, each)

    def _on_wire(self, packet: Packet, dest: int) -> None:
        super()._route(self._scheduler.now, packet, dest)


class StillToken(TokenOrder):
    """The token stays where it is, as in the implementation that the paper measured."""

    def _next_holder(self, order: list[tuple[int, int]]) -> int:  # noqa: ARG002
        return self.lines.rank


class StillHolder(VirtualSynchrony):
    """ABCAST with such a token."""

    def __init__(self, me: MemberId, settings: VsyncSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings, rng, out)
        self._order = StillToken


def _group(cell: MulticastCell) -> Cluster:
    scheduler = Scheduler()
    seeds = Random(cell.seed)
    size = cell.destinations + 1
    rng = Random(seeds.getrandbits(64))
    send, receive = cell.send_us * MICROSECOND, cell.receive_us * MICROSECOND
    total = cell.primitive == "abcast"
    info = RunInfo.one(
        run="v1",
        group=GROUP,
        stack="vsync",
        seed=cell.seed,
        members=member_names(size),
        buffer_limit=None,
        uniform=False,
        quiesced=False,
        order="total" if total else "causal",
    )
    return Cluster(
        scheduler,
        SharedSegment(scheduler, rng, size, Conditions(), bandwidth=BANDWIDTH, queue_bytes=1 << 30)
        if cell.hardware
        else Unicasts(scheduler, rng, size, send),
        vsync(_settings(cell), StillHolder if total and cell.holder == "stays" else VirtualSynchrony),
        size=size,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={CALLER: Source(constant(SECOND / EVERY), plain(), size=cell.size)}, observe=False
        ),
        cpu=CpuModel(receive, send if cell.hardware else 0),
        record=info,
        announces=True,
    )


def _settings(cell: MulticastCell) -> VsyncSettings:
    """No heartbeats: they would be counted as part of the calls."""
    return VsyncSettings(
        order=Order.TOTAL if cell.primitive == "abcast" else Order.CAUSAL,
        engine=Engine.TOKEN,
        minimum=cell.destinations + 1,
        frame_bytes=8000,
        buffer_messages=512,
        detector=DetectorSettings(
            heartbeat=HOUR, timeout_initial=2 * HOUR, timeout_min=2 * HOUR, timeout_max=2 * HOUR
        ),
        resend=4 * SECOND,
        request_delay=SECOND,
    )


def _busy(group: Cluster) -> Nanos:
    """Processor time of all hosts so far, that of sending to each destination included."""
    network = group.network
    sending = network.copies * network.send if isinstance(network, Unicasts) else 0
    return sum(host.stats.busy for host in group.hosts) + sending


def _bytes(group: Cluster) -> int:
    """Bytes on the wire so far."""
    network = group.network
    return network.copied_bytes if isinstance(network, Unicasts) else network.bytes


def _deliveries(history: History, caller: MemberId) -> list[list[Nanos]]:
    """By destination, when it delivered the messages of the caller, one after the other."""
    found: dict[MemberId, list[Nanos]] = {}
    for event in history.events:
        if event.kind is Kind.DELIVER and event.sender == caller and event.process != caller:
            found.setdefault(event.process, []).extend([event.at] * (event.last - event.seq + 1))
    return list(found.values())


def _call(cell: MulticastCell, sent: Nanos, delivered: Sequence[Nanos]) -> Nanos:
    """Until the caller has the replies of all: they come as they were sent, and are read one by one."""
    send, receive = cell.send_us * MICROSECOND, cell.receive_us * MICROSECOND
    wire = (FRAME_OVERHEAD + FRAME_GAP) * 8 * SECOND // BANDWIDTH
    free = sent + (1 if cell.hardware else cell.destinations) * send
    for at in sorted(delivered):
        free = max(free, at + send + wire) + receive
    return free - sent + cell.local_us * MICROSECOND
