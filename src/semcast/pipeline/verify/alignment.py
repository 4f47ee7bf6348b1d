"""Lines up rows that sender and receiver cut differently, in arrays.

The same as `semcast.specs.contents.stretches`, for many pairs of sender and receiver at once.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semcast.pipeline.verify.crcs import Ints, moved

COMPARED, DIFFERENT, LEFT_OVER = range(3)
"""What a row of the result is about.

COMPARED: `size` messages of `author` that `who` delivered could be compared.
DIFFERENT: the contents of messages `first` to `last` differ, whose first delivery is row `index`.
LEFT_OVER: a row that did not line up with others, as it was given.
"""

Flags = npt.NDArray[np.bool_]
COLUMNS = ("what", "who", "author", "sent", "first", "last", "size", "crc", "index")
_SEQ_BITS = 40
"""Numbers of messages above are not compared."""


class _Side(NamedTuple):
    """The rows of senders, or of receivers, by pair and number; `rows` are their places in the table."""

    rows: Ints
    first: Ints
    last: Ints
    size: Ints
    upto: Ints
    """Bytes up to the end of a row."""
    part: Ints
    """Goes up where messages are missing between two rows."""
    prefix: Ints
    """CRCs, each moved on over all bytes behind its row, xor of all rows before."""


def align(table: pa.Table) -> pa.Table:
    """Compare what lines up; rows are those of LEFT_OVER."""
    column = {name: table.column(name).to_numpy() for name in COLUMNS}
    pairs, pair = np.unique((column["who"] << 32) + column["author"], return_inverse=True)
    sent, fits = column["sent"] == 1, column["last"] < 1 << _SEQ_BITS
    senders = _side(column, pair, np.flatnonzero(sent & fits))
    receivers = _side(column, pair, np.flatnonzero(~sent & fits))
    begin_s, end_s, begin_r, end_r = _stretches(senders, receivers)
    differ = _differ(senders, receivers, begin_s, end_s, begin_r, end_r)
    first, last = senders.rows[begin_s], senders.rows[end_s]
    messages = column["last"][last] - column["first"][first] + 1
    compared = np.zeros(len(pairs), np.int64)
    np.add.at(compared, pair[first], messages)
    left = np.ones(len(pair), np.bool_)
    for side, begin, end in ((senders, begin_s, end_s), (receivers, begin_r, end_r)):
        left[side.rows[_inside(len(side.rows), begin, end)]] = False
    return pa.concat_tables(
        [
            _table(what=COMPARED, who=pairs >> 32, author=pairs & 0xFFFFFFFF, size=compared),
            _table(
                what=DIFFERENT,
                who=column["who"][first][differ],
                author=column["author"][first][differ],
                first=column["first"][first][differ],
                last=column["last"][last][differ],
                index=column["index"][receivers.rows[begin_r]][differ],
            ),
            _table(**{**{name: values[left] for name, values in column.items()}, "what": LEFT_OVER}),
        ]
    )


def _side(column: dict[str, Ints], pair: Ints, rows: Ints) -> _Side:
    rows = rows[np.lexsort((column["last"][rows], column["first"][rows], pair[rows]))]
    above = pair[rows] << _SEQ_BITS
    first, last = above + column["first"][rows], above + column["last"][rows]
    alone = np.ones(len(rows), np.bool_)
    alone[1:] &= first[1:] > np.maximum.accumulate(last)[:-1]
    alone[:-1] &= first[1:] > last[:-1]
    rows, first, last = rows[alone], first[alone], last[alone]
    size = column["size"][rows]
    upto = np.cumsum(size)
    behind = upto[-1:] - upto
    prefix = np.bitwise_xor.accumulate(np.append(0, moved(column["crc"][rows], behind)))
    part = np.cumsum(np.append(0, first[1:] != last[:-1] + 1))[: len(rows)]
    return _Side(rows, first, last, size, upto, part, prefix)


def _stretches(senders: _Side, receivers: _Side) -> tuple[Ints, Ints, Ints, Ints]:
    """The first and the last row of each stretch, on both sides."""
    begins, begin_s, begin_r = np.intersect1d(
        senders.first, receivers.first, assume_unique=True, return_indices=True
    )
    ends, end_s, end_r = np.intersect1d(senders.last, receivers.last, assume_unique=True, return_indices=True)
    following = np.searchsorted(ends, begins)
    some = following < len(ends)
    begin_s, begin_r, following = begin_s[some], begin_r[some], following[some]
    end_s, end_r = end_s[following], end_r[following]
    whole = (senders.part[begin_s] == senders.part[end_s]) & (
        receivers.part[begin_r] == receivers.part[end_r]
    )
    return begin_s[whole], end_s[whole], begin_r[whole], end_r[whole]


def _differ(
    senders: _Side, receivers: _Side, begin_s: Ints, end_s: Ints, begin_r: Ints, end_r: Ints
) -> Flags:
    """Whether size or CRC differ: the CRCs of each side moved on as far as those of the other."""
    sizes = [
        side.upto[end] - side.upto[begin] + side.size[begin]
        for side, begin, end in ((senders, begin_s, end_s), (receivers, begin_r, end_r))
    ]
    crc_s = senders.prefix[end_s + 1] ^ senders.prefix[begin_s]
    crc_r = receivers.prefix[end_r + 1] ^ receivers.prefix[begin_r]
    behind_s, behind_r = senders.upto[-1:] - senders.upto[end_s], receivers.upto[-1:] - receivers.upto[end_r]
    differ: Flags = (sizes[0] != sizes[1]) | (moved(crc_s, behind_r) != moved(crc_r, behind_s))
    return differ


def _inside(count: int, begin: Ints, end: Ints) -> Flags:
    """Which rows lie in a stretch."""
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, begin, 1)
    np.add.at(steps, end + 1, -1)
    inside: Flags = np.cumsum(steps)[:-1] > 0
    return inside


def _table(**told: Ints | int) -> pa.Table:
    count = max(len(column) for column in told.values() if not isinstance(column, int))
    columns = [np.broadcast_to(np.asarray(told.get(name, 0), np.int64), count) for name in COLUMNS]
    return pa.table([pa.array(column) for column in columns], names=list(COLUMNS))
