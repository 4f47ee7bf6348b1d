"""Routed networks: packets go from node to node along shortest paths, multicasts along trees of them."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from semcast.core.ids import Nanos
from semcast.sim.networks import Conditions, Link, Network, Packet
from semcast.sim.scheduler import Scheduler
from semcast.sim.topologies import Topology, neighbours_of, shortest_paths


class Branch(NamedTuple):
    """One of the links on which a node sends a multicast on."""

    node: int
    """At its other end."""
    link: Link
    latency: Nanos
    behind: int
    """Hosts that are reached over it."""
    only: int | None
    """The host there, where that is all there is."""


class Hop(NamedTuple):
    """The next link on the way to somewhere."""

    node: int
    """At its other end."""
    link: Link
    latency: Nanos


class RoutedNetwork(Network):
    """Hosts sit at nodes of a topology; a multicast crosses each link of its tree once.

    Shortest ways from anywhere to a node, and from it to anywhere, are one tree. A site with a single wire
    has the tree of the node at its other end: a thousand sites need no more trees than there are such nodes.

    Args:
        scheduler: virtual time.
        rng: chance.
        conditions: what happens to packets.
        topology: nodes and links.
        places: at which node each host is.
        queue_bytes: what may wait for a link.
        queue_packets: how many packets may wait for one; None for as many as fit.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        rng: Random,
        conditions: Conditions,
        topology: Topology,
        places: Sequence[int],
        *,
        queue_bytes: int = 256 * 1024,
        queue_packets: int | None = None,
    ) -> None:
        super().__init__(scheduler, rng, len(places), conditions)
        topology.check()
        if any(not 0 <= place < topology.nodes for place in places):
            raise ValueError(f"hosts sit at nodes 0 to {topology.nodes - 1}")
        self.links: dict[tuple[int, int], Link] = {}
        """Each direction of each wire, by the nodes from and to which it leads; with what it has carried."""
        self._places = list(places)
        self._hosts_at: list[list[int]] = [[] for _ in range(topology.nodes)]
        for host, place in enumerate(places):
            self._hosts_at[place].append(host)
        self._latency: dict[tuple[int, int], Nanos] = {}
        for edge in topology.edges:
            for ends in ((edge.a, edge.b), (edge.b, edge.a)):
                self._latency[ends] = edge.latency
                self.links[ends] = Link(edge.bandwidth, queue_bytes, queue_packets)
        self._neighbours = neighbours_of(topology)
        self._roots = [each[0][0] if len(each) == 1 else node for node, each in enumerate(self._neighbours)]
        self._parents: dict[int, list[int | None]] = {}  # by root, as needed
        self._branches: dict[int, list[list[Branch]]] = {}  # of every node, by root
        self._hops: dict[tuple[int, int], Hop] = {}  # from a node towards a root, or from a root to a place

    def disturb_link(self, a: int, b: int, loss: float) -> None:
        """Of those between two nodes."""
        for ends in ((a, b), (b, a)):
            self.links[ends].loss = loss

    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        place = self._places[packet.source]
        if dest is None:
            self._scheduler.at(at, self._set_out, packet, place)
        else:
            self._scheduler.at(at, self._pass_on, packet, place, dest)

    # To one host

    def _pass_on(self, packet: Packet, node: int, dest: int) -> None:
        """The packet is at a node: hand it over here, or send it on towards its host."""
        place = self._places[dest]
        if place == node:
            self._land(packet, dest)
            return
        root, scheduler = self._roots[place], self._scheduler
        way = node, (place if node == root else root)
        step, link, latency = self._hops.get(way) or self._hop(way, place, root)
        through = self._cross(link, scheduler.now, packet.size, 1)
        if through is not None:
            scheduler.at(through + latency, self._pass_on, packet, step, dest)

    def _hop(self, way: tuple[int, int], place: int, root: int) -> Hop:
        """Worked out once. A site with a single wire is no root, so that no two ways have the same name."""
        node = way[0]
        step = place if node == root else self._tree(root)[node]
        assert step is not None, "the topology is connected"
        hop = self._hops[way] = Hop(step, self.links[node, step], self._latency[node, step])
        return hop

    # To all others

    def _set_out(self, packet: Packet, place: int) -> None:
        """A multicast is at the node of its source."""
        root = self._roots[place]
        branches = self._branches.get(root) or self._branch_out(root)
        if root == place:
            self._spread(packet, branches, place, place)
            return
        here, now = self._hosts_at[place], self._scheduler.now
        for host in here:
            if host != packet.source:
                self._land(packet, host)
        behind = self.hosts - len(here)
        if behind:
            through = self._cross(self.links[place, root], now, packet.size, behind)
            if through is not None:
                arrival = through + self._latency[place, root]
                self._scheduler.at(arrival, self._spread, packet, branches, root, place)

    def _spread(self, packet: Packet, branches: list[list[Branch]], node: int, before: int) -> None:
        """It is at a node of its tree: hand it over here, and send it on along all branches but one."""
        scheduler, size = self._scheduler, packet.size
        now = scheduler.now
        for host in self._hosts_at[node]:
            if host != packet.source:
                self._land(packet, host)
        for beyond, link, latency, behind, only in branches[node]:
            if beyond != before:
                through = self._cross(link, now, size, behind)
                if through is None:
                    continue
                if only is None:
                    scheduler.at(through + latency, self._spread, packet, branches, beyond, node)
                else:  # not its source: that is at `before`, or not alone behind a branch
                    scheduler.at(through + latency, self._land, packet, only)

    # Trees

    def _tree(self, root: int) -> list[int | None]:
        """For each node the next one on the way to the root."""
        parents = self._parents.get(root)
        if parents is None:
            parents = self._parents[root] = shortest_paths(self._neighbours, root)
        return parents

    def _branch_out(self, root: int) -> list[list[Branch]]:
        """Where each node sends on what comes from the root, if there are hosts; lowest hosts first."""
        parents = self._tree(root)
        children: list[list[int]] = [[] for _ in parents]
        for node, parent in enumerate(parents):
            if parent is not None:
                children[parent].append(node)
        order = [root]
        for node in order:  # grows: every node comes after its parent
            order += children[node]
        behind = [len(hosts) for hosts in self._hosts_at]
        first = [hosts[0] if hosts else self.hosts for hosts in self._hosts_at]
        for node in reversed(order[1:]):
            parent = parents[node]
            assert parent is not None
            behind[parent] += behind[node]
            first[parent] = min(first[parent], first[node])
        found = self._branches[root] = [
            [
                Branch(
                    child,
                    self.links[node, child],
                    self._latency[node, child],
                    behind[child],
                    self._hosts_at[child][0] if not children[child] and behind[child] == 1 else None,
                )
                for child in sorted(below, key=first.__getitem__)
                if behind[child]
            ]
            for node, below in enumerate(children)
        ]
        return found
