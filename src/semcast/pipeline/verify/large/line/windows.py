"""Rows by sender and by window of numbers: all that is about the same messages comes together.

What moves between tasks is arrays in binary columns, one for each batch and window, not rows.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from semcast.pipeline.verify import folds
from semcast.pipeline.verify.folds import INDEX_BITS
from semcast.pipeline.verify.large.line.places import Flags, Ints
from semcast.pipeline.verify.large.line.spans import cut
from semcast.pipeline.verify.scene import Scene

WINDOW_BITS = 16
"""A window is so many bits of a message's number. No result depends on it."""

_OFFSET = (1 << 31) - 1
_KEYED = "author long, window long, size long, rows binary"
_NAMES = ["author", "window", "size", "rows"]


class Rows(NamedTuple):
    """Rows about messages of one sender in one window; `first` and `last` count from where it begins."""

    who: Ints
    row: Ints
    """The index of the row."""

    sent: Ints
    """1 where the row is about sending."""

    first: Ints
    last: Ints
    offset: Ints
    """How many messages of the same row come before."""

    def only(self, chosen: Ints | Flags) -> "Rows":
        """Some of them."""
        return Rows(*(column[chosen] for column in self))


def windows(scene: Scene) -> DataFrame:
    """All sends and deliveries: (author, window, size, rows)."""
    return scene.over_messages(_gathering(), _KEYED).select(*_NAMES)


def pack(place: Ints, author: Ints, first: Ints, last: Ints) -> Iterator[tuple[int, int, int, bytes]]:
    """Rows by sender and window: (author, window, size, rows). Places are doubled, odd ones send."""
    begin, end = first >> WINDOW_BITS, last >> WINDOW_BITS
    offset = np.zeros_like(first)
    if (begin != end).any():
        starts = np.arange(begin.min(), end.max() + 2) << WINDOW_BITS
        which, cut_first, last = cut(first, last, starts)
        place, author, offset = place[which], author[which], cut_first - first[which]
        first, begin = cut_first, cut_first >> WINDOW_BITS
    mask = (1 << WINDOW_BITS) - 1
    span = np.minimum(offset, _OFFSET) << 32 | (first & mask) << 16 | last & mask
    order = np.lexsort((begin, author))
    author, begin, place, span = author[order], begin[order], place[order], span[order]
    fresh = np.flatnonzero((np.diff(author) != 0) | (np.diff(begin) != 0)) + 1
    bounds = [0, *fresh.tolist(), len(author)]
    for low, high in pairwise(bounds):
        rows = np.concatenate((place[low:high], span[low:high]))
        yield int(author[low]), int(begin[low]), high - low, rows.tobytes()


def unpack(blobs: list[bytes]) -> Rows:
    """The rows of one window again."""
    arrays = [np.frombuffer(blob, np.int64).reshape(2, -1) for blob in blobs]
    place, span = np.concatenate(arrays, axis=1)
    mask = (1 << WINDOW_BITS) - 1
    who, index = place >> (INDEX_BITS + 1), place >> 1 & ((1 << INDEX_BITS) - 1)
    return Rows(who, index, place & 1, span >> 16 & mask, span & mask, span >> 32)


def _gathering() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                of = folds.Rows(*(column.to_numpy() for column in batch.columns))
                place = 2 * of.place + np.minimum(of.what, folds.SENT)
                rows = list(pack(place, of.author, of.first, of.last))
                kinds = (pa.int64(), pa.int64(), pa.int64(), pa.binary())
                columns = [
                    pa.array(column, kind)
                    for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, names=_NAMES)

    return gather
