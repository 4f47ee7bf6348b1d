"""Whether what was delivered contains what was multicast, by the CRCs of rows (`semcast.specs.contents`).

Where a process delivered all that was multicast, one CRC over everything is enough. Of others the rows of
sender and receiver, who cut them differently, are lined up, a stretch of numbers at a time; what reaches over
the edge of a stretch is left over, and lined up in the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.history.crc import crc32_combine
from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX,
    INDEX_BITS,
    Batches,
    Flags,
    Fold,
    Ints,
    Rows,
    batch_of,
    longs,
    moved,
)
from semcast.pipeline.verify.forms import Findings
from semcast.pipeline.verify.run_index import RunIndex, numbered_violations
from semcast.pipeline.verify.totals import Pair
from semcast.specs.contents import not_compared

COMPARED, DIFFERENT, LEFT_OVER = range(3)
"""What a row of the result is about.

COMPARED: `size` messages of `author` that `who` delivered could be compared.
DIFFERENT: the contents of messages `first` to `last` differ, whose first delivery is row `index`.
LEFT_OVER: a row that did not line up with others, as it was given.
"""

COLUMNS = ("what", "who", "author", "sent", "first", "last", "size", "crc", "index")
_SEQ_BITS = 40
"""Numbers of messages above are not compared."""

STRETCH_BITS = 18
"""Of the numbers of a stretch. No result depends on it."""

_PAIR_BITS = 32
_SCHEMA = longs("stretch", *COLUMNS)
_ALIGNED = ", ".join(f"{name} long" for name in COLUMNS)

Numbers = tuple[int, int]
"""The numbers of a process and of a sender."""


def judge_contents(run_index: RunIndex, pairs: Sequence[Pair]) -> Findings:
    """Whether what was delivered contains what was multicast; a part of integrity."""
    found = Findings()
    doubtful = unsure(run_index, pairs)
    if doubtful:
        lined = run_index.keep(lined_up(run_index, doubtful))
        for run, messages in _not_compared(run_index, doubtful, lined).items():
            found.notes[run, "integrity"] = not_compared(messages)
        found.violations.append(violations(run_index, lined))
    return found


def unsure(run_index: RunIndex, pairs: Iterable[Pair]) -> dict[Numbers, int]:
    """Who delivered something of whom that is not known to be the same, and how many messages."""
    sums = _sums(run_index.contents.collect())
    found = {}
    for pair in pairs:
        if pair.messages:
            who, author = run_index.numbers[pair.process], run_index.numbers[pair.sender]
            sent = sums.get((author, author, 1))
            if not pair.same or sent is None or sums.get((who, author, 0)) != sent:
                found[who, author] = pair.messages
    return found


def _sums(rows: Iterable[Row]) -> dict[tuple[int, int, int], tuple[int, int] | None]:
    """CRC and size of everything, by process, sender and 1 for what was sent; None if it is not known."""
    sums: dict[tuple[int, int, int], tuple[int, int] | None] = {}
    ends: dict[tuple[int, int, int], int] = {}
    for row in sorted(rows, key=lambda row: int(row["begin"])):
        key = row["who"], row["author"], row["sent"]
        before = sums.get(key, (0, 0))
        if before is None or row["crc"] < 0 or row["begin"] <= ends.get(key, -1):
            sums[key] = None  # rows of other batches lie between, if they overlap
        else:
            crc, size = before
            sums[key] = crc32_combine(crc, row["crc"], row["size"]), size + row["size"]
        ends[key] = max(row["end"], ends.get(key, -1))
    return sums


def lined_up(run_index: RunIndex, unsure: Mapping[Numbers, int], *, bits: int = STRETCH_BITS) -> DataFrame:
    """What comes of lining up the rows of these pairs, in the columns of `alignment`."""
    rows = run_index.over_messages(_picking(list(unsure), bits), _SCHEMA)
    if run_index.in_one_task:
        return rows.groupBy().applyInArrow(align, _ALIGNED)
    found = run_index.keep(rows.groupBy("stretch").applyInArrow(align, _ALIGNED))
    rest = found.where(fn.col("what") == LEFT_OVER).groupBy("who", "author").applyInArrow(align, _ALIGNED)
    return found.where(fn.col("what") != LEFT_OVER).union(rest)


def _not_compared(run_index: RunIndex, unsure: Mapping[Numbers, int], lined_up: DataFrame) -> dict[str, int]:
    """By run, how many messages were delivered whose contents could not be compared."""
    compared = lined_up.where(fn.col("what") == COMPARED).groupBy("who", "author")
    told = compared.agg(fn.sum("size").alias("messages")).collect()
    of_pair = {(row["who"], row["author"]): int(row["messages"]) for row in told}
    found: dict[str, int] = {}
    for pair, messages in unsure.items():
        run, _ = run_index.everybody[pair[0]]
        found[run] = found.get(run, 0) + messages - of_pair.get(pair, 0)
    return found


def violations(run_index: RunIndex, lined_up: DataFrame) -> DataFrame:
    """The stretches with other contents than were multicast, each one case, at its first message."""
    rows = lined_up.where(fn.col("what") == DIFFERENT).select(
        "who", "author", "first", fn.col("first").alias("last"), "index"
    )
    reason = "delivered with other contents than were multicast, here or soon after"
    return run_index.named(numbered_violations(rows, "integrity", reason, index=fn.col("index")))


def _picking(pairs: list[Numbers], bits: int) -> Fold:
    """The rows of these pairs whose contents are known: those of a sender once for each receiver."""
    receivers: dict[int, list[tuple[int, int]]] = {}
    for number, (who, author) in enumerate(pairs):
        receivers.setdefault(author, []).append((who, number))

    def pick(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            who, sent = rows.place >> INDEX_BITS, rows.what != DELIVERED
            for author in np.unique(rows.author).tolist():
                known = (rows.author == author) & (rows.crc >= 0)
                for receiver, number in receivers.get(author, ()):
                    chosen = known & (sent | (who == receiver))
                    if chosen.any():
                        stretch = (number << _PAIR_BITS) + (rows.first[chosen] >> bits)
                        yield _picked(rows, sent, chosen, receiver, stretch)

    return pick


def _picked(rows: Rows, sent: Flags, chosen: Flags, receiver: int, stretch: Ints) -> pa.RecordBatch:
    first = rows.first[chosen]
    columns = {
        "stretch": stretch,
        "what": np.full(len(first), LEFT_OVER),
        "who": np.full(len(first), receiver),
        "author": rows.author[chosen],
        "sent": sent[chosen].astype(np.int64),
        "first": first,
        "last": rows.last[chosen],
        "size": rows.size[chosen],
        "crc": rows.crc[chosen],
        "index": rows.place[chosen] & INDEX,
    }
    return batch_of(list(columns.values()), _SCHEMA)


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
            _aligned(what=COMPARED, who=pairs >> 32, author=pairs & 0xFFFFFFFF, size=compared),
            _aligned(
                what=DIFFERENT,
                who=column["who"][first][differ],
                author=column["author"][first][differ],
                first=column["first"][first][differ],
                last=column["last"][last][differ],
                index=column["index"][receivers.rows[begin_r]][differ],
            ),
            _aligned(**{**{name: values[left] for name, values in column.items()}, "what": LEFT_OVER}),
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


def _aligned(**told: Ints | int) -> pa.Table:
    count = max(len(column) for column in told.values() if not isinstance(column, int))
    columns = [np.broadcast_to(np.asarray(told.get(name, 0), np.int64), count) for name in COLUMNS]
    return pa.table([pa.array(column) for column in columns], names=list(COLUMNS))
