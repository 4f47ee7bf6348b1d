"""L1 to L5: LBRM, pbcast and rpbcast on a wide-area network (Sun 2000, chapter 7).

All five are figures of the same runs. Each node of the fringe has a member; the logger is one more host at
the node of the first. Members are admitted, and measure their distances, before the first message. Frames go
alone, so that packets can be counted by what they are for.

The paper leaves open where packets are lost (`loss_at`), when a gap is asked for (`asks`) and what "linear"
means (`weights`): these are parameters, none is chosen to fit.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from typing import Literal

import msgspec

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.protocols.gossip import Choice, GossipSettings, Logger, Member, Protocol
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import (
    Digest,
    Forgotten,
    Gone,
    Gossip,
    Heartbeats,
    Idle,
    Logged,
    Notice,
    Want,
)
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.streams import Stream
from semcast.sim.cluster import Cluster, member_names
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, Packet
from semcast.sim.programs import Programs
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.sim.topologies import PlacedTopology, TopologyError, surveyed, thirty
from semcast.sim.workloads import Content, Source, plain, poisson
from semcast.wire import Datagram

BEGIN: Nanos = 3 * SECOND
"""When the first message may be sent."""
_AMPLE = 1 << 30
"""Bytes: queues are bounded by packets."""
_NEAREST = 0.02
"""Added to the weight of all, so that the farthest is not left out (`models/convergence.py`)."""

ProtocolName = Literal["lbrm", "pbcast", "rpbcast"]


class GossipCell(Parameters, frozen=True):
    """Senders of 1 KB packets on a topology of 30 nodes, or one out of a file (`trace`)."""

    protocol: ProtocolName = "rpbcast"
    topology: str = "tiered"
    trace: str = ""
    members: int = 18
    senders: int = 18
    rate: float = 360.0
    seconds: float = 10.0
    linger_s: float = 10.0
    loss: float = 0.01
    loss_at: Literal["link", "receiver"] = "link"
    asks: Literal["detection", "tick"] = "detection"
    choice: Literal["uniform", "linear", "quadratic"] = "linear"
    weights: Literal["inverse", "difference"] = "inverse"
    limit: int = 1000
    mbit: float = 100.0
    queue: int = 50
    hold: int = 1 << 16
    """Messages that a receiver holds until those before them are there. The paper's are given in no order, so
    that nothing is held, and no receiver is full: here as many as ever come."""


def gossip(cell: GossipCell) -> Result:
    """Latency, repairs by node and link, what was not delivered everywhere, overhead."""
    run = GossipRun(cell)
    end = BEGIN + round(cell.seconds * SECOND)
    run.cluster.start()
    run.cluster.run(BEGIN)
    run.network.forget()
    run.cluster.run(end)
    overhead = run.overhead()
    run.cluster.run(end + round(cell.linger_s * SECOND))
    return {**run.latencies(), **run.repairs(), **overhead}


class Watch:
    """When messages left, and how many members have them since when."""

    def __init__(self, scheduler: Scheduler, others: int) -> None:
        self._scheduler = scheduler
        self._others = others
        self.sent: dict[tuple[MemberId, int], Nanos] = {}
        self.lacking: dict[tuple[MemberId, int], int] = {}
        """How many members have yet to receive what was sent."""
        self.took: list[Nanos] = []
        """Until everybody had a message."""
        self.waited: Counter[MemberId] = Counter()
        """How long each member waited for messages, in all."""
        self.had: Counter[MemberId] = Counter()
        """How many it waited for."""

    def on_sent(self, batch: Batch) -> None:
        """A member multicasts it."""
        name = batch.sender, batch.first
        self.sent[name] = self._scheduler.now
        self.lacking[name] = self._others

    def on_had(self, member: MemberId, sender: MemberId, seq: int) -> None:
        """A member has it, or knows that it was replaced."""
        name = sender, seq
        self.waited[member] += self._scheduler.now - self.sent[name]
        self.had[member] += 1
        self.lacking[name] -= 1
        if not self.lacking[name]:
            del self.lacking[name]
            self.took.append(self._scheduler.now - self.sent[name])

    def mean(self, members: Sequence[MemberId]) -> float:
        """Seconds that these waited for a message, on average, since this was asked last."""
        waited = sum(self.waited[member] for member in members)
        had = sum(self.had[member] for member in members)
        self.waited.clear()
        self.had.clear()
        return waited / SECOND / had if had else -1.0


class DifferencePeers(Peers):
    """The other reading of "linear": a weight is the distance from the farthest. Goes over all members."""

    def choose(self) -> MemberId | None:
        """A target."""
        known = self.round_trips
        if not self._power or not known:
            return super().choose()
        nearest, farthest = min(known.values()), max(known.values())
        median = sorted(known.values())[len(known) // 2]
        span = farthest - nearest or 1
        weights = [
            ((farthest - known.get(member.name, median)) / span + _NEAREST) ** self._power
            for member in self._members
        ]
        return self._rng.choices(self._members, weights)[0]


class CountingNetwork(RoutedNetwork):
    """Counts packets and bytes by what they are for, and repairs by the links on their way."""

    def __init__(
        self, scheduler: Scheduler, rng: Random, conditions: Conditions, placed: PlacedTopology, queue: int
    ) -> None:
        super().__init__(
            scheduler,
            rng,
            conditions,
            placed.topology,
            placed.places,
            queue_packets=queue,
            queue_bytes=_AMPLE,
        )
        self.count = Counter[str]()
        self.size = Counter[str]()
        self.size_to = Counter[int]()
        """Bytes of repairs and receipts, by the host they are for."""
        self.repaired = Counter[tuple[int, int]]()
        self.reached = Counter[tuple[MemberId, int]]()
        """How many hosts the multicast of a message got to."""
        self._to_one = False

    def forget(self) -> None:
        """Begin to count."""
        self.count.clear()
        self.size.clear()

    def transmit(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        """Count it, too."""
        kind = self._kind(packet, dest)
        self.count[kind] += 1
        self.size[kind] += packet.size
        if kind in ("repair", "receipt") and dest is not None:
            self.size_to[dest] += packet.size
            self._follow(self._places[packet.source], self._places[dest])
        super().transmit(at, packet, dest)

    def _pass_on(self, packet: Packet, node: int, dest: int) -> None:
        self._to_one = True
        super()._pass_on(packet, node, dest)
        self._to_one = False

    def _land(self, packet: Packet, dest: int) -> None:
        lost = self.lost
        super()._land(packet, dest)
        if not self._to_one and self.lost == lost:
            assert isinstance(packet.decoded, Datagram)
            (frame,) = packet.decoded.frames
            if isinstance(frame, Data):
                self.reached[frame.sender, frame.first] += 1

    def _kind(self, packet: Packet, dest: int | None) -> str:
        assert isinstance(packet.decoded, Datagram)
        (frame,) = packet.decoded.frames
        if isinstance(frame, Data):
            return "first" if dest is None else "repair"
        if isinstance(frame, Gossip):
            self.size["logged"] += len(msgspec.msgpack.encode(frame.logged)) - 1
            self.size["hash"] += _HASH_BYTES if frame.idle else 0
            self.count["rounds"] += not frame.gap
        purpose = _PURPOSES.get(type(frame))
        if purpose is not None:
            self.size[purpose] += packet.size
        return _KINDS.get(type(frame), "session")

    def _follow(self, node: int, place: int) -> None:
        while node != place:
            root = self._roots[place]
            step = place if node == root else self._tree(root)[node]
            assert step is not None
            self.repaired[node, step] += 1
            node = step


_KINDS: dict[type, str] = {
    Notice: "receipt",
    Gone: "receipt",
    **dict.fromkeys((Gossip, Digest, Want, Forgotten, Heartbeats, Idle, Logged), "overhead"),
}
"""What the paper counts as overhead; whatever is not here is about sessions, which it has not."""
_PURPOSES: dict[type, str] = {
    **dict.fromkeys((Gossip, Digest), "gossip"),
    **dict.fromkeys((Want, Forgotten), "request"),
    **dict.fromkeys((Heartbeats, Idle), "heartbeat"),
    Logged: "acknowledgement",
}
"""What the overhead is for. Gossip of rpbcast is its requests to peers, too."""
_HASH_BYTES = 10
"""Of a hash of heartbeats in a frame."""


class GossipRun:
    """A cluster, and what was seen of it."""

    def __init__(self, cell: GossipCell, **settings: object) -> None:
        self.cell = cell
        protocol = Protocol(cell.protocol)
        self.logger = None if protocol is Protocol.PBCAST else cell.members
        size = cell.members + (self.logger is not None)
        names = member_names(size)
        scheduler, seeds = Scheduler(), Random(f"gossip/{cell.seed}")
        self.watch = Watch(scheduler, cell.members - 1)
        loggers = () if self.logger is None else (names[-1].name,)
        self.settings = msgspec.structs.replace(settings_of(cell, loggers), **settings)
        per_link = cell.loss_at == "link"
        conditions = Conditions(0.0 if per_link else cell.loss, link_loss=cell.loss if per_link else 0.0)
        self.placed = _placed(cell, size)
        self.network = CountingNetwork(
            scheduler, Random(seeds.getrandbits(64)), conditions, self.placed, cell.queue
        )
        self.cluster = Cluster(
            scheduler,
            self.network,
            self._stack,
            size=size,
            rng=Random(seeds.getrandbits(64)),
            programs=Programs(sources=self._sources(seeds), observe=False),
            cpu=CpuModel(0, 0),
            announces=True,
            disks=self.logger is not None,
            datagram=1,
        )

    def _stack(self, me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        if me.name in self.settings.loggers:
            return Logger(me, members, self.settings, rng, out)
        member = watched(self.watch, DifferencePeers if self.cell.weights == "difference" else Peers)
        return member(me, members, self.settings, rng, out)

    def _sources(self, seeds: Random) -> dict[int, Source]:
        cell = self.cell
        return {
            number: Source(
                lasting(
                    poisson(cell.rate / cell.senders, Random(seeds.getrandbits(64))), BEGIN, cell.seconds
                ),
                self.contents(Random(seeds.getrandbits(64))),
                size=1000,
            )
            for number in range(cell.senders)
        }

    def contents(self, rng: Random) -> Iterator[Content]:  # noqa: ARG002
        """Of the messages of one sender."""
        return plain()

    def latencies(self) -> Result:
        """From the multicast until all members have it; of what all came to have."""
        took = [each / SECOND for each in self.watch.took]
        sent, lacking, reached = len(self.watch.sent), self.watch.lacking, self.network.reached.__getitem__
        lost = {"not_everywhere_reached": fmean(map(reached, lacking))} if lacking else {}
        return {
            "sent": sent,
            "latency_s": fmean(took) if took else -1.0,
            "latency_std_s": pstdev(took) if took else -1.0,
            "not_everywhere": len(lacking),
            "not_everywhere_share": len(lacking) / max(sent, 1),
            **lost,
            "reached": fmean(map(reached, self.watch.sent)) if sent else -1.0,
            "blocked_ms": sum(host.stats.blocked_time for host in self.cluster.hosts) / MILLISECOND,
        }

    def repairs(self) -> Result:
        """Which nodes and links carried them."""
        made = [host.stack.stats.retransmitted for host in self.cluster.hosts]
        members = made[: self.cell.members]
        links = [self.network.repaired[link] for link in self.network.links]
        return {
            "repairs_logger": made[self.logger] if self.logger is not None else 0,
            "repairs_mean": fmean(members),
            "repairs_most": max(members),
            "link_repairs_mean": fmean(links),
            "link_repairs_most": max(links),
            "link_packets_most": max(link.packets for link in self.network.links.values()),
            "dropped": sum(link.dropped for link in self.network.links.values()),
        }

    def overhead(self) -> Result:
        """A second, while there was something to send; what is ours, and not the paper's, apart."""
        count, size, seconds = self.network.count, self.network.size, self.cell.seconds
        return {
            "overhead_packets": count["overhead"] / seconds,
            "overhead_bytes": (size["overhead"] - size["logged"]) / seconds,
            "gossip_bytes": (size["gossip"] - size["logged"]) / seconds,
            "request_bytes": size["request"] / seconds,
            "heartbeat_bytes": size["heartbeat"] / seconds,
            "acknowledgement_bytes": size["acknowledgement"] / seconds,
            "hash_bytes": size["hash"] / seconds,
            "all_hashes_bytes": count["rounds"] * _HASH_BYTES / seconds,
            "logged_bytes": size["logged"] / seconds,
            "session_bytes": size["session"] / seconds,
            "repair_packets": count["repair"] / seconds,
            "receipt_packets": count["receipt"] / seconds,
        }


