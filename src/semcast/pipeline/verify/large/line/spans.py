"""Spans of numbers in arrays."""

import numpy as np

from semcast.pipeline.verify.large.line.places import Ints


def cut(first: Ints, last: Ints, points: Ints) -> tuple[Ints, Ints, Ints]:
    """Spans cut so that each of these numbers begins a new one: which span, and its first and last.

    >>> cut(np.array([1, 7]), np.array([5, 8]), np.array([1, 3, 6]))
    (array([0, 0, 1]), array([1, 3, 7]), array([2, 5, 8]))
    """
    low = np.searchsorted(points, first, side="right")
    pieces = np.searchsorted(points, last, side="right") - low + 1
    which = np.repeat(np.arange(len(first)), pieces)
    nth = np.arange(len(which)) - (np.cumsum(pieces) - pieces)[which]
    after = low[which] + nth
    padded = np.append(points, 0)
    begins = np.where(nth == 0, first[which], padded[after - 1])
    ends = np.where(nth == pieces[which] - 1, last[which], padded[after] - 1)
    return which, begins, ends


def edges(first: Ints, last: Ints) -> Ints:
    """Where spans begin, and where they are over."""
    return np.unique(np.concatenate((first, last + 1)))


def inside(numbers: Ints, first: Ints, last: Ints) -> Ints:
    """The span that each number lies in, -1 for none; the spans are in order and have nothing in common."""
    found = np.searchsorted(first, numbers, side="right") - 1
    if not len(first):
        return found
    return np.where((found >= 0) & (numbers <= last[found]), found, -1)


def earliest(group: Ints, order: Ints, first: Ints, last: Ints, bits: int) -> tuple[Ints, Ints, Ints]:
    """What of each span no other one of its group holds that comes earlier: which span, first and last.

    They come by group and then by number. Numbers have at most so many bits.
    """
    base = group << (bits + 1)
    low, high = base + first, base + last
    by_number = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[by_number]) if len(low) else high
    again = np.flatnonzero(low[by_number][1:] <= reach[:-1])
    if not len(again):
        return by_number, first[by_number], last[by_number]
    doubtful = np.isin(group, group[by_number][again + 1])
    which, begins, ends = cut(low, high, edges(low[doubtful], high[doubtful]))
    ranked = np.lexsort((order[which], begins))
    which, begins, ends = which[ranked], begins[ranked], ends[ranked]
    fresh = np.concatenate(([True], begins[1:] != begins[:-1]))
    which, begins, ends = which[fresh], begins[fresh], ends[fresh]
    return which, begins - base[which], ends - base[which]
