"""Numbers in arrays: what one pass over batches of rows makes of them, in few numbers."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semcast.history.crc import zeros

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Batches = Iterator[pa.RecordBatch]
Fold = Callable[[Batches], Batches]
"""What a pass makes of batches."""

_BYTE = 0xFF
NOTHING = -1
"""No view, no position, nobody."""


def longs(*names: str) -> pa.Schema:
    """A table of numbers."""
    return pa.schema([(name, pa.int64()) for name in names])


def batch_of(columns: Sequence[Ints], schema: pa.Schema) -> pa.RecordBatch:
    """Columns as a batch."""
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=schema)


def batch_of_rows(rows: Sequence[tuple[int, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch."""
    columns: Ints = np.array(rows, np.int64).reshape(-1, len(schema)).T
    return batch_of(list(columns), schema)


def changes(*keys: Ints) -> Flags:
    """Where any of the keys is another than before; so it is at the beginning."""
    found = np.zeros(len(keys[0]), np.bool_)
    found[:1] = True
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def moved(crc: Ints, over: Ints) -> Ints:
    """CRCs moved on over so many zero bytes each."""
    left, place = over, 0
    while left.any():
        crc = _moved_by_digit(crc, left & _BYTE, place)
        left, place = left >> 8, place + 1
    return crc.astype(np.int64)


def moved_together(crc: Ints, over: Ints, begins: Ints) -> Ints:
    """CRCs moved on, and put together in parts that begin there.

    What has the same way left to go is put together before it goes on: after each digit there are fewer.
    """
    left, place = over, 0
    while left.any():
        crc = _moved_by_digit(crc, left & _BYTE, place)
        left, place = left >> 8, place + 1
        new = changes(left)
        new[begins] = True
        some = np.flatnonzero(new)
        crc, left = np.bitwise_xor.reduceat(crc, some), left[some]
        begins = np.cumsum(new)[begins] - 1
    return np.bitwise_xor.reduceat(crc, begins).astype(np.int64)


def _moved_by_digit(crc: Ints, digit: Ints, place: int) -> Ints:
    table = _crc_table(place)
    found: Ints = (
        table[digit, 0, crc & _BYTE]
        ^ table[digit, 1, crc >> 8 & _BYTE]
        ^ table[digit, 2, crc >> 16 & _BYTE]
        ^ table[digit, 3, crc >> 24 & _BYTE]
    )
    return found


@cache
def _crc_table(place: int) -> npt.NDArray[np.uint32]:
    """What becomes of each byte of a CRC over digit * 256**place zeros: by digit, byte and its value."""
    one = np.array(zeros(8 * place), np.uint32)
    tables = np.empty((256, 4, 256), np.uint32)
    tables[0] = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], np.uint32)
    for digit in range(1, 256):
        before = tables[digit - 1]
        tables[digit] = (
            one[0][before & _BYTE]
            ^ one[1][before >> 8 & _BYTE]
            ^ one[2][before >> 16 & _BYTE]
            ^ one[3][before >> 24]
        )
    return tables


INDEX_BITS = 40
"""A place is the number of a process above these bits, and the index of a row there below."""

INDEX = (1 << INDEX_BITS) - 1
ON_RING = 2
"""Marks fingerprints of deliveries whose positions count within one configuration of a ring."""

DELIVERED, SENT, SENT_SAFE, STEPS, FORWARDS, GROWING, PRINT, OWN, CONTENTS = range(9)
"""What a row of the result is about.

DELIVERED, SENT: a span of messages `first` to `last`; of what was sent, `mark` is the view it was sent with.
SENT_SAFE: what was sent as safe, once more, so that spans of sent messages are long.
STEPS: how many rows there are (`begin`), the index of the first delivery (INDEX if there is none) and the
latest time.
FORWARDS: a stretch of rows, from index `begin` to `end`, in which the numbers of an author go forwards from
`first` to `last`, of deliveries (`mark` 0) or multicasts (1). The same message may be delivered twice in a
row, which integrity forbids, but not be multicast twice.
GROWING: a stretch of deliveries in which positions in the total order grow.
PRINT: how many messages of an author were delivered, how many of them without a position, and fingerprints of
these messages and of their positions; the same of what was sent with positions (`mark` 1). The fingerprint of
a set is a sum, of a run of messages the difference of two hashes, so it depends neither on cuts nor on any
order.
OWN: of rows `begin` to `end` about a process's own messages, the last that was delivered and not multicast
before among them (`first`, 0 if none was), and the last that was multicast.
CONTENTS: of rows `begin` to `end` about messages of an author that were delivered (`mark` 0) or multicast
(1), the CRC of all payloads one behind the other (`first`, NOTHING if one is not known), and their size
(`last`).
"""

COLUMNS = ("what", "segment", "author", "mark", "begin", "end", "first", "last")
_FEW = 1 << 15
_HASH_BITS = 44
"""Few enough that no sum of differences overflows."""


