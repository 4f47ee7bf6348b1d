"""The messages of the rest, and where they stand in the line."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semcast.pipeline.verify.large.line.knots import Block, Knots, Ranked, Unranked
from semcast.pipeline.verify.large.line.places import NOWHERE, ROW_BITS, Places
from semcast.pipeline.verify.large.line.ranks import DELIVERY, REST


@dataclass(frozen=True, slots=True)
class Straggler:
    """A message of the rest, or several that have everything in common."""

    author: int
    first: int
    last: int
    reg: int
    sent: bool
    """Whether it was sent there."""

    pieces: Mapping[int, int]
    """Who delivered it in com(c), and in which piece."""

    below: int
    """The highest rank that it comes after, -1 for none."""

    turn: int
    """Its place among the rest."""


def stragglers(line: Knots, places: Places) -> list[Straggler] | None:
    """The rest of a run; None if some of it was delivered in several com(c)."""
    pieces: dict[Unranked, dict[int, int]] = defaultdict(dict)
    blocks: dict[Unranked, Block] = {}
    for who, path in line.paths.items():
        for block in path:
            if isinstance(block, Block) and block.chain == REST and block.what == DELIVERY:
                message = Unranked(block.low, block.high)
                blocks[message] = block
                pieces[message][who] = int(places.piece(who, np.array([block.spot >> ROW_BITS]))[0])
    found = []
    below: dict[int, int] = {}
    for turn, name in enumerate(line.order()):
        if isinstance(name, Ranked):
            below[name.chain] = name.rank
        elif isinstance(name, Unranked):
            here = {who: piece for who, piece in pieces[name].items() if places.reg[piece] != NOWHERE}
            regs = {int(places.reg[piece]) for piece in here.values()}
            if len(regs) > 1:
                return None
            for reg in regs:
                last, sent = name.number + blocks[name].size - 1, blocks[name].aim == reg
                found.append(
                    Straggler(name.author, name.number, last, reg, sent, here, below.get(reg, -1), turn)
                )
    return found
