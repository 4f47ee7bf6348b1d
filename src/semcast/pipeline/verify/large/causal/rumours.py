"""Rumours: what a process has heard of and not delivered, until it delivers something as high, or for ever.

A rumour (path, seat, index, value) says that after the row `index` a process in a view knows of a message
`value`. What it multicasts until it has as much itself carries that to others, and may be a rumour there.
"""

import numpy as np

from semcast.pipeline.verify.large.causal.arrays import Ints, overlaps
from semcast.pipeline.verify.large.causal.heard import Fault, heard
from semcast.pipeline.verify.large.causal.strips import Strip

RUMOUR = ("path", "seat", "index", "value")
NEVER = np.iinfo(np.int64).max
_GROUP_BITS = 41


def highest_so_far(rumours: Ints) -> Ints:
    """Without those that say no more than an earlier one, or one at the same row; in order.

    >>> highest_so_far(np.array([[0, 0, 0], [1, 1, 1], [5, 7, 9], [3, 3, 4]]))
    array([[0, 0],
           [1, 1],
           [5, 9],
           [3, 4]])
    """
    return _sorted(rumours)[0]


def learned(known: Ints, told: Ints) -> tuple[Ints, Ints]:
    """All rumours, and those that are news, each with the row at which a higher one follows.

    >>> learned(np.array([[0], [1], [7], [4]]), np.array([[0, 0], [1, 1], [5, 9], [3, 4]]))[1]
    array([[0],
           [1],
           [5],
           [3],
           [7]])
    """
    everything, place = _sorted(np.concatenate((known, told), axis=1))
    path, seat, index, _ = everything
    until = np.append(index[1:], NEVER)[: len(index)]
    until[:-1][(path[1:] != path[:-1]) | (seat[1:] != seat[:-1])] = NEVER
    fresh = place >= known.shape[1]
    return everything, np.concatenate((everything, until[None]))[:, fresh]


def _sorted(rumours: Ints) -> tuple[Ints, Ints]:
    """Each higher than those before it, and where it was; what was there first goes first."""
    path, seat, index, value = rumours
    order = np.lexsort((-value, index, seat, path))
    path, seat, index, value = table = rumours[:, order]
    if not len(path):
        return table, order
    changes = np.concatenate(([False], (path[1:] != path[:-1]) | (seat[1:] != seat[:-1])))
    highest = np.maximum.accumulate((np.cumsum(changes) << _GROUP_BITS) + value)
    more = np.concatenate(([True], highest[1:] > highest[:-1]))
    return table[:, more], order[more]


def spread(strip: Strip, start: Ints, own: int, rumours: Ints) -> tuple[Ints, list[Fault]]:
    """What rumours (seat, index, value, until) of a path do in a strip of it.

    They are carried by what is sent there: (seat, value, first, last) of these messages. Faults are messages
    delivered after they were heard of, and multicasts of what the process has already heard of.
    """
    carried: list[Ints] = [np.zeros((4, 0), np.int64)]
    faults: list[Fault] = []
    sends = strip.sent
    delivered = strip.delivered
    for seat in np.unique(rumours[0]).tolist():
        here = (rumours[0] == seat) & (rumours[1] < strip.index[-1]) & (rumours[3] > strip.index[0])
        _, index, value, until = rumours[:, here]
        rows = delivered[strip.seat[delivered] == seat]
        after = np.searchsorted(strip.index[rows], index, side="right")
        reached = np.maximum.accumulate(np.maximum(strip.last[rows], start[seat]))
        caught = np.searchsorted(reached, value, side="left")
        active = (start[seat] < value) & (caught >= after)
        faults += _late(strip, rows, after[active], value[active], seat)
        end = np.minimum(np.append(strip.index[rows], NEVER)[caught], until)
        begin = np.searchsorted(strip.index[sends], index, side="right")
        upto = np.searchsorted(strip.index[sends], end, side="left")
        some = active & (begin < upto)
        first, last = strip.first[sends[begin[some]]], strip.last[sends[upto[some] - 1]]
        carried.append(np.stack((np.full(len(first), seat), value[some], first, last)))
        if seat == own:
            faults += _circles(strip, sends, begin, value, seat)
    return np.concatenate(carried, axis=1), faults


def _late(strip: Strip, rows: Ints, after: Ints, value: Ints, seat: int) -> list[Fault]:
    """The first delivery of each sender that comes after something higher was heard of."""
    first = np.append(strip.first[rows], NEVER)
    found = np.flatnonzero(first[after] <= value)
    if not len(found):
        return []
    row = rows[after[found[0]]]
    last = min(int(strip.last[row]), int(value[found[0]]))
    return [Fault(int(strip.index[row]), seat, int(strip.first[row]), last, circle=False)]


def _circles(strip: Strip, sends: Ints, begin: Ints, value: Ints, seat: int) -> list[Fault]:
    first = np.append(strip.first[sends], NEVER)
    found = np.flatnonzero(first[begin] <= value)
    if not len(found):
        return []
    row = sends[begin[found[0]]]
    return [Fault(int(strip.index[row]), seat, int(strip.first[row]), int(strip.first[row]), circle=True)]


def reach(strip: Strip, start: Ints, carried: Ints) -> Ints:
    """What messages that carry rumours tell in a strip: (seat, index, value), if it is news there.

    `carried` is (author's seat, seat, value, first, last).
    """
    found: list[Ints] = [np.zeros((3, 0), np.int64)]
    vectors = heard(strip, start)
    delivered = strip.delivered
    for author in np.intersect1d(carried[0], strip.seat[delivered]).tolist():
        _, seat, value, first, last = carried[:, carried[0] == author]
        rows = delivered[strip.seat[delivered] == author]
        rows = rows[np.argsort(strip.first[rows])]
        word, n = overlaps(first, last, strip.first[rows], strip.last[rows])
        if len(word):
            begins = np.flatnonzero(np.concatenate(([True], word[1:] != word[:-1])))
            earliest = np.minimum.reduceat(rows[n], begins)
            word = word[begins]
            less = vectors[earliest + 1, seat[word]] < value[word]
            word, row = word[less], earliest[less]
            found.append(np.stack((seat[word], strip.index[row], value[word])))
    return np.concatenate(found, axis=1)
