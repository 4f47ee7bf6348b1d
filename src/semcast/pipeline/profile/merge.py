"""Segments merged, in arrays: one share of the items and of the distances of all segments (`partial.py`)."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semcast.pipeline.profile.partial import DISTANCES, ITEMS, Ints, packed, unpacked
from semcast.pipeline.profile.scan import Mapper, UnequalPassesError

EXACT_BITS = 11
"""Distances below 2^11 are counted one by one, those above in bins, less than a thousandth wide."""

TOP = 10
"""So many of the items that are written most are named."""

_WHOLE, _TEXT, _BYTES = pa.int64(), pa.string(), pa.binary()
MERGED = pa.schema(
    [("items", _BYTES), ("distances", _BYTES), ("frequency", _BYTES), ("top", _BYTES), ("bins", _BYTES)]
)
"""A row a share, in packed tables: the updates of each key (`COUNTED`), the number of updates with each
distance (`DISTANCES`), and what the driver is told of them: how many keys have so many updates (`DISTANCES`),
the keys that have most (`COUNTED`), and how many distances are in each bin, by its smallest (`DISTANCES`).
"""

COUNTED = pa.schema([("stream", _TEXT), ("key", _TEXT), ("n", _WHOLE)])

_CODED = pa.field("stream", pa.dictionary(pa.int16(), _TEXT))
_WIDE = ITEMS.set(0, _CODED)
_COUNTS = DISTANCES.set(0, _CODED)


def merging(before: Mapping[int, Mapping[str, int]]) -> Mapper:
    """A function over batches of (number, items, distances).

    Args:
        before: for each segment and stream, how many messages of the stream are in earlier segments.
    """
    return partial(_merge, before=before)


def summing() -> Mapper:
    """A function over batches of (stream, distance, n): the same rows for distances that Spark counted."""
    return _sum


def picking(wanted: Mapping[str, list[int]]) -> Mapper:
    """A function over batches of (distances): the `DISTANCES` in some bins of each stream."""
    return partial(_pick, wanted=wanted)


def unpacking(column: str) -> Mapper:
    """A function over batches of one column of packed tables: their rows."""
    return partial(_unpack, column=column)


def bin_lows(distances: Ints) -> Ints:
    """The smallest distance of the bin that each is in.

    >>> bin_lows(np.array([1, 2047, 2048, 2049, 4099])).tolist()
    [1, 2047, 2048, 2048, 4096]
    """
    width = _spare_bits(distances)
    return distances >> width << width


def bin_high(low: int) -> int:
    """The largest distance of the bin with this smallest one.

    >>> bin_high(7), bin_high(2048), bin_high(4096)
    (7, 2049, 4099)
    """
    return low + (1 << max(0, low.bit_length() - EXACT_BITS)) - 1


def _spare_bits(distances: Ints) -> Ints:
    """How many binary digits a distance has beyond those that count."""
    digits = np.frexp(distances.astype(np.float64))[1].astype(np.int64)
    # A double may have been rounded up to the next power of two.
    digits -= np.left_shift(np.int64(1), np.maximum(digits - 1, 0)) > distances
    return np.maximum(digits - EXACT_BITS, 0)


def _merge(
    batches: Iterator[pa.RecordBatch], *, before: Mapping[int, Mapping[str, int]]
) -> Iterator[pa.RecordBatch]:
    items, counted = [], []
    for row in (row for batch in batches for row in batch.to_pylist()):
        if row["number"] not in before:
            raise UnequalPassesError(f"segment {row['number']} was not there in the first pass")
        items.append(_shifted(unpacked(row["items"]), before[row["number"]]))
        counted.append(unpacked(row["distances"]).cast(_COUNTS))
    if not items:
        return
    updates, over_edges = _joined(pa.concat_tables(items, promote_options="default"))
    inside = pa.concat_tables([*counted, over_edges], promote_options="default")
    yield _told(updates, _summed(inside))


def _sum(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tables = [
        pa.table([batch["stream"], batch["distance"], batch["n"]], schema=DISTANCES) for batch in batches
    ]
    if tables:
        yield _told(COUNTED.empty_table(), _summed(pa.concat_tables(tables)))


def _pick(batches: Iterator[pa.RecordBatch], *, wanted: Mapping[str, list[int]]) -> Iterator[pa.RecordBatch]:
    for table in (unpacked(value) for batch in batches for value in batch["distances"].to_pylist()):
        lows = bin_lows(table["value"].to_numpy())
        streams = _texts(table["stream"])
        found = np.zeros(len(table), bool)
        for stream, bins in wanted.items():
            found |= _equal(streams, stream) & np.isin(lows, bins)
        yield from _plain(table.take(pa.array(np.flatnonzero(found))), DISTANCES).to_batches()


def _unpack(batches: Iterator[pa.RecordBatch], *, column: str) -> Iterator[pa.RecordBatch]:
    schema = COUNTED if column == "items" else DISTANCES
    for value in (value for batch in batches for value in batch[column].to_pylist()):
        yield from _plain(unpacked(value), schema).to_batches(1 << 16)


def _shifted(items: pa.Table, before: Mapping[str, int]) -> pa.Table:
    """Places in a stream instead of places in a segment."""
    items = items.cast(_WIDE)
    streams = _texts(items["stream"])
    by_code = np.array([before.get(name, 0) for name in streams.dictionary.to_pylist()], np.int64)
    shift = by_code[streams.indices.to_numpy()]
    for name in ("first", "last"):
        at = ITEMS.get_field_index(name)
        items = items.set_column(at, name, pa.array(items[name].to_numpy() + shift))
    return items


def _joined(items: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The updates of each key, and the distances from its last in a segment to its first in the next."""
    streams, keys = _texts(items["stream"]), _texts(items["key"])
    pairs = (
        streams.indices.to_numpy().astype(np.int64) * max(1, len(keys.dictionary)) + keys.indices.to_numpy()
    )
    first, last, n = (items[name].to_numpy() for name in ("first", "last", "n"))
    order = np.lexsort((first, pairs))
    pairs, first, last, n = pairs[order], first[order], last[order], n[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    same = pairs[1:] == pairs[:-1]
    of_stream, of_key = np.divmod(pairs[starts], max(1, len(keys.dictionary)))
    updates = pa.table(
        [
            _named(streams, of_stream),
            keys.dictionary.take(pa.array(of_key)),
            np.add.reduceat(n, starts) if len(starts) else n,
        ],
        names=COUNTED.names,
    )
    apart = (first[1:] - last[:-1])[same]
    over = pa.table(
        [_named(streams, pairs[1:][same] // max(1, len(keys.dictionary))), apart, np.ones_like(apart)],
        names=DISTANCES.names,
    )
    return updates, over


def _told(updates: pa.Table, distances: pa.Table) -> pa.RecordBatch:
    lows = pa.array(bin_lows(distances["value"].to_numpy()))
    values = updates["n"]
    frequency = pa.table(
        [updates["stream"], values, pa.array(np.ones(len(updates), np.int64))], names=DISTANCES.names
    )
    row = {
        "items": updates,
        "distances": distances,
        "frequency": _summed(frequency),
        "top": _most(updates),
        "bins": _summed(distances.set_column(1, "value", lows)),
    }
    return pa.RecordBatch.from_pylist([{name: packed(table) for name, table in row.items()}], MERGED)


def _summed(counts: pa.Table) -> pa.Table:
    """How often each value of each stream was counted, in all."""
    streams = _texts(counts["stream"])
    codes, values = streams.indices.to_numpy(), counts["value"].to_numpy()
    order = np.lexsort((values, codes))
    codes, values, n = codes[order], values[order], counts["n"].to_numpy()[order]
    starts = np.flatnonzero((np.diff(codes, prepend=-1) != 0) | (np.diff(values, prepend=-1) != 0))
    total = np.add.reduceat(n, starts) if len(starts) else n
    return pa.table([_named(streams, codes[starts]), values[starts], total], names=DISTANCES.names)


def _most(updates: pa.Table) -> pa.Table:
    """The keys of each stream that are written most: by number, then by name."""
    streams, n = _texts(updates["stream"]), updates["n"].to_numpy()
    codes = streams.indices.to_numpy()
    order = np.lexsort((-n, codes))
    ranks = np.arange(len(order)) - np.searchsorted(codes[order], codes[order])
    # Names decide among equals, so that every key as frequent as the last one to be named is looked at.
    last = np.full(len(streams.dictionary), 1, np.int64)
    tenth = order[ranks == TOP - 1]
    last[codes[tenth]] = n[tenth]
    among = updates.take(pa.array(np.flatnonzero(n >= last[codes])))
    sorted_ = _plain(among, COUNTED).sort_by(
        [("stream", "ascending"), ("n", "descending"), ("key", "ascending")]
    )
    names = _texts(sorted_["stream"]).indices.to_numpy()
    return sorted_.take(pa.array(np.flatnonzero(np.arange(len(names)) - np.searchsorted(names, names) < TOP)))


def _texts(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], pa.string()).dictionary_encode()
    return array


def _named(streams: pa.DictionaryArray, codes: npt.NDArray[np.integer]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), streams.dictionary)


def _equal(streams: pa.DictionaryArray, name: str) -> npt.NDArray[np.bool_]:
    at = streams.dictionary.index(name).as_py()
    found: npt.NDArray[np.bool_] = streams.indices.to_numpy() == at
    return found


def _plain(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With texts as texts."""
    return table.cast(schema)
