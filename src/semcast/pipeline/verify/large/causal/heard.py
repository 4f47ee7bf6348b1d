"""What a process has delivered, row by row, and what it does wrong by that alone."""

from dataclasses import dataclass

import numpy as np

from semcast.pipeline.verify.large.causal.arrays import Ints
from semcast.pipeline.verify.large.causal.strips import Strip

_EXAMPLES = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """Deliveries that come too late, or a multicast that comes after its message was heard of."""

    index: int
    seat: int
    first: int
    last: int
    circle: bool


def heard(strip: Strip, start: Ints) -> Ints:
    """Before each row and after the last: of each seat the highest number that was delivered."""
    table = np.zeros((len(strip.index) + 1, len(start)), np.int64)
    table[0] = start
    rows = strip.delivered
    table[rows + 1, strip.seat[rows]] = strip.last[rows]
    return np.maximum.accumulate(table, axis=0, out=table)


def alone(strip: Strip, start: Ints) -> list[Fault]:
    """What a process delivered below what it had of the same sender, or before it multicast it itself."""
    before = heard(strip, start)[:-1]
    found = []
    for rows, circle in ((strip.delivered, False), (strip.sent, True)):
        seat = ~strip.seat[rows] if circle else strip.seat[rows]
        highest = before[rows, seat]
        for n in np.flatnonzero(strip.first[rows] <= highest)[:_EXAMPLES].tolist():
            row = rows[n]
            first = int(strip.first[row])
            last = first if circle else min(int(strip.last[row]), int(highest[n]))
            found.append(Fault(int(strip.index[row]), int(seat[n]), first, last, circle))
    return found
