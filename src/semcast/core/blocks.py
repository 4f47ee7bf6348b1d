"""Blocks of a graph: where one can go round (seed I, 6.6).

In the communication structure of a domain, groups are nodes, and there is an edge where a process is in both.
A block is a biconnected component: any two of its nodes are on a common simple cycle. A single edge, which
the paper's footnote 7 counts, too, is none here: nothing can come back over it by another way.
"""

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)
Member = TypeVar("Member", bound=Hashable)


def overlaps(members: Mapping[Node, Iterable[Member]]) -> dict[Node, set[Node]]:
    """The neighbours of each group: those that have a member in common with it.

    >>> found = overlaps({"a": "pq", "b": "qr", "c": "s"})
    >>> found["a"], found["b"], found["c"]
    ({'b'}, {'a'}, set())
    """
    groups_of: dict[Member, list[Node]] = {}
    for group, some in members.items():
        for member in some:
            groups_of.setdefault(member, []).append(group)
    found: dict[Node, set[Node]] = {group: set() for group in members}
    for groups in groups_of.values():
        for one, other in combinations(groups, 2):
            found[one].add(other)
            found[other].add(one)
    return found


def blocks(neighbours: Mapping[Node, Iterable[Node]]) -> list[frozenset[Node]]:
    """The biconnected components of at least three nodes (Tarjan), in time linear in the edges.

    >>> triangle_and_tail = {1: [2, 3], 2: [1, 3], 3: [1, 2, 4], 4: [3]}
    >>> blocks(triangle_and_tail)
    [frozenset({1, 2, 3})]
    """
    search = _Search({node: list(others) for node, others in neighbours.items()})
    for node in neighbours:
        search.explore(node)
    return [found for found in search.found if len(found) > 2]


class _Search(Generic[Node]):
    """A depth-first search that keeps no frames of Python for its depth."""

    def __init__(self, neighbours: dict[Node, list[Node]]) -> None:
        self._neighbours = neighbours
        self._depth: dict[Node, int] = {}
        self._low: dict[Node, int] = {}
        self._edges: list[tuple[Node, Node]] = []
        self.found: list[frozenset[Node]] = []

    def explore(self, root: Node) -> None:
        if root in self._depth:
            return
        self._enter(root, 0)
        path = [(root, root, iter(self._neighbours[root]))]
        while path:
            node, parent, rest = path[-1]
            other = next(rest, None)
            if other is None:
                path.pop()
                if path:
                    self._return(parent, node)
            elif other not in self._depth:
                self._edges.append((node, other))
                self._enter(other, len(path))
                path.append((other, node, iter(self._neighbours[other])))
            elif other != parent and self._depth[other] < self._depth[node]:
                self._edges.append((node, other))
                self._low[node] = min(self._low[node], self._depth[other])

    def _enter(self, node: Node, depth: int) -> None:
        self._depth[node] = self._low[node] = depth

    def _return(self, parent: Node, node: Node) -> None:
        self._low[parent] = min(self._low[parent], self._low[node])
        if self._low[node] < self._depth[parent]:
            return
        nodes: set[Node] = set()
        while True:
            edge = self._edges.pop()
            nodes.update(edge)
            if edge == (parent, node):
                break
        self.found.append(frozenset(nodes))
