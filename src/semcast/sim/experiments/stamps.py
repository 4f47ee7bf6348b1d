"""V3: how many fields of the vector timestamp a causal multicast carries (Birman et al. 1991, table I, 5.4).

A message carries the fields that changed since its sender's last one. So it never carries more than there are
others who send, and none at all while its sender sends and hears nothing.
"""

from collections.abc import Mapping
from random import Random
from typing import Literal

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.vsync import Order, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.orders import CausalOrder, Lines
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import vsync
from semcast.sim.workloads import Source, bursts, plain

FOUNDED: Nanos = SECOND


class StampCell(Parameters, frozen=True):
    """A group in which senders send bursts at times of their own.

    Peers: everybody sends. Diffusion: `senders` of them do. Client and server: all do, clients seldom.
    """

    style: Literal["peer", "diffusion", "client-server"] = "peer"
    members: int = 8
    senders: int = 2
    """Those who broadcast into a diffusion group, or the servers."""
    burst: int = 1
    rate: float = 50.0
    latency_ms: float = 1.0
    measured_s: float = 4.0


def v3(cell: StampCell) -> Result:
    """Fields and bytes of a message's timestamp, and the share of messages that carry none."""
    if not 1 <= cell.senders <= cell.members or cell.members < 2:
        raise CellError(f"senders: 1 to {cell.members} of at least 2 members")
    group = _group(cell)
    group.start()
    group.run(FOUNDED)
    orders = [_order(host.stack) for host in group.hosts]
    for order in orders:
        order.fields.clear()
        order.bytes = 0
    group.run(FOUNDED + round(cell.measured_s * SECOND))
    fields = [count for order in orders for count in order.fields]
    if not fields:
        raise CellError("rate: nothing was sent while it was measured")
    return {
        "fields": sum(fields) / len(fields),
        "most": max(fields),
        "bare": fields.count(0) / len(fields),
        "bytes": sum(order.bytes for order in orders) / len(fields),
        "bound": cell.senders if cell.style == "diffusion" else cell.members,
        "messages": len(fields),
    }


class CountedStamps(CausalOrder):
    """Counts what it stamps messages with."""

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines, view, position)
        self.fields: list[int] = []
        self.bytes = 0

    def sent(self) -> None:
        """A message with the head of this moment left."""
        delivered = enumerate(zip(self.lines.delivered, self.stamped, strict=True))
        self.fields.append(sum(now > before for rank, (now, before) in delivered if rank != self.lines.rank))
        self.bytes += len(self.head())
        super().sent()


class CountedCausal(VirtualSynchrony):
    """Virtual synchrony with such an order."""

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        rng: Random,
        out: Outbox,
        formers: Mapping[MemberId, int] | None = None,
    ) -> None:
        super().__init__(me, settings, rng, out, formers)
        self._order = CountedStamps


def _order(stack: object) -> CountedStamps:
    assert isinstance(stack, CountedCausal)
    assert stack.stream is not None, "a group is founded in less than a second"
    assert isinstance(stack.stream.order, CountedStamps)
    return stack.stream.order


def _group(cell: StampCell) -> Cluster:
    scheduler = Scheduler()
    seeds = Random(cell.seed)
    latency = round(cell.latency_ms * MILLISECOND)
    network = SwitchedNetwork(
        scheduler, Random(seeds.getrandbits(64)), cell.members, Conditions(), latency=latency
    )
    sending = range(cell.senders if cell.style == "diffusion" else cell.members)
    return Cluster(
        scheduler,
        network,
        vsync(VsyncSettings(order=Order.CAUSAL, minimum=cell.members, buffer_messages=4096), CountedCausal),
        size=cell.members,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={number: _source(cell, number, Random(seeds.getrandbits(64))) for number in sending},
            observe=False,
        ),
        announces=True,
    )


def _source(cell: StampCell, number: int, rng: Random) -> Source:
    """Rates differ a little, so that bursts of different members meet in every way."""
    client = cell.style == "client-server" and number >= cell.senders
    rate = cell.rate / (10 if client else 1) * rng.uniform(0.8, 1.2)
    return Source(bursts(rate, cell.burst), plain())
