"""Blocks of graphs, against what a block is: any two of its nodes are on a simple cycle."""

from itertools import combinations
from random import Random

import pytest

from semcast.core.blocks import blocks, overlaps

Graph = dict[int, set[int]]


def graph(rng: Random, nodes: int, edges: int) -> Graph:
    found: Graph = {node: set() for node in range(nodes)}
    for one, other in rng.sample(list(combinations(range(nodes), 2)), edges):
        found[one].add(other)
        found[other].add(one)
    return found


def on_a_cycle(found: Graph, start: int, through: int) -> bool:
    """Whether some simple cycle of at least three nodes has both, by trying all paths."""

    def walk(node: int, path: tuple[int, ...]) -> bool:
        if len(path) > 2 and through in path and start in found[node]:
            return True
        return any(walk(other, (*path, other)) for other in found[node] if other not in path)

    return walk(start, (start,))


@pytest.mark.parametrize("seed", range(60))
def test_two_nodes_are_in_one_block_if_they_are_on_a_cycle(seed: int) -> None:
    rng = Random(seed)
    nodes = rng.randint(3, 7)
    found = graph(rng, nodes, rng.randint(0, min(9, nodes * (nodes - 1) // 2)))
    together = {pair for block in blocks(found) for pair in combinations(sorted(block), 2)}
    for one, other in combinations(range(nodes), 2):
        assert ((one, other) in together) == on_a_cycle(found, one, other), (one, other, found)


def test_a_long_chain_is_no_matter_of_depth() -> None:
    size = 20_000
    chain: Graph = {n: {other for other in (n - 1, n + 1) if 0 <= other < size} for n in range(size)}
    assert blocks(chain) == []
    chain[0].add(size - 1)
    chain[size - 1].add(0)
    assert blocks(chain) == [frozenset(range(size))]


def test_a_process_in_three_groups_makes_a_triangle() -> None:
    members = {"a": "px", "b": "py", "c": "pz", "d": "z"}
    assert blocks(overlaps(members)) == [frozenset("abc")]
