"""What a process delivered more than once: only the first time counts, wherever in its life that was.

Few messages are, if any: the driver holds them, with the row of the first time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semcast.pipeline.verify.debts import repeats
from semcast.pipeline.verify.folds import DELIVERED, INDEX, INDEX_BITS, Rows
from semcast.pipeline.verify.large.causal.arrays import SEQ_BITS, Ints, coded, overlaps
from semcast.pipeline.verify.large.causal.ground import TooMuchError
from semcast.pipeline.verify.scene import Scene

MOST_REPEATS = 200_000
_ANY = -1
_FOUND = ("pair", "first", "last", "index")


@dataclass(frozen=True, slots=True)
class Again:
    """For each pair of a process and a sender with repeats, spans of all numbers, sorted."""

    pairs: Ints
    """Codes of processes and senders, sorted."""

    first: Ints
    """Codes of pairs, by their rank, and numbers."""

    last: Ints
    index: Ints
    """The row that counts; any does where nothing is repeated."""

    def rank(self, who: Ints, author: Ints) -> Ints:
        """The rank of pairs, below 0 if nothing is repeated there."""
        if not len(self.pairs):
            return np.full(len(who), -1, np.int64)
        code = coded(who, author)
        rank = np.minimum(np.searchsorted(self.pairs, code), len(self.pairs) - 1)
        return np.where(self.pairs[rank] == code, rank, -1)

    def pieces(self, rank: Ints, first: Ints, last: Ints, index: Ints) -> tuple[Ints, Ints, Ints]:
        """What counts of deliveries by such pairs: the delivery, and the first and last of each piece."""
        low, high = coded(rank, first), coded(rank, last)
        row, span = overlaps(low, high, self.first, self.last)
        counts = (self.index[span] == _ANY) | (self.index[span] == index[row])
        row, span = row[counts], span[counts]
        mask = (1 << SEQ_BITS) - 1
        return (
            row,
            np.maximum(low[row], self.first[span]) & mask,
            np.minimum(high[row], self.last[span]) & mask,
        )


NOTHING_AGAIN = Again(*(np.zeros(0, np.int64) for _ in range(4)))


def again(scene: Scene) -> Again:
    """All of it; raises TooMuchError."""
    delivered = scene.delivered.select("who", "author", "first", "last")
    table = repeats(delivered).select("who", "author", "first", "last").limit(MOST_REPEATS + 1).toArrow()
    if not table.num_rows:
        return NOTHING_AGAIN
    if table.num_rows > MOST_REPEATS:
        raise TooMuchError(f"more than {MOST_REPEATS} spans of messages were delivered again")
    who, author, first, last = (column.to_numpy().astype(np.int64) for column in table.columns)
    pairs, rank = np.unique(coded(who, author), return_inverse=True)
    order = np.argsort(coded(rank, first))
    wanted = Again(pairs, coded(rank, first)[order], coded(rank, last)[order], np.zeros(0, np.int64))
    schema = ", ".join(f"{name} long" for name in _FOUND)
    found = scene.over_messages(_finding(wanted), schema).limit(MOST_REPEATS * 4 + 1).toArrow()
    if found.num_rows > MOST_REPEATS * 4:
        raise TooMuchError(f"more than {MOST_REPEATS * 4} times something was delivered again")
    return first_times(pairs, *(column.to_numpy().astype(np.int64) for column in found.columns))


def first_times(pairs: Ints, pair: Ints, first: Ints, last: Ints, index: Ints) -> Again:
    """From deliveries (the rank of the pair, first, last, index) of what is repeated."""
    whole = coded(np.arange(len(pairs) + 1), np.zeros(len(pairs) + 1, np.int64))
    low, high = coded(pair, first), coded(pair, last)
    edges = np.unique(np.concatenate((whole, low, high + 1)))
    begins, ends = edges[:-1], edges[1:] - 1
    row, span = overlaps(low, high, begins, ends)
    none = np.iinfo(np.int64).max
    earliest = np.full(len(begins), none, np.int64)
    np.minimum.at(earliest, span, index[row])
    return Again(pairs, begins, ends, np.where(earliest == none, _ANY, earliest))


def _finding(wanted: Again) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = Rows(*(column.to_numpy() for column in batch.columns))
            rank = wanted.rank(rows.place >> INDEX_BITS, rows.author)
            some = (rank >= 0) & (rows.what == DELIVERED)
            rank, first, last = rank[some], rows.first[some], rows.last[some]
            index = rows.place[some] & INDEX
            low, high = coded(rank, first), coded(rank, last)
            row, span = overlaps(low, high, wanted.first, wanted.last)
            mask = (1 << SEQ_BITS) - 1
            columns = (
                rank[row],
                np.maximum(low[row], wanted.first[span]) & mask,
                np.minimum(high[row], wanted.last[span]) & mask,
                index[row],
            )
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(_FOUND))

    return find
