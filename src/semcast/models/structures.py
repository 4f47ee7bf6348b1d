"""How groups overlap, and what their structure asks of stamps (Birman et al. 1991, section 6.6 and table I).

Groups are numbers, and so are processes. In each structure two groups that overlap have one process in
common, but in a clique, where the same processes, its servers, are in all groups. Every group has processes
of its own besides, so that all are of the same size.
"""

from collections.abc import Mapping
from typing import Literal

from semcast.core.blocks import blocks, overlaps

Structure = Literal["tree", "cycle", "grid", "clique"]
Policy = Literal["full", "blocks", "epochs", "conservative"]
Members = dict[int, tuple[int, ...]]
"""Groups and the processes in them."""


def domain(structure: Structure, groups: int, size: int, servers: int = 2) -> Members:
    """So many groups of one size, each of which overlaps with its neighbours.

    >>> domain("cycle", 3, 3)
    {0: (0, 2, 3), 1: (0, 1, 4), 2: (1, 2, 5)}
    """
    members: dict[int, list[int]] = {group: [] for group in range(groups)}
    number = 0
    if structure == "clique":
        number = servers
        for some in members.values():
            some.extend(range(servers))
    else:
        for one, other in _edges(structure, groups):
            members[one].append(number)
            members[other].append(number)
            number += 1
    if any(len(some) > size for some in members.values()):
        raise ValueError(f"groups of {size}: some have more neighbours than that")
    for some in members.values():
        while len(some) < size:
            some.append(number)
            number += 1
    return {group: tuple(some) for group, some in members.items()}


def _edges(structure: Structure, groups: int) -> list[tuple[int, int]]:
    if structure == "tree":
        return [((group - 1) // 2, group) for group in range(1, groups)]
    if structure == "cycle":
        if groups < 3:
            return [(0, 1)] if groups == 2 else []
        return [(group, group + 1) for group in range(groups - 1)] + [(0, groups - 1)]
    width = round(groups**0.5)
    if width * width != groups:
        raise ValueError(f"a grid of {groups} groups is no square")
    across = [(g, g + 1) for g in range(groups) if (g + 1) % width]
    return sorted(across + [(g, g + width) for g in range(groups - width)])


def distances(members: Mapping[int, tuple[int, ...]], start: int) -> dict[int, int]:
    """From one group to those that it is connected with, over neighbours.

    >>> distances(domain("tree", 7, 4), 3)
    {3: 0, 1: 1, 0: 2, 4: 2, 2: 3, 5: 4, 6: 4}
    """
    neighbours = overlaps(members)
    found, todo = {start: 0}, [start]
    for group in todo:
        for other in sorted(neighbours[group]):
            if other not in found:
                found[other] = found[group] + 1
                todo.append(other)
    return found


def spoken_of(members: Mapping[int, tuple[int, ...]], policy: Policy) -> dict[int, frozenset[int]]:
    """By process the groups that its stamps may speak of.

    Full: all. Epochs: its own. Blocks: its own, and those in a block of at least three groups with one of
    these (6.6; a single edge is no block). Conservative: none.
    """
    own: dict[int, set[int]] = {}
    for group, some in members.items():
        for process in some:
            own.setdefault(process, set()).add(group)
    if policy == "conservative":
        return dict.fromkeys(own, frozenset())
    if policy == "full":
        return dict.fromkeys(own, frozenset(members))
    round_about = blocks(overlaps(members)) if policy == "blocks" else []
    return {
        process: frozenset(groups.union(*(block for block in round_about if block & groups)))
        for process, groups in own.items()
    }


def most_fields(style: str, members: int, servers: int = 0) -> int:
    """Table I: the most fields of the vector time of a group that a message carries.

    A group of peers: one for each. Diffusion: one for each that broadcasts. Servers and clients: one for
    each, and one for each server once more (what of it came to the client before), which s + c lacks.

    >>> most_fields("peer", 8), most_fields("diffusion", 200, 3), most_fields("client-server", 203, 3)
    (8, 3, 206)
    """
    if style == "diffusion":
        return servers
    return members + servers if style == "client-server" else members
