"""One pass over the deliveries that were recorded with their positions in the total order.

A fold over each batch, where it lies, finds the pieces in which the positions of a process grow, and
fingerprints of what it delivered, with positions and without. The fingerprint of a set is a sum, of a run of
messages the difference of two hashes, so it depends neither on cuts nor on any order.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semcast.pipeline.verify.moves import INDEX_BITS

PIECE, PRINT = 0, 1
COLUMNS = ("judged", "what", "who", "author", "begin", "end", "floor", "last")
"""PIECE: the first and last row of a piece and the first and last position. PRINT: how many messages, how
many of them without a position, and the fingerprints of messages and of positions."""

_BITS = 44
_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Batches = Iterator[pa.RecordBatch]


def folding(starts: _Ints, judged: _Flags) -> Callable[[_Batches], _Batches]:
    """Of rows (place, author, first, last, at) in pieces that start at `starts`; `at` is below 0 for none.

    `judged` says for each way of judging and each piece whether it counts.
    """

    def fold(batches: _Batches) -> _Batches:
        for batch in batches:
            columns = [column.to_numpy() for column in batch.columns]
            piece = np.searchsorted(starts, columns[0], side="right") - 1
            for way, counts in enumerate(judged):
                chosen = counts[piece]
                if chosen.any():
                    some = [column[chosen] for column in columns]
                    yield _table(way, PRINT, _prints(*some))
                    place, _, *rest = (column[some[4] >= 0] for column in some)
                    if len(place):
                        yield _table(way, PIECE, _pieces(place, *rest))

    return fold


def _table(way: int, what: int, columns: list[_Ints]) -> pa.RecordBatch:
    rows = len(columns[0])
    heads = [np.full(rows, way), np.full(rows, what)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column.astype(np.int64)) for column in (*heads, *columns)], names=list(COLUMNS)
    )


def _pieces(place: _Ints, first: _Ints, last: _Ints, at: _Ints) -> list[_Ints]:
    order = np.argsort(place, kind="stable")
    place, at, end = place[order], at[order], (at + last - first)[order]
    who = place >> INDEX_BITS
    goes_on = (who[1:] == who[:-1]) & (at[1:] > end[:-1])
    begins = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    ends = np.concatenate((begins[1:] - 1, [len(place) - 1]))
    index = place & ((1 << INDEX_BITS) - 1)
    return [who[begins], np.zeros_like(begins), index[begins], index[ends], at[begins], end[ends]]


def _prints(place: _Ints, author: _Ints, first: _Ints, last: _Ints, at: _Ints) -> list[_Ints]:
    who, placed = place >> INDEX_BITS, at >= 0
    count = last - first + 1
    shift = np.where(placed, at - first, -1)
    messages = _hash(first, 0) - _hash(last + 1, 0)
    positions = _hash(first, shift) - _hash(last + 1, shift)
    order = np.lexsort((author, who))
    who, author = who[order], author[order]
    begins = np.flatnonzero(np.concatenate(([True], (who[1:] != who[:-1]) | (author[1:] != author[:-1]))))

    def total(values: _Ints) -> _Ints:
        return np.add.reduceat(values[order], begins)

    return [
        who[begins],
        author[begins],
        total(count),
        total(np.where(placed, 0, count)),
        total(messages),
        total(positions),
    ]


def _hash(number: _Ints, salt: _Ints | int) -> _Ints:
    """Bits that look like chance (splitmix64), few enough that no sum of differences overflows."""
    mixed = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.asarray(salt, dtype=np.int64).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(64 - _BITS)).astype(np.int64)
