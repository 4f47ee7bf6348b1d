"""X1, X3, X5, X6: what a log compacted by obsolescence, and semantic repair, are good for. Ours, no paper's.

X5 counts the repairs that are saved because who asks for a message is given what replaced it. X1 sends a
member away and measures what it is sent when it returns. X3 lets a member join late, with a log that is
compacted and with one that is not. X6 cuts a region off.
"""

from collections.abc import Iterator
from random import Random

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.protocols.gossip.member import Member
from semcast.sim.experiments.cells import CellError, Result
from semcast.sim.experiments.gossiping import BEGIN, GossipCell, GossipRun
from semcast.sim.topologies import TIERS, PlacedTopology
from semcast.sim.workloads import Content, Representation, overwrites

_LOOK: Nanos = 10 * MILLISECOND
_PATIENCE: Nanos = 120 * SECOND
_BEFORE: Nanos = 8 * SECOND
"""Of a region's time before it is cut off."""


class ItemsCell(GossipCell, frozen=True):
    """A share r of all messages overwrites one of d items of its sender."""

    senders: int = 4
    r: float = 0.5
    d: int = 5


class AbsenceCell(ItemsCell, frozen=True):
    """X1: the last member is away for so long."""

    d: int = 100
    rate: float = 200.0
    seconds: float = 600.0
    absent_s: float = 5.0


class LateCell(ItemsCell, frozen=True):
    """X3: the last member joins when the others have sent for so long."""

    d: int = 100
    r: float = 1.0
    rate: float = 200.0
    seconds: float = 5.0
    compact: int = 1


class RegionCell(ItemsCell, frozen=True):
    """X6: the nodes behind one wire of the core are cut off."""

    d: int = 100
    rate: float = 100.0
    seconds: float = 90.0
    cut_s: float = 60.0


class ItemsRun(GossipRun):
    """With messages that overwrite each other."""

    def __init__(self, cell: ItemsCell, *, compact: bool = True) -> None:
        self._items = cell
        super().__init__(cell, compact=compact)

    def contents(self, rng: Random) -> Iterator[Content]:
        """f_{r,d}."""
        return overwrites(self._items.r, self._items.d, rng, Representation())

    def caught_up(self, number: int, upto: dict[MemberId, int]) -> bool:
        """Whether a member has, or knows to be replaced, everything up to these numbers."""
        stack = self.cluster.hosts[number].stack
        assert isinstance(stack, Member)
        streams = stack.receiver.streams
        return all(sender in streams and streams[sender].next >= seq for sender, seq in upto.items())

    def said(self) -> dict[MemberId, int]:
        """What each sender gave last."""
        found: dict[MemberId, int] = {}
        for sender, seq in self.watch.sent:
            found[sender] = max(found.get(sender, 0), seq)
        return found

    def until(self, members: list[int], upto: dict[MemberId, int]) -> Nanos:
        """Run until these have caught up; how long that took."""
        scheduler = self.cluster.scheduler
        began = scheduler.now
        while not all(self.caught_up(each, upto) for each in members):
            if scheduler.now - began > _PATIENCE:
                break
            self.cluster.run(scheduler.now + _LOOK)
        return scheduler.now - began


def x5(cell: ItemsCell) -> Result:
    """Repairs, and the receipts that stand for some of them."""
    run = ItemsRun(cell)
    run.cluster.start()
    run.cluster.run(BEGIN + round((cell.seconds + cell.linger_s) * SECOND))
    count, size, sent = run.network.count, run.network.size, max(len(run.watch.sent), 1)
    return {
        "repairs": count["repair"] / sent,
        "receipts": count["receipt"] / sent,
        "repair_bytes": (size["repair"] + size["receipt"]) / sent,
        **run.latencies(),
    }


def x1(cell: AbsenceCell) -> Result:
    """What a member that was away is sent, and how long it takes until it has caught up."""
    run = ItemsRun(cell)
    cluster, away = run.cluster, cell.members - 1
    cluster.start()
    leaves = BEGIN + SECOND
    cluster.run(leaves)
    before = len(run.watch.sent)
    run.network.unplug(away)
    cluster.run(leaves + round(cell.absent_s * SECOND))
    run.network.plug_in(away)
    missed = len(run.watch.sent) - before
    run.network.size_to.clear()
    took = run.until([away], run.said())
    return {
        "missed": missed,
        "catch_up_s": took / SECOND,
        "catch_up_bytes": run.network.size_to[away],
        "bytes_per_missed": run.network.size_to[away] / max(missed, 1),
    }


def x3(cell: LateCell) -> Result:
    """What a late joiner is sent until it has everything that was sent before."""
    run = ItemsRun(cell, compact=bool(cell.compact))
    cluster, late = run.cluster, cell.members - 1
    at = BEGIN + round(cell.seconds * SECOND) + SECOND
    cluster.start({late: at})
    cluster.run(at)
    run.network.size_to.clear()
    took = run.until([late], run.said())
    return {
        "history": len(run.watch.sent),
        "join_s": took / SECOND,
        "join_bytes": run.network.size_to[late],
        "bytes_per_message": run.network.size_to[late] / max(len(run.watch.sent), 1),
    }


def x6(cell: RegionCell) -> Result:
    """What a region that was cut off costs itself and others."""
    run = ItemsRun(cell)
    cluster, network = run.cluster, run.network
    inside, wire = _region(run.placed, cell)
    others = [host.member for host in cluster.hosts[: cell.members] if host.number not in inside]
    cluster.start()
    begins = BEGIN + _BEFORE
    cluster.run(begins)
    before = run.watch.mean(others)
    network.disturb_link(*wire, 1.0)
    cluster.run(begins + round(cell.cut_s * SECOND))
    during = run.watch.mean(others)
    network.disturb_link(*wire, 0.0)
    made = run.repairs()
    took = run.until(inside, run.said())
    after = run.repairs()
    return {
        "cut_off": len(inside),
        "others_before_s": before,
        "others_during_s": during,
        "blocked_ms": sum(host.stats.blocked_time for host in cluster.hosts) / MILLISECOND,
        "catch_up_s": took / SECOND,
        "repairs_logger": float(after["repairs_logger"]) - float(made["repairs_logger"]),
        "repairs_members": (float(after["repairs_mean"]) - float(made["repairs_mean"])) * cell.members,
    }


def _region(placed: PlacedTopology, cell: RegionCell) -> tuple[list[int], tuple[int, int]]:
    """The largest region without senders and logger: the members in it, and the wire it hangs by."""
    core, regions, _ = TIERS
    wires = {edge.b: edge.a for edge in placed.topology.edges}  # every node hangs by one wire, but the core
    inside: dict[int, list[int]] = {region: [] for region in range(core, core + regions)}
    for number in range(cell.members):
        inside[wires[placed.places[number]]].append(number)
    quiet = {region: found for region, found in inside.items() if found and found[0] >= cell.senders}
    if cell.topology != "tiered" or not quiet:
        raise CellError("topology: only a tiered one has regions, and one of them must have no senders")
    region = max(quiet, key=lambda each: (len(quiet[each]), each))
    return quiet[region], (wires[region], region)
