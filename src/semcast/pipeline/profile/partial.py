"""The work on one piece of a trace, in arrays: what is inside of it, and what is to be known of its edges.

A piece is a stretch of rows as they lie in a block of a file. Distances and bursts inside of it are counted;
of each item its first and last update are told, and of the piece its first and last message, so that pieces
can be joined where they meet (`joints.py`). Items and distances are dealt out into shares, so that an item is
in the same share of every piece, and packed: Spark moves a few large values instead of many rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pandas.util import hash_array  # type: ignore[import-untyped]
from pyspark import TaskContext

_Ints = npt.NDArray[np.int64]
_Reals = npt.NDArray[np.float64]

PIECE = 1 << 21
"""So many rows at most are one piece. No result depends on it."""

_PLACE_BITS = 32
_PARTITION_BITS = 32

_WHOLE, _REAL, _TEXT = pa.int64(), pa.float64(), pa.string()
ITEMS = pa.schema([("key", _TEXT), ("first", _WHOLE), ("last", _WHOLE), ("n", _WHOLE)])
"""Where in a piece a key is updated first and last, and how often."""

COUNTS = pa.schema([("value", _WHOLE), ("n", _WHOLE)])
"""So many updates are so far from the next of their key; or so many bursts have so many messages."""

FOLDED = pa.schema(
    [
        ("stream", _TEXT),
        ("piece", _WHOLE),
        ("first", _WHOLE),
        ("last", _WHOLE),
        ("began", _REAL),
        ("ended", _REAL),
        ("n", _WHOLE),
        ("head", _WHOLE),
        ("tail", _WHOLE),
        ("bursts", pa.binary()),
        ("share", _WHOLE),
        ("items", pa.binary()),
        ("distances", pa.binary()),
    ]
)
"""For each stream of each piece a row without a share: number and time of its first and last message; how
many there are (`n`), and how many in its first and in its last burst (`head`, `tail`; they are one if `head`
is `n`); the sizes of the bursts between. Then a row for each share: its items and its distances.
"""


class Fold(Protocol):
    """What `mapInArrow` calls."""

    def __call__(self, batches: Iterator[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Fold the rows of a task."""
        ...


@dataclass(frozen=True, slots=True)
class Cut:
    """How to fold: the longest gap within a burst, the most rows of a piece, the number of shares."""

    gap: float = 0.0
    rows: int = PIECE
    shares: int = 2


def folding(cut: Cut, only: str | None) -> Fold:
    """A function over batches of (seq, ts, item, block), and `stream` unless there is but one, `only`.

    `item` is the key of an update, null for other messages.
    """
    return partial(_fold, cut=cut, only=only)


def _fold(batches: Iterator[pa.RecordBatch], *, cut: Cut, only: str | None) -> Iterator[pa.RecordBatch]:
    task = TaskContext.get()
    partition = 0 if task is None else task.partitionId()
    for number, piece in enumerate(_pieces(batches, cut.rows)):
        name = partition << _PARTITION_BITS | number
        for stream, rows in _streams(piece, only):
            yield pa.RecordBatch.from_pylist(
                [{"stream": stream, "piece": name} | told for told in _folded(rows, cut)], FOLDED
            )


def _pieces(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """The rows of a block together, in pieces that are not too large."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in _within_blocks(batches, most):
        if held and (rows + len(batch) > most or held[0]["block"][0] != batch["block"][0]):
            yield pa.Table.from_batches(held)
            held, rows = [], 0
        held.append(batch)
        rows += len(batch)
    if held:
        yield pa.Table.from_batches(held)


def _within_blocks(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Batches cut where the block changes, and where they are larger than a piece."""
    for batch in batches:
        block = batch["block"].fill_null(0).to_numpy()
        begin = 0
        for end in [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]:
            for start in range(begin, end, most):
                yield batch.slice(start, min(most, end - start))
            begin = end


def _streams(piece: pa.Table, only: str | None) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each stream."""
    if only is not None:
        yield only, piece
        return
    names = piece["stream"].combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes)).tolist()
    begin = 0
    for name, end in zip(names.dictionary.to_pylist(), ends, strict=True):
        yield name, piece if len(ends) == 1 else piece.take(order[begin:end])
        begin = end


def _folded(rows: pa.Table, cut: Cut) -> Iterator[dict[str, object]]:
    """What is told of the rows of one stream."""
    seq: _Ints = rows["seq"].to_numpy()
    if not np.all(seq[1:] > seq[:-1]):
        order = np.argsort(seq)
        rows, seq = rows.take(order), seq[order]
    ts: _Reals = rows["ts"].to_numpy()
    bursts = burst_sizes(ts, cut.gap)
    yield {
        "first": seq[0],
        "last": seq[-1],
        "began": ts[0],
        "ended": ts[-1],
        "n": len(seq),
        "head": bursts[0],
        "tail": bursts[-1],
        "bursts": _packed(_table(np.unique(bursts[1:-1], return_counts=True), COUNTS)),
    }
    updates = _Updates(rows["item"].combine_chunks())
    items = _table(updates.items(), ITEMS)
    distances = _table(np.unique(updates.distances(), return_counts=True), COUNTS)
    item_share = updates.hashes() % cut.shares
    distance_share = distances["value"].to_numpy() % cut.shares
    for share in np.union1d(item_share.astype(np.int64), distance_share).tolist():
        mine, some = (pa.array(of == share) for of in (item_share, distance_share))
        yield {
            "share": share,
            "items": _packed(items.filter(mine)),
            "distances": _packed(distances.filter(some)),
        }


def burst_sizes(ts: _Reals, gap: float) -> _Ints:
    """How many messages each burst has, in order.

    >>> burst_sizes(np.array([0.0, 0.0, 5.0]), 1.0).tolist()
    [2, 1]
    """
    starts = np.flatnonzero(np.abs(np.diff(ts)) > gap) + 1
    return np.diff(starts, prepend=0, append=len(ts))


class _Updates:
    """The updates of a piece, by key; places count all messages."""

    def __init__(self, keys: pa.Array) -> None:
        encoded = keys.dictionary_encode()
        places = np.flatnonzero(encoded.indices.is_valid().to_numpy(zero_copy_only=False))
        codes = encoded.indices.drop_null().to_numpy().astype(np.int64)
        # One number for key and place: it sorts faster than two columns.
        ordered = np.sort(codes << _PLACE_BITS | places)
        self._keys = encoded.dictionary
        self._places = ordered & ((1 << _PLACE_BITS) - 1)
        codes = ordered >> _PLACE_BITS
        self._same = codes[1:] == codes[:-1]
        self._edges = np.append(np.flatnonzero(np.diff(codes, prepend=-1)), len(codes))

    def distances(self) -> _Ints:
        """Of each update to the next of its key, where there is one."""
        found: _Ints = np.diff(self._places)[self._same]
        return found

    def items(self) -> Sequence[pa.Array | _Ints]:
        """The columns of `ITEMS`."""
        first, after = self._edges[:-1], self._edges[1:]
        return self._keys, self._places[first], self._places[after - 1], after - first

    def hashes(self) -> npt.NDArray[np.uint64]:
        """Of the keys."""
        names = self._keys.to_numpy(zero_copy_only=False)
        found: npt.NDArray[np.uint64] = hash_array(names, categorize=False)
        return found


def _table(columns: Sequence[pa.Array | _Ints], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array(column) for column in columns], schema=schema)


def _packed(table: pa.Table) -> bytes:
    """A table as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def unpacked(value: bytes) -> pa.Table:
    """The table of a packed value."""
    return pa.ipc.open_stream(value).read_all()
