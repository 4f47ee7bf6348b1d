"""Tables of numbers in arrays, and CRCs of many rows at a time (`semcast.history.crc`)."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

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
        table, digit = _table(place), left & _BYTE
        crc = (
            table[digit, 0, crc & _BYTE]
            ^ table[digit, 1, crc >> 8 & _BYTE]
            ^ table[digit, 2, crc >> 16 & _BYTE]
            ^ table[digit, 3, crc >> 24 & _BYTE]
        )
        left, place = left >> 8, place + 1
    return crc.astype(np.int64)


@cache
def _table(place: int) -> npt.NDArray[np.uint32]:
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
