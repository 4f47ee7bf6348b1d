"""One segment of a trace, profiled in arrays: what is inside of it, and what must be known of its edges.

A segment is a stretch of rows as they lie in a block of a file. Distances and bursts inside of it are
counted; of each item its first and last update are told, and of each stream its first and last message, so
that segments can be merged where they meet (`merge.py`). Items and distances are dealt out into shares, so
that an item is in the same share of every segment, and packed: Spark moves a few large values instead of many
rows. All streams of a segment are worked on at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
_T = TypeVar("_T", bound=np.generic)

SEGMENT = 1 << 21
"""So many rows at most are one segment. No result depends on it."""

KINDS = ("update", "create", "remove", "event")
UPDATE = 0
"""The only kind that overwrites: the place of `update` in `KINDS`."""

SAMPLE = 10
"""How many bad rows are shown."""

MOST_STREAMS = 10_000

_WHOLE, _TEXT, _BYTES = pa.int64(), pa.string(), pa.binary()
ITEMS = pa.schema(
    [("stream", _TEXT), ("key", _TEXT), ("first", _WHOLE), ("last", _WHOLE), ("n", _WHOLE)],
)
"""Where among the messages of its stream in a segment a key is updated first and last, and how often."""

DISTANCES = pa.schema([("stream", _TEXT), ("value", _WHOLE), ("n", _WHOLE)])
"""So many updates are so far from the next of their key. Packed, both tables have smaller types."""

PARTIAL = pa.schema(
    [
        ("number", _WHOLE),
        ("numbered", pa.bool_()),
        ("segment", _BYTES),
        ("share", _WHOLE),
        ("items", _BYTES),
        ("distances", _BYTES),
    ]
)
"""For each segment, by its number, a row with a packed `Segment` and no share, then a row for each share."""


class Part(msgspec.Struct, array_like=True, frozen=True):
    """The messages of one stream in one segment."""

    stream: str
    first: int
    last: int
    """The smallest and the largest `seq`; where rows have none, their places in the block."""

    copies: int
    """How many messages have the `seq` of another one."""

    kinds: tuple[int, ...]
    """How many there are of each of `KINDS`."""

    bytes: int
    earliest: float
    latest: float
    began: float
    ended: float
    """When the first and the last message were, in the order of the stream."""

    head: int
    tail: int
    """Messages in the first and in the last burst; they are one burst if `head` is `n`."""

    bursts: dict[int, int]
    """The sizes of the bursts between: messages -> how many bursts have so many."""

    @property
    def n(self) -> int:
        """How many messages there are."""
        return sum(self.kinds)


class Problem(msgspec.Struct, array_like=True, frozen=True):
    """A bad row: its place in the segment and what is wrong."""

    place: int
    problem: str
    file: str | None = None
    """Where the row is from, if that is not where the segment is from."""


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """What the driver is told of one segment."""

    number: int
    file: str | None
    block: int
    start: int
    """Where in the file: the block, and how many rows of the block stand before."""

    rows: int
    """All of them, the blank and the bad included."""

    empty: int = 0
    """Headers and blank lines."""

    bad: int = 0
    sample: tuple[Problem, ...] = ()
    parts: tuple[Part, ...] = ()
    streams: int = 0
    """How many there are; beyond `MOST_STREAMS` their parts are not told."""

    numbered: bool = True
    """Whether rows have a `seq`."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How to fold: the longest gap within a burst, the most rows of a segment, the number of shares."""

    gap: float = 0.0
    rows: int = SEGMENT
    shares: int = 2


@dataclass(slots=True)
class SegmentRows:
    """The good rows of a segment, in arrays."""

    stream: pa.DictionaryArray
    """Every value of its dictionary is in use."""

    seq: Ints
    """Where rows have no numbers, their places in the block."""

    ts: Reals
    key: pa.DictionaryArray
    kind: Ints
    """Places in `KINDS`."""

    bytes: Ints


def fold(rows: SegmentRows, cut: Cut, segment: Segment) -> Iterator[pa.RecordBatch]:
    """The rows of `PARTIAL` for one segment, of which `segment` says where it is and what was left out."""
    streams = len(rows.stream.dictionary)
    if streams > MOST_STREAMS or not len(rows.ts):
        yield _told(msgspec.structs.replace(segment, streams=streams))
        return
    ordered = _Ordered(rows)
    yield _told(msgspec.structs.replace(segment, parts=tuple(ordered.parts(cut.gap)), streams=streams))
    yield from _shares(segment, ordered, cut.shares)


