"""Spans of numbers in arrays, and messages as numbers."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

SEQ_BITS = 40
"""A message is its author's number, shifted so far, and its own; so is a row its process's and its index."""


def coded(author: Ints | int, seq: Ints) -> Ints:
    """Messages, or rows, as single numbers."""
    return np.left_shift(author, SEQ_BITS) + seq


def overlaps(first: Ints, last: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Which spans of the first kind meet which of the second, which are sorted and apart.

    >>> overlaps(np.array([1, 5]), np.array([4, 5]), np.array([2, 4]), np.array([3, 9]))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    low = np.searchsorted(ends, first, side="left")
    many = np.maximum(np.searchsorted(begins, last, side="right") - low, 0)
    row = np.repeat(np.arange(len(first)), many)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many - low, many)


def groups(*keys: Ints) -> Iterator[slice]:
    """Where sorted keys stay the same.

    >>> list(groups(np.array([3, 3, 5])))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    size = len(keys[0])
    if size:
        changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), size]
        yield from map(slice, edges[:-1], edges[1:])


def by_key(rows: Ints) -> dict[int, Ints]:
    """Rows by their first column, without it."""
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    keys, begins = np.unique(rows[0], return_index=True)
    parts = np.split(rows[1:], begins[1:], axis=1) if len(keys) else []
    return dict(zip(keys.tolist(), parts, strict=True))
