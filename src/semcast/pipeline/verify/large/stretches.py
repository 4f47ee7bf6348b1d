"""Stretches: what a batch of rows says of the certificates of a process, in few numbers.

A batch knows nothing of what came before it. So it says what it needs of that, and what it adds; the driver
puts the stretches of a process together in their order. If the rows of a process do not lie in order in the
files, its stretches overlap, and its rows are sorted first.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Row

from semcast.pipeline.verify.crcs import Ints
from semcast.pipeline.verify.folds import DELIVERED, INDEX, NOTHING, VECTOR, Batches, Rows
from semcast.pipeline.verify.reading import Fold, longs
from semcast.pipeline.verify.scene import Scene

Flags = npt.NDArray[np.bool_]
HIGHEST = np.iinfo(np.int64).max

PLACES = longs("piece", "begin", "end", "low", "high", "low_sent", "high_sent", "bad", "without")
"""Of the positions in a piece, from row `begin` to `end`: the lowest and highest delivered, and those sent.

`bad` is a row whose position is wrong whatever came before, NOTHING if there is none; `without` counts the
messages that have none. Lowest and highest are HIGHEST and NOTHING where there is none.
"""

TIMES = longs(
    "piece", "rank", "begin", "end", "low", "delivered", "heard", "said", "lacking", "beyond", "first", "bad"
)
"""Of the vector times in a piece, for one member of the view, by its rank.