def decoded(value: bytes) -> Segment:
    """The segment of a packed value."""
    return msgspec.msgpack.decode(value, type=Segment)


def _told(segment: Segment) -> pa.RecordBatch:
    return _row(segment, segment=msgspec.msgpack.encode(segment))


def _shares(segment: Segment, ordered: "_Ordered", shares: int) -> Iterator[pa.RecordBatch]:
    items, owner = ordered.items(shares)
    distances = ordered.distances()
    due = distances["value"].to_numpy() % shares
    for share in np.union1d(owner, due).tolist():
        mine, some = items.take(_where(owner, share)), distances.take(_where(due, share))
        yield _row(segment, share=share, items=packed(mine), distances=packed(some))


def _where(owner: Ints, share: int) -> pa.Array:
    return pa.array(np.flatnonzero(owner == share))


def _row(of: Segment, **values: object) -> pa.RecordBatch:
    row = {"number": of.number, "numbered": of.numbered, **values}
    return pa.RecordBatch.from_pylist([row], PARTIAL)


class _Ordered:
    """Rows sorted by stream, then by `seq`; `edges` are where streams begin and end."""

    def __init__(self, rows: SegmentRows) -> None:
        self._streams = rows.stream.dictionary
        codes = rows.stream.indices.to_numpy().astype(np.int64)
        order = _order(codes, rows.seq, len(self._streams))
        self._rows = rows
        self._order = order
        self._codes = _by(order, codes)
        counts = np.bincount(codes, minlength=len(self._streams))
        self._edges = np.concatenate(([0], np.cumsum(counts)))

    def parts(self, gap: float) -> Iterator[Part]:
        """What is told of each stream."""
        rows, edges = self._rows, self._edges
        seq, size = (_by(self._order, column) for column in (rows.seq, rows.bytes))
        ts = _by(self._order, rows.ts)
        same = np.append(np.diff(seq) == 0, False)
        kinds = np.bincount(
            self._codes * len(KINDS) + _by(self._order, rows.kind), minlength=len(self._streams) * len(KINDS)
        ).reshape(-1, len(KINDS))
        bursts = _bursts(ts, gap, edges)
        for code, stream in enumerate(self._streams.to_pylist()):
            low, high = edges[code], edges[code + 1]
            mine = ts[low:high]
            sizes = bursts[code]
            yield Part(
                stream,
                first=int(seq[low]),
                last=int(seq[high - 1]),
                copies=int(np.count_nonzero(same[low : high - 1])),
                kinds=tuple(kinds[code].tolist()),
                bytes=int(size[low:high].sum(dtype=np.float64)),
                earliest=float(mine.min()),
                latest=float(mine.max()),
                began=float(mine[0]),
                ended=float(mine[-1]),
                head=int(sizes[0]),
                tail=int(sizes[-1]),
                bursts=_counted(sizes[1:-1]),
            )

    def items(self, shares: int) -> tuple[pa.Table, Ints]:
        """The rows of `ITEMS`, and the share of each."""
        self._find_updates()
        first, after = self._runs[:-1], self._runs[1:]
        streams, keys = np.divmod(self._pairs[first], max(1, len(self._rows.key.dictionary)))
        names = self._rows.key.dictionary.take(pa.array(keys))
        table = pa.table(
            [
                _named(streams, self._streams),
                names,
                self._places[first].astype(np.int32),
                self._places[after - 1].astype(np.int32),
                (after - first).astype(np.int32),
            ],
            names=ITEMS.names,
        )
        hashed = hashes(names) ^ (hashes(self._streams)[streams] >> np.uint64(7))
        return table, (hashed % np.uint64(shares)).astype(np.int64)

    def distances(self) -> pa.Table:
        """The rows of `DISTANCES`. The items have been asked for before."""
        same = self._pairs[1:] == self._pairs[:-1]
        apart = np.diff(self._places)[same]
        stream = self._pairs[1:][same] // max(1, len(self._rows.key.dictionary))
        # A distance is smaller than its stream in this segment is long: a number for both counts in arrays.
        counts = np.bincount(self._edges[stream] + apart, minlength=int(self._edges[-1]))
        found = np.flatnonzero(counts)
        of_stream = np.searchsorted(self._edges, found, side="right") - 1
        return pa.table(
            [
                _named(of_stream, self._streams),
                (found - self._edges[of_stream]).astype(np.int32),
                counts[found].astype(np.int32),
            ],
            names=DISTANCES.names,
        )

    def _find_updates(self) -> None:
        """Sort the updates by stream, key and place in the stream."""
        kind = _by(self._order, self._rows.kind)
        updates = np.flatnonzero(kind == UPDATE)
        codes = self._codes[updates]
        keys = _by(self._order, self._rows.key.indices.fill_null(0).to_numpy())[updates].astype(np.int64)
        places = updates - self._edges[codes]
        bits = max(1, len(kind).bit_length())
        # One number for stream, key and place: it sorts faster than three columns.
        ordered = np.sort((codes * max(1, len(self._rows.key.dictionary)) + keys) << bits | places)
        self._places: Ints = ordered & ((1 << bits) - 1)
        self._pairs: Ints = ordered >> bits
        self._runs: Ints = np.append(np.flatnonzero(np.diff(self._pairs, prepend=-1)), len(ordered))