class Rows(NamedTuple):
    """The columns of a batch."""

    place: Ints
    what: Ints
    view: Ints
    author: Ints
    first: Ints
    last: Ints
    at: Ints
    order: Ints
    """The position in the total order, or in the configuration of a ring; NOTHING if there is none."""
    size: Ints
    crc: Ints
    scope: Ints
    """The configuration of a ring that the position is in, as a number (`scope_code`); else NOTHING."""
    changes: Ints
    """How many fields of the vector time change, NOTHING if none was recorded."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "Rows":
        """The columns that have a number for each row."""
        return cls(*(batch.column(name).to_numpy() for name in cls._fields))

    def only(self, chosen: Ints | Flags) -> "Rows":
        """Some of them."""
        return Rows(*(column[chosen] for column in self))


VECTOR = "vector"
"""The column of a batch beside those of `Rows`: ranks and numbers in turn, as a list for each row."""

INDEX_IN_PACKET_BITS = 22
"""The position of a message in a configuration is its packet, shifted so far, and its index there."""


def folding(starts: Ints) -> Fold:
    """Folds batches of `Rows`, cut into segments where `starts` says."""

    def fold(batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                rows = Rows.of(batch)
                segment: Ints = np.searchsorted(starts, rows.place, side="right") - 1
                yield from map(_table, _folded(rows, segment))

    return fold


_Told = dict[str, Ints | int]


def _folded(rows: Rows, segment: Ints) -> Iterator[_Told]:
    sent = np.minimum(rows.what, SENT)
    order = _by_stream(rows, sent)
    spans = [sent, segment, rows.view, rows.author, rows.first, rows.last]
    yield _spans(spans, order if _goes_forwards(rows, sent, order) else None)
    safe = rows.what == SENT_SAFE
    if safe.any():
        spans[0] = rows.what
        yield _spans([column[safe] for column in spans])
    yield _steps(rows, segment)
    yield _forwards(rows, segment, sent, order)
    yield _contents(rows, segment, sent, order)
    delivered = rows.what == DELIVERED
    placed = (rows.order >= 0) & delivered
    own = rows.author == rows.place >> INDEX_BITS
    if own.any():
        yield from _own(rows.only(own), segment[own])
    on_ring = rows.scope != NOTHING
    growing = placed & ~on_ring
    if growing.any():
        yield _growing(rows, segment, np.flatnonzero(growing))
    if placed.any():
        mark = ON_RING if on_ring.any() else 0
        yield _prints(rows, segment, np.flatnonzero(delivered)) | {"mark": mark}
    elif delivered.any():
        yield _unplaced(segment[delivered], (rows.last - rows.first + 1)[delivered])
    placed_sends = (rows.order >= 0) & ~delivered
    if placed_sends.any():
        yield _prints(rows, segment, np.flatnonzero(placed_sends)) | {"mark": 1}


def _table(told: _Told) -> pa.RecordBatch:
    size = max(len(column) for column in told.values() if not isinstance(column, int))
    columns = [np.broadcast_to(np.asarray(told.get(name, 0), np.int64), size) for name in COLUMNS]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(COLUMNS))


def _by_stream(rows: Rows, sent: Ints) -> Ints:
    """The order of rows by author, whether they were sent, and place."""
    if _ascending(rows.place):
        return _by_few(rows.author, sent)
    return np.lexsort((rows.place, sent, rows.author))


def _by_few(major: Ints, minor: Ints) -> Ints:
    """The order of rows by two numbers, and else as they are. If there are few, that takes no comparisons."""
    minor = minor - minor.min()
    code = (major - major.min()) * (minor.max() + 1) + minor
    if code.max() < _FEW:
        return np.argsort(code.astype(np.int16), kind="stable")
    return np.lexsort((minor, major))


def _ascending(numbers: Ints) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _goes_forwards(rows: Rows, sent: Ints, order: Ints) -> bool:
    """Whether in this order the numbers of each stream grow, and no view comes back."""
    first, view = rows.first[order], rows.view[order]
    grows = (first[1:] > first[:-1]) & (view[1:] >= view[:-1])
    return bool((grows | changes(rows.author[order], sent[order])[1:]).all())


def _spans(columns: list[Ints], order: Ints | None = None) -> _Told:
    """Spans that follow each other as one; `order`, if one is known, is by stream and number."""
    if order is None:
        order = np.lexsort(tuple(reversed(columns)))
    *keys, first, last = (column[order] for column in columns)
    begins = changes(*keys)
    begins[1:] |= first[1:] != last[:-1] + 1
    ends = np.append(begins[1:], True)
    what, segment, view, author = (key[begins] for key in keys)
    return {
        "what": what,
        "segment": segment,
        "mark": view,
        "author": author,
        "first": first[begins],
        "last": last[ends],
    }


def _steps(rows: Rows, segment: Ints) -> _Told:
    order = np.argsort(segment, kind="stable")
    segments, begins = np.unique(segment[order], return_index=True)
    delivered = np.where(rows.what == DELIVERED, rows.place & INDEX, INDEX)
    return {
        "what": STEPS,
        "segment": segments,
        "begin": np.diff(np.append(begins, len(order))),
        "first": np.minimum.reduceat(delivered[order], begins),
        "last": np.maximum.reduceat(rows.at[order], begins),
    }


def _forwards(rows: Rows, segment: Ints, sent: Ints, order: Ints) -> _Told:
    floor = (rows.first - sent)[order]
    last, place = rows.last[order], rows.place[order]
    keys = [segment[order], sent[order], rows.author[order]]
    begins = changes(*keys)
    begins[1:] |= floor[1:] < last[:-1]
    ends = np.append(begins[1:], True)
    segments, kinds, authors = (key[begins] for key in keys)
    return {
        "what": FORWARDS,
        "segment": segments,
        "author": authors,
        "mark": kinds,
        "begin": place[begins] & INDEX,
        "end": place[ends] & INDEX,
        "first": floor[begins],
        "last": last[ends],
    }


def _contents(rows: Rows, segment: Ints, sent: Ints, order: Ints) -> _Told:
    keys = [segment[order], sent[order], rows.author[order]]
    new = changes(*keys)
    begins = np.flatnonzero(new)
    ends = np.append(begins[1:], len(order)) - 1
    upto, crc, place = np.cumsum(rows.size[order]), rows.crc[order], rows.place[order]
    behind = upto[ends][np.cumsum(new) - 1] - upto
    known = np.minimum.reduceat(crc, begins) >= 0
    together = moved_together(np.maximum(crc, 0), behind, begins)
    segments, kinds, authors = (key[begins] for key in keys)
    return {
        "what": CONTENTS,
        "segment": segments,
        "author": authors,
        "mark": kinds,
        "begin": place[begins] & INDEX,
        "end": place[ends] & INDEX,
        "first": np.where(known, together, NOTHING),
        "last": np.add.reduceat(rows.size[order], begins),
    }


def _growing(rows: Rows, segment: Ints, some: Ints) -> _Told:
    """Of some rows; only the columns that are needed are taken out."""
    some = some[np.argsort(rows.place[some], kind="stable")]
    segment, place, at = segment[some], rows.place[some], rows.order[some]
    end = at + rows.last[some] - rows.first[some]
    begins = changes(segment)
    begins[1:] |= at[1:] <= end[:-1]
    ends = np.append(begins[1:], True)
    return {
        "what": GROWING,
        "segment": segment[begins],
        "begin": place[begins] & INDEX,
        "end": place[ends] & INDEX,
        "first": at[begins],
        "last": end[ends],
    }


def _prints(rows: Rows, segment: Ints, some: Ints) -> _Told:
    """Of some rows."""
    some = some[_by_few(segment[some], rows.author[some])]
    segment, author, first, at = (column[some] for column in (segment, rows.author, rows.first, rows.order))
    beyond, placed = rows.last[some] + 1, at >= 0
    shift = np.where(placed, at - first, NOTHING)
    begins = np.flatnonzero(changes(segment, author))

    def total(values: Ints) -> Ints:
        return np.add.reduceat(values, begins)

    return {
        "what": PRINT,
        "segment": segment[begins],
        "author": author[begins],
        "begin": total(beyond - first),
        "end": total(np.where(placed, 0, beyond - first)),
        "first": total(_hash(first, 0) - _hash(beyond, 0)),
        "last": total(_hash(first, shift) - _hash(beyond, shift)),
    }


def _own(rows: Rows, segment: Ints) -> Iterator[_Told]:
    order = np.argsort(rows.place, kind="stable")
    begins = np.append(np.flatnonzero(changes(rows.author[order])), len(order))
    for begin, end in pairwise(begins.tolist()):
        some = order[begin:end]
        sent = np.maximum.accumulate(np.where(rows.what[some] == DELIVERED, 0, rows.last[some]))
        needed = np.where((rows.what[some] == DELIVERED) & (rows.last[some] > sent), rows.last[some], 0)
        yield {
            "what": OWN,
            "segment": segment[some[:1]],
            "begin": rows.place[some[:1]] & INDEX,
            "end": rows.place[some[-1:]] & INDEX,
            "first": needed.max(keepdims=True),
            "last": sent[-1:],
        }


def _unplaced(segment: Ints, count: Ints) -> _Told:
    """Where there are no positions at all, that is all there is to say, of all authors together."""
    order = np.argsort(segment, kind="stable")
    segments, begins = np.unique(segment[order], return_index=True)
    total = np.add.reduceat(count[order], begins)
    return {"what": PRINT, "segment": segments, "author": NOTHING, "begin": total, "end": total}


def _hash(number: Ints, salt: Ints | int) -> Ints:
    return (mixed(number, salt) >> np.uint64(64 - _HASH_BITS)).astype(np.int64)


def mixed(number: Ints, salt: Ints | int = 0) -> npt.NDArray[np.uint64]:
    """Bits that look like chance (splitmix64)."""
    mixed = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.asarray(salt, dtype=np.int64).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
