"""Graphs of links for routed networks: made up from a seed, or real ones out of a file."""

import csv
import heapq
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from semcast.core.ids import MILLISECOND, Nanos

TIERS = 3, 9, 18
SPEED = 100_000_000


class TopologyError(ValueError):
    """There is no such network."""


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
        if self.nodes and any(parent is None for parent in shortest_paths(neighbours_of(self), 0)[1:]):
            raise ValueError("the topology is not connected")


Neighbours = list[list[tuple[int, Nanos]]]
"""Of each node: what it has a wire to, and how far that is."""


def neighbours_of(topology: Topology) -> Neighbours:
    """Those of every node, in the order of the edges."""
    neighbours: Neighbours = [[] for _ in range(topology.nodes)]
    for edge in topology.edges:
        neighbours[edge.a].append((edge.b, edge.latency))
        neighbours[edge.b].append((edge.a, edge.latency))
    return neighbours


def shortest_paths(neighbours: Neighbours, root: int) -> list[int | None]:
    """For each node the node before it on the way from `root`; None for the root and what it cannot reach."""
    parents: list[int | None] = [None] * len(neighbours)
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


def tiered(
    rng: Random,
    core: int,
    regions: int,
    fringe: int,
    bandwidths: tuple[int, int, int] = (100_000_000, 45_000_000, 10_000_000),
) -> Topology:
    """A made-up wide-area network: a meshed core, regional nodes on it, sites at the fringe.

    Nodes are numbered in this order; each tier has links of its own bandwidth, in bits a second.
    """
    backbone, regional, access = bandwidths
    edges = []
    for a in range(core):
        for b in range(a + 1, core):
            edges.append(Edge(a, b, rng.randint(5, 20) * MILLISECOND, backbone))
    for region in range(core, core + regions):
        edges.append(Edge(rng.randrange(core), region, rng.randint(2, 8) * MILLISECOND, regional))
    for site in range(core + regions, core + regions + fringe):
        edges.append(Edge(core + rng.randrange(regions), site, rng.randint(1, 3) * MILLISECOND, access))
    return Topology(core + regions + fringe, tuple(edges))


class PlacedTopology(NamedTuple):
    """A topology, and the nodes at which members sit."""

    topology: Topology
    places: tuple[int, ...]


def thirty(seed: int, members: int = 18) -> PlacedTopology:
    """3 nodes in the core, 9 regional ones, 18 sites; all links have 100 Mbit/s (Sun 2000, chapter 7).

    The figure with the topology of the paper is lost: try several seeds. Members take the sites in turn.

    >>> topology, places = thirty(1)
    >>> topology.nodes, places[0], len(places)
    (30, 12, 18)
    """
    core, regions, sites = TIERS
    topology = tiered(Random(f"thirty/{seed}"), core, regions, sites, (SPEED, SPEED, SPEED))
    return PlacedTopology(topology, tuple(core + regions + number % sites for number in range(members)))


def surveyed(links: Path, name: str, seed: int, members: int = 18) -> PlacedTopology:
    """A real network out of a file of links; members sit at drawn nodes, as far apart as there are nodes.

    Raises `TopologyError` where there is no such file, or no such network in it.
    """
    try:
        with links.open(encoding="utf8", newline="") as lines:
            topology = read_links(lines, name, SPEED)
    except (OSError, ValueError, KeyError) as error:
        raise TopologyError(f"topology {name} in {links}: {error}") from error
    nodes = Random(f"{name}/{seed}").sample(range(topology.nodes), topology.nodes)
    return PlacedTopology(topology, tuple(nodes[number % topology.nodes] for number in range(members)))


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