def _named(codes: Ints, streams: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), streams)


def _order(codes: Ints, seq: Ints, streams: int) -> Ints | None:
    """How to sort by stream, then by number; None if rows lie so already."""
    rising = bool(np.all(seq[1:] >= seq[:-1]))
    if streams == 1:
        return None if rising else np.argsort(seq, kind="stable")
    return np.argsort(codes, kind="stable") if rising else np.lexsort((seq, codes))


def _by(order: Ints | None, column: npt.NDArray[_T]) -> npt.NDArray[_T]:
    return column if order is None else column[order]


def _bursts(ts: Reals, gap: float, edges: Ints) -> list[Ints]:
    """How many messages each burst of each stream has, in order."""
    begins = np.empty(len(ts), bool)
    np.greater(np.abs(np.diff(ts)), gap, out=begins[1:])
    begins[edges[:-1]] = True
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(ts))
    return np.split(sizes, np.searchsorted(starts, edges[1:-1]))


def _counted(values: Ints) -> dict[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def hashes(names: pa.StringArray) -> npt.NDArray[np.uint64]:
    """A hash of each text, the same in every process: a polynomial of its bytes, mixed.

    >>> bool(hashes(pa.array(["ab", "", "ba"]))[0] == hashes(pa.array(["x", "ab"]))[1])
    True
    """
    _, offsets, data = names.cast(pa.string()).buffers()
    ends = np.frombuffer(offsets, np.int32)[names.offset : names.offset + len(names) + 1].astype(np.int64)
    lengths = np.diff(ends)
    if data is None or not lengths.any():
        return np.zeros(len(names), np.uint64)
    octets = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    places = np.arange(len(octets)) - np.repeat(ends[:-1] - ends[0], lengths)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(int(lengths.max()), _FACTOR | np.uint64(1)))
        terms = np.concatenate(([np.uint64(0)], np.cumsum((octets + np.uint64(1)) * powers[places])))
        found = terms[ends[1:] - ends[0]] - terms[ends[:-1] - ends[0]]
        found ^= found >> np.uint64(32)
        found *= _FACTOR
    return np.asarray(found ^ found >> np.uint64(29))


def packed(table: pa.Table) -> bytes:
    """A table as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def unpacked(value: bytes) -> pa.Table:
    """The table of a packed value."""
    return pa.ipc.open_stream(value).read_all()


def gathered(batches: Iterator[pa.RecordBatch], most: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows in segments: neighbours with the same values in these columns, and not too many."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in _uniform(batches, most, columns):
        if held and (rows + len(batch) > most or not _same(held[0], batch, columns)):
            yield pa.Table.from_batches(held)
            held, rows = [], 0
        held.append(batch)
        rows += len(batch)
    if held:
        yield pa.Table.from_batches(held)


def _uniform(
    batches: Iterator[pa.RecordBatch], most: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Batches cut where one of the columns changes, and where they are larger than a segment."""
    for batch in batches:
        begin = 0
        for end in [*_changes(batch, columns), len(batch)]:
            for start in range(begin, end, most):
                yield batch.slice(start, min(most, end - start))
            begin = end


def _changes(batch: pa.RecordBatch, columns: Sequence[str]) -> list[int]:
    changed = np.zeros(max(0, len(batch) - 1), bool)
    for name in columns:
        codes = batch[name].dictionary_encode("encode").indices.to_numpy()
        changed |= np.diff(codes) != 0
    found: list[int] = (np.flatnonzero(changed) + 1).tolist()
    return found


def _same(one: pa.RecordBatch, other: pa.RecordBatch, columns: Sequence[str]) -> bool:
    return all(one[name][0].as_py() == other[name][0].as_py() for name in columns)
