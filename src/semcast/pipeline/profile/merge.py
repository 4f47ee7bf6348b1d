"""Pieces joined, in arrays: one share of the items and of the distances of all pieces (`fold.py`)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semcast.pipeline.profile.partial import Fold, unpacked

_Ints = npt.NDArray[np.int64]

JOINED = pa.schema(
    [("stream", pa.string()), ("key", pa.string()), ("distance", pa.int64()), ("n", pa.int64())]
)
"""`n` updates of a key; or, where there is no key, `n` updates that are so far from the next of their key."""


def joining(before: Mapping[tuple[str, int], int]) -> Fold:
    """A function over batches of (stream, piece, items, distances); so many messages are before a piece."""
    return partial(_join, before=before)


def _join(
    batches: Iterator[pa.RecordBatch], *, before: Mapping[tuple[str, int], int]
) -> Iterator[pa.RecordBatch]:
    items: defaultdict[str, list[pa.Table]] = defaultdict(list)
    counted: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for row in (row for batch in batches for row in batch.to_pylist()):
        stream = row["stream"]
        items[stream].append(_shifted(unpacked(row["items"]), before[stream, row["piece"]]))
        counted[stream].append(unpacked(row["distances"]))
    for stream, mine in items.items():
        yield from _joined(stream, pa.concat_tables(mine), pa.concat_tables(counted[stream])).to_batches()


def _shifted(items: pa.Table, before: int) -> pa.Table:
    """Places in a stream instead of places in a piece."""
    for place, name in ((1, "first"), (2, "last")):
        items = items.set_column(place, name, pa.array(items[name].to_numpy() + before))
    return items


def _joined(stream: str, items: pa.Table, inside: pa.Table) -> pa.Table:
    keys = items["key"].combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy()
    order = np.lexsort((items["first"].to_numpy(), codes))
    codes, first, last, n = (
        column[order] for column in (codes, *(items[name].to_numpy() for name in ("first", "last", "n")))
    )
    over_edges = (first[1:] - last[:-1])[codes[1:] == codes[:-1]]
    updates = np.bincount(codes, weights=n).astype(np.int64)
    distances, times = _summed(
        np.concatenate((inside["value"].to_numpy(), over_edges)),
        np.concatenate((inside["n"].to_numpy(), np.ones_like(over_edges))),
    )
    return pa.concat_tables(
        [
            _table(stream, len(updates), key=keys.dictionary, n=pa.array(updates)),
            _table(stream, len(times), distance=pa.array(distances), n=pa.array(times)),
        ]
    )


def _summed(values: _Ints, counts: _Ints) -> tuple[_Ints, _Ints]:
    """How often each value was counted, in all."""
    found, places = np.unique(values, return_inverse=True)
    return found, np.bincount(places, weights=counts, minlength=len(found)).astype(np.int64)


def _table(stream: str, rows: int, **columns: pa.Array) -> pa.Table:
    columns["stream"] = pa.repeat(stream, rows)
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in JOINED]
    return pa.table(arrays, schema=JOINED)
