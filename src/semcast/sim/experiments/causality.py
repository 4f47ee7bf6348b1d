"""V2: the share of causality in the cost of a multicast (Birman et al. 1991, tables IV and V).

Real processor time, as there by comparing causally ordered and FIFO messages: from the multicast of one
member to the delivery at all, through the wire format and the turns of all members, in memory. Members send
one after the other, so that every message has a timestamp to carry. Nothing is spent on a network, so the
share in a real group is smaller. The figures are not a function of the cell alone: they are the machine's.
"""

from random import Random
from statistics import mean
from time import process_time_ns

from semcast.core.ids import SECOND, Nanos
from semcast.core.outgoing import Outgoing
from semcast.lab import Counter, Forgetful, Lab, stateless
from semcast.protocols.vsync import VSYNC, Order, VsyncSettings
from semcast.sim.cluster import DATAGRAM_LIMIT, GROUP, Cluster
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import vsync
from semcast.wire import Codec

FOUNDED: Nanos = SECOND


class CausalityCell(Parameters, frozen=True):
    """Members that multicast in turn, `batch` messages of `size` bytes at a time."""

    members: int = 2
    size: int = 1024
    batch: int = 1
    rounds: int = 40
    multicasts: int = 100


def v2(cell: CausalityCell) -> Result:
    """Microseconds of a multicast with and without causal order."""
    groups = {order: InMemory(cell, order) for order in (Order.FIFO, Order.CAUSAL)}
    costs: dict[Order, list[float]] = {order: [] for order in groups}
    for _ in range(cell.rounds):
        for order, group in groups.items():
            costs[order].append(group.exchange(cell.multicasts))
    fifo, causal = (_typical(costs[order]) / 1000 for order in (Order.FIFO, Order.CAUSAL))
    return {"fifo_us": fifo, "causal_us": causal, "share": (causal - fifo) / causal}


def _typical(costs: list[float]) -> float:
    """The mean of the cheaper half: the rest was disturbed by other programs."""
    return mean(sorted(costs)[: max(len(costs) // 2, 1)])


class InMemory:
    """Stacks that have founded their group in a simulation, and go on without one."""

    def __init__(self, cell: CausalityCell, order: Order) -> None:
        scheduler = Scheduler()
        network = SwitchedNetwork(scheduler, Random(cell.seed), cell.members, Conditions())
        settings = VsyncSettings(order=order, minimum=cell.members)
        group = Cluster(
            scheduler,
            network,
            vsync(settings),
            size=cell.members,
            rng=Random(cell.seed),
            programs=Programs(observe=False),
        )
        group.start()
        group.run(FOUNDED)
        self._lab = Lab(codec=Codec(GROUP, group.members, DATAGRAM_LIMIT, VSYNC.frames))
        self._lab.now = FOUNDED
        self._seats = [
            self._lab.add(member, host.stack, Counter(), stateless(), Forgetful)
            for member, host in zip(group.members, group.hosts, strict=True)
        ]
        self._outgoing = Outgoing([bytes(cell.size)] * cell.batch)

    def exchange(self, multicasts: int) -> float:
        """Nanoseconds of one multicast, on average."""
        started = process_time_ns()
        for number in range(multicasts):
            taken = self._seats[number % len(self._seats)].offer(self._outgoing)
            assert taken == len(self._outgoing.payloads), "buffers are large, and nobody is slow"
            self._lab.flow()
        return (process_time_ns() - started) / multicasts