`low` is the lowest of its messages that is delivered, `delivered` the highest, `heard` the highest that is
said to come before something that is delivered, `said` the highest that the process says to come before its
own messages. It says too little unless `lacking` was said before, and too much unless `beyond` was heard
before; with its first message it has said `first`, NOTHING if there is no message. `bad` is a row with a
delivery that comes too late, whatever came before. A row of rank NOTHING says in `low` how many messages have
no vector time.
"""


class Grid(NamedTuple):
    """What the work on arrays knows of the pieces: the rows of each process in one view."""

    starts: Ints
    """Where each begins."""
    scope: Ints
    """The configuration of each, as `scope_code`; NOTHING for none."""
    judged: Flags
    """Which are looked at."""
    ranks: list[dict[int, int]]
    """The rank of each member in the view, by its number."""


def stretches_of(scene: Scene, fold: Fold, schema: pa.Schema) -> list[Row]:
    """All stretches; where rows do not lie in order, of rows that were sorted first."""
    found = scene.over_messages(fold, schema).collect()
    if _overlap(found):
        found = scene.over_messages(fold, schema, in_order=True).collect()
    return found


def _overlap(stretches: Iterable[Row]) -> bool:
    ends: dict[tuple[int, int], int] = {}
    for row in sorted(stretches, key=lambda row: int(row["begin"])):
        key = row["piece"], row["rank"] if "rank" in row.__fields__ else 0
        if row["begin"] <= ends.get(key, -1):
            return True
        ends[key] = row["end"]
    return False


def _groups(keys: Ints) -> Iterator[slice]:
    """Where sorted keys stay the same."""
    if len(keys):
        edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        yield from map(slice, edges[:-1], edges[1:])


def _before(values: Ints) -> Ints:
    """The highest of all values before each, NOTHING before the first."""
    return np.append(NOTHING, np.maximum.accumulate(values)[:-1]) if len(values) else values


def folding_places(grid: Grid) -> Callable[[Batches], Batches]:
    """Folds batches into PLACES."""

    def fold(batches: Batches) -> Batches:
        for batch in batches:
            rows, piece, _ = _chosen(batch, grid)
            found = [_places(rows.only(part), int(piece[part[0]]), grid) for part in _slices(piece)]
            if found:
                yield _table(found, PLACES)

    return fold


def _slices(piece: Ints) -> Iterator[Ints]:
    for part in _groups(piece):
        yield np.arange(part.start, part.stop)


def _chosen(batch: pa.RecordBatch, grid: Grid) -> tuple[Rows, Ints, Ints]:
    """The rows that are looked at, in order, with their pieces, and where they were in the batch."""
    rows = Rows.of(batch)
    piece: Ints = np.searchsorted(grid.starts, rows.place, side="right") - 1
    chosen = np.flatnonzero(grid.judged[piece])
    chosen = chosen[np.argsort(rows.place[chosen], kind="stable")]
    return rows.only(chosen), piece[chosen], chosen


def _places(rows: Rows, piece: int, grid: Grid) -> tuple[int, ...]:
    first, last = rows.order, rows.order + rows.last - rows.first
    known = rows.scope != NOTHING
    delivered, sent = known & (rows.what == DELIVERED), known & (rows.what != DELIVERED)
    before = _before(np.where(delivered, last, NOTHING))
    sent_before = _before(np.where(sent, last, NOTHING))
    wrong = delivered & (first <= before)
    wrong |= sent & (first <= np.maximum(before, sent_before))
    wrong |= known & (rows.scope != grid.scope[piece])
    bad = np.flatnonzero(wrong)[:1]
    return (
        piece,
        int(rows.place[0] & INDEX),
        int(rows.place[-1] & INDEX),
        int(first[delivered].min(initial=HIGHEST)),
        int(last[delivered].max(initial=NOTHING)),
        int(first[sent].min(initial=HIGHEST)),
        int(last[sent].max(initial=NOTHING)),
        int(rows.place[bad[0]] & INDEX) if len(bad) else NOTHING,
        int((rows.last - rows.first + 1)[~known].sum()),
    )


def folding_times(grid: Grid) -> Callable[[Batches], Batches]:
    """Folds batches into TIMES."""

    def fold(batches: Batches) -> Batches:
        for batch in batches:
            rows, piece, chosen = _chosen(batch, grid)
            vectors = batch.column(VECTOR).take(pa.array(chosen))
            found: list[tuple[int, ...]] = []
            for part in _slices(piece):
                number = int(piece[part[0]])
                found += _times(rows.only(part), vectors.take(pa.array(part)), number, grid.ranks[number])
            if found:
                yield _table(found, TIMES)

    return fold


class _Clocks(NamedTuple):
    """Of each row and rank, before the row and with it."""

    delivered: Ints
    heard: Ints
    said: Ints


def _clocks(rows: Rows, vectors: pa.Array, author: Ints, ranks: int) -> _Clocks:
    shape = len(rows.place) + 1, ranks
    delivered, heard, said = (np.full(shape, NOTHING, np.int64) for _ in range(3))
    is_delivery = rows.what == DELIVERED
    pairs = vectors.flatten().to_numpy().reshape(-1, 2)
    row = np.repeat(np.arange(len(rows.place)), np.maximum(rows.changes, 0))
    fits = pairs[:, 0] < ranks
    row, pairs = row[fits], pairs[fits]
    for table, chosen in ((heard, is_delivery[row]), (said, ~is_delivery[row])):
        table[row[chosen] + 1, pairs[chosen, 0]] = pairs[chosen, 1]
    known = np.flatnonzero(is_delivery & (author >= 0))
    delivered[known + 1, author[known]] = rows.last[known]
    return _Clocks(*(np.maximum.accumulate(table, axis=0) for table in (delivered, heard, said)))


def _times(rows: Rows, vectors: pa.Array, piece: int, ranks: dict[int, int]) -> Iterator[tuple[int, ...]]:
    begin, end = int(rows.place[0] & INDEX), int(rows.place[-1] & INDEX)
    without = int((rows.last - rows.first + 1)[rows.changes == NOTHING].sum())
    yield piece, NOTHING, begin, end, without, *([NOTHING] * 7)
    author = np.array([ranks.get(each, NOTHING) for each in rows.author.tolist()], np.int64)
    clocks = _clocks(rows, vectors, author, len(ranks))
    known = np.maximum(clocks.delivered, clocks.heard)
    sends = np.flatnonzero(rows.what != DELIVERED)
    for rank in range(len(ranks)):
        mine = author == rank
        low = np.flatnonzero((rows.what == DELIVERED) & mine)
        late = low[rows.first[low] <= known[low, rank]]
        own = np.flatnonzero((rows.what != DELIVERED) & mine)
        late = np.sort(np.concatenate((late, own[rows.first[own] <= known[own, rank]])))
        # Of its own messages nobody says that they come after each other.
        says = sends if not len(own) else sends[:0]
        had, said = known[says, rank], clocks.said[says + 1, rank]
        yield (
            piece,
            rank,
            begin,
            end,
            int(np.concatenate((rows.first[low], rows.first[own])).min(initial=HIGHEST)),
            int(clocks.delivered[-1, rank]),
            int(clocks.heard[-1, rank]),
            int(clocks.said[-1, rank]),
            int(had[had > said].max(initial=NOTHING)),
            int(said[said > had].max(initial=NOTHING)),
            int(said[0]) + 1 if len(says) else NOTHING,
            int(rows.place[late[0]] & INDEX) if len(late) else NOTHING,
        )


def _table(rows: list[tuple[int, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = np.array(rows, np.int64).T
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=schema)
