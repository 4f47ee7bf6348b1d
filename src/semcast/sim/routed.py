"""Routed networks: a graph of links with latency and bandwidth, shortest paths, multicast trees."""

import csv
import heapq
from collections.abc import Iterable, Sequence
from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.sim.networks import Conditions, Link, Network, Packet
from semcast.sim.scheduler import Scheduler


class Edge(msgspec.Struct, frozen=True):
    """A wire between two nodes of the graph, the same in both directions."""

    a: int
    b: int
    latency: Nanos
    bandwidth: int


class Topology(msgspec.Struct, frozen=True):
    """A connected graph. Nodes are numbered from 0."""

    nodes: int
    edges: tuple[Edge, ...]

    def check(self) -> None:
        """Raise ValueError unless every node can reach every other."""
        for edge in self.edges:
            if not (0 <= edge.a < self.nodes and 0 <= edge.b < self.nodes):
                raise ValueError(f"edge {edge.a}-{edge.b}: nodes go from 0 to {self.nodes - 1}")
        if self.nodes and any(parent is None for parent in shortest_paths(self, 0)[1:]):
            raise ValueError("the topology is not connected")


def shortest_paths(topology: Topology, root: int) -> list[int | None]:
    """For each node the node before it on the way from `root`; None for the root and what it cannot reach."""
    neighbours: list[list[tuple[int, Nanos]]] = [[] for _ in range(topology.nodes)]
    for edge in topology.edges:
        neighbours[edge.a].append((edge.b, edge.latency))
        neighbours[edge.b].append((edge.a, edge.latency))
    parents: list[int | None] = [None] * topology.nodes
    best: dict[int, Nanos] = {root: 0}
    heap = [(0, root)]
    while heap:
        far, node = heapq.heappop(heap)
        if far > best[node]:
            continue
        for neighbour, latency in neighbours[node]:
            if neighbour not in best or far + latency < best[neighbour]:
                best[neighbour] = far + latency
                parents[neighbour] = node
                heapq.heappush(heap, (far + latency, neighbour))
    return parents


def tiered(rng: Random, core: int, regions: int, fringe: int) -> Topology:
    """A made-up wide-area network: a meshed core, regional nodes on it, sites at the fringe."""
    edges = []
    for a in range(core):
        for b in range(a + 1, core):
            edges.append(Edge(a, b, rng.randint(5, 20) * MILLISECOND, 100_000_000))
    for region in range(core, core + regions):
        edges.append(Edge(rng.randrange(core), region, rng.randint(2, 8) * MILLISECOND, 45_000_000))
    for site in range(core + regions, core + regions + fringe):
        edges.append(Edge(core + rng.randrange(regions), site, rng.randint(1, 3) * MILLISECOND, 10_000_000))
    return Topology(core + regions + fringe, tuple(edges))


class RoutedNetwork(Network):
    """Hosts sit at nodes of a topology; a multicast crosses each link of its tree once."""

    def __init__(
        self,
        scheduler: Scheduler,
        rng: Random,
        conditions: Conditions,
        topology: Topology,
        places: Sequence[int],
        *,
        queue_bytes: int = 256 * 1024,
    ) -> None:
        super().__init__(scheduler, rng, len(places), conditions)
        topology.check()
        if any(not 0 <= place < topology.nodes for place in places):
            raise ValueError(f"hosts sit at nodes 0 to {topology.nodes - 1}")
        self._places = list(places)
        self._steps: dict[tuple[int, int, int], int] = {}
        self._latency: dict[tuple[int, int], Nanos] = {}
        self._links: dict[tuple[int, int], Link] = {}
        for edge in topology.edges:
            for ends in ((edge.a, edge.b), (edge.b, edge.a)):
                self._latency[ends] = edge.latency
                self._links[ends] = Link(edge.bandwidth, queue_bytes)
        self._parents = {place: shortest_paths(topology, place) for place in sorted(set(places))}

    def _route(self, at: Nanos, packet: Packet, dests: list[int]) -> None:
        self._scheduler.at(at, self._hop, packet, self._places[packet.source], dests)

    def _hop(self, packet: Packet, node: int, dests: list[int]) -> None:
        """The packet is at a node: hand it over here, and send it on once along each branch of its tree."""
        branches: dict[int, list[int]] = {}
        for dest in dests:
            if self._places[dest] == node:
                self._arrive(packet, dest, self._scheduler.now)
            else:
                branches.setdefault(self._towards(packet, node, dest), []).append(dest)
        for neighbour, behind in branches.items():
            through = self._links[node, neighbour].carry(self._scheduler.now, packet.size)
            if through is None:
                self.lost += len(behind)
            else:
                arrival = through + self._latency[node, neighbour]
                self._scheduler.at(arrival, self._hop, packet, neighbour, behind)

    def _towards(self, packet: Packet, node: int, dest: int) -> int:
        """The next node on the way from the packet's source to `dest`."""
        key = (packet.source, node, dest)
        step = self._steps.get(key)
        if step is None:
            parents = self._parents[self._places[packet.source]]
            step = self._places[dest]
            while (parent := parents[step]) != node:
                assert parent is not None, "the topology is connected"
                step = parent
            self._steps[key] = step
        return step


def read_links(lines: Iterable[str], name: str, bandwidth: int = 100_000_000) -> Topology:
    """One network out of a CSV with columns topology, src, dst, latency_ms (others are ignored).

    >>> table = ["topology,src,dst,km,latency_ms", "Tiny,4,7,10,0.5", "Tiny,7,9,10,0.1"]
    >>> read_links(table, "Tiny").nodes
    3
    """
    rows = [row for row in csv.DictReader(lines) if row["topology"] == name]
    if not rows:
        raise ValueError(f"no topology named {name!r} in this file")
    names = sorted({row[end] for row in rows for end in ("src", "dst")}, key=lambda n: (len(n), n))
    number = {node: place for place, node in enumerate(names)}
    edges = tuple(
        Edge(number[row["src"]], number[row["dst"]], int(float(row["latency_ms"]) * MILLISECOND), bandwidth)
        for row in rows
    )
    return Topology(len(names), edges)