def settings_of(cell: GossipCell, loggers: tuple[str, ...]) -> GossipSettings:
    """Those of table 7.1."""
    return GossipSettings(
        protocol=Protocol(cell.protocol),
        loggers=loggers,
        choice=Choice(cell.choice),
        eager=cell.asks == "detection",
        repairs_per_second=cell.limit,
        hold=cell.hold,
    )


def lasting(gaps: Iterator[Nanos], begin: Nanos, seconds: float) -> Iterator[Nanos]:
    """Intervals that begin at a moment, and end so many seconds later."""
    after, left = begin, round(seconds * SECOND)
    for gap in gaps:
        left -= gap
        if left < 0:
            return
        yield after + gap
        after = 0


def watched(watch: Watch, peers: type[Peers] = Peers) -> type[Member]:
    """Members that tell what they receive."""

    class WatchedReceiver(Receiver):
        def take(self, stream: Stream, batch: Batch, number: int) -> list[Batch]:
            taken = super().take(stream, batch, number)
            for part in taken:
                for seq in range(part.first, part.last + 1):
                    watch.on_had(self._me, part.sender, seq)
            return taken

        def purge(self, stream: Stream, first: int, last: int, by: int) -> None:
            missing = [seq for seq in range(first, min(last, stream.known) + 1) if not stream.has(seq)]
            super().purge(stream, first, last, by)
            for seq in missing:
                if stream.has(seq):
                    watch.on_had(self._me, stream.sender, seq)

        def take_own(self, stream: Stream, batch: Batch) -> None:
            watch.on_sent(batch)
            super().take_own(stream, batch)

    class WatchedMember(Member):
        receiver_kind = WatchedReceiver
        peers_kind = peers

    return WatchedMember


def _placed(cell: GossipCell, hosts: int) -> PlacedTopology:
    """Where hosts are; the logger, which comes last, with the first member."""
    if cell.topology == "tiered":
        placed = thirty(cell.seed, cell.members)
    else:
        try:
            placed = surveyed(Path(cell.trace), cell.topology, cell.seed, cell.members)
        except TopologyError as error:
            raise CellError(str(error)) from error
    bandwidth = round(cell.mbit * 1_000_000)
    edges = tuple(msgspec.structs.replace(edge, bandwidth=bandwidth) for edge in placed.topology.edges)
    places = placed.places + placed.places[:1] * (hosts - cell.members)
    return PlacedTopology(msgspec.structs.replace(placed.topology, edges=edges), places)
