"""Where fingerprints differ: the deliveries of one stretch of messages, or of positions, side by side.

Rows travel as lists of numbers, so that a shuffle moves few of them. Of what a process delivers again in the
same stay only the first time counts; integrity judges the rest.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX,
    INDEX_BITS,
    Batches,
    Flags,
    Fold,
    Ints,
    Rows,
    longs,
)
from semcast.pipeline.verify.run_index import RunIndex

STRETCH = 1 << 16
"""Numbers of messages, or positions, that are compared at once. No result depends on it."""

ARRAYS = pa.schema([*longs("judged", "author", "stretch"), ("rows", pa.list_(pa.int64()))])
FOUND = "judged long, who long, author long, first long, index long, stretch long, rows array<long>"
_FOUND = pa.schema(
    [*longs("judged", "who", "author", "first", "index", "stretch"), ("rows", pa.list_(pa.int64()))]
)
"""A message at fault and where it was delivered, or else, of a run (as `author`), messages by position."""


def scattering(
    starts: Ints, stays: Ints, judged: Flags, authors: Flags, *, whole: bool = False, sends: bool = False
) -> Fold:
    """Rows with positions as arrays by author and stretch of messages.

    Only of these authors; with `whole` by process instead, those whose number is in `authors`; with `sends`
    also what was sent.
    """

    def scatter(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            place, author, at = rows.place, rows.author, rows.order
            segment = np.searchsorted(starts, place, side="right") - 1
            wanted = authors[place >> INDEX_BITS if whole else author] & (at >= 0)
            wanted &= sends | (rows.what == DELIVERED)
            for way, counts in enumerate(judged):
                chosen = counts[segment] & wanted
                if chosen.any():
                    part = np.where(rows.what == DELIVERED, stays[segment], -1 - stays[segment])
                    columns = (place, part, author, rows.first, rows.last, at)
                    yield from _arrays(way, [column[chosen] for column in columns], whole=whole)

    return scatter


def _arrays(way: int, rows: list[Ints], *, whole: bool) -> Batches:
    if whole:
        keys = rows[0] >> INDEX_BITS, np.zeros_like(rows[0])
    else:
        rows = _cut(rows)
        keys = rows[2], rows[3] // STRETCH
    yield _keyed(way, keys, np.stack(rows))


def _cut(rows: list[Ints]) -> list[Ints]:
    """Rows cut where a stretch of messages ends."""
    place, stay, author, first, last, at = rows
    within = last // STRETCH - first // STRETCH + 1
    if within.max() == 1:
        return rows
    copies = np.repeat(np.arange(len(first)), within)
    before = np.repeat(np.cumsum(within) - within, within)
    edge = (first[copies] // STRETCH + np.arange(len(copies)) - before) * STRETCH
    begin, end = np.maximum(first[copies], edge), np.minimum(last[copies], edge + STRETCH - 1)
    return [place[copies], stay[copies], author[copies], begin, end, at[copies] + begin - first[copies]]


def _keyed(way: int, keys: tuple[Ints, Ints], rows: Ints) -> pa.RecordBatch:
    order = np.lexsort((keys[1], keys[0]))
    one, other, rows = keys[0][order], keys[1][order], rows[:, order]
    begins = np.flatnonzero(np.concatenate(([True], (one[1:] != one[:-1]) | (other[1:] != other[:-1]))))
    parts = np.split(rows, begins[1:], axis=1)
    columns = [
        pa.array(np.full(len(begins), way)),
        pa.array(one[begins]),
        pa.array(other[begins]),
        pa.array([part.ravel() for part in parts], pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARRAYS)


def _read(table: pa.Table, fields: int) -> Ints:
    lists = table.column("rows").combine_chunks()
    numbers, ends = lists.flatten().to_numpy(), np.cumsum(lists.value_lengths().to_numpy())
    parts = np.split(numbers, ends[:-1])
    return np.concatenate([part.reshape(fields, -1) for part in parts], axis=1)


def _singles(rows: Ints) -> list[Ints]:
    """Rows (place, stay, author, first, last, at) message by message, each once in a stay.

    (place, stay, author, seq, at), by author and seq, then by process.
    """
    place, stay, author, first, last, at = rows
    count = last - first + 1
    copies = np.repeat(np.arange(len(first)), count)
    offset = np.arange(len(copies)) - np.repeat(np.cumsum(count) - count, count)
    columns = [place[copies], stay[copies], author[copies], first[copies] + offset, at[copies] + offset]
    order = np.lexsort((columns[0], columns[1], columns[3], columns[2]))
    columns = [column[order] for column in columns]
    _, stay, author, seq, _ = columns
    again = (seq[1:] == seq[:-1]) & (author[1:] == author[:-1]) & (stay[1:] == stay[:-1])
    once = np.concatenate(([True], ~again))
    columns = [column[once] for column in columns]
    order = np.lexsort((columns[0], columns[3], columns[2]))
    return [column[order] for column in columns]


def compared_positions(run_index: RunIndex, coms: Ints, judged: Flags) -> DataFrame:
    """Messages at another position than at the first process, or where they were sent.

    (who, author, first, index), in the segments that are judged; `coms` says what each is a part of.
    """
    everybody = np.ones(len(run_index.everybody), np.bool_)
    # What is sent is a part of its own: it is there beside what the sender delivers.
    scatter = scattering(run_index.starts, coms, judged[None], everybody, sends=True)
    arrays = run_index.over_messages(scatter, ARRAYS)
    runs = np.zeros(len(run_index.everybody), np.int64)
    found = arrays.groupBy("judged", "author", "stretch").applyInArrow(compared(runs), FOUND)
    return found.where("rows is null").select("who", "author", "first", "index")


def compared(runs: Ints) -> Callable[[pa.Table], pa.Table]:
    """Of a stretch of messages, those that are not at the position they have at the first process.

    And all messages with their positions, by stretch of positions; `runs` says which run an author is in.
    """

    def compare(table: pa.Table) -> pa.Table:
        way = table.column("judged")[0].as_py()
        place, _, author, seq, at = _singles(_read(table, 6))
        new = np.concatenate(([True], (seq[1:] != seq[:-1]) | (author[1:] != author[:-1])))
        there = at[np.flatnonzero(new)][np.cumsum(new) - 1]
        wrong = _offences(way, (at != there), place, author, seq)
        kept = np.stack([at[new], author[new], seq[new]])
        keys = runs[author[new]], at[new] // STRETCH
        arrays = _keyed(way, keys, kept)
        nothing = pa.nulls(len(arrays), pa.int64())
        one, run, stretch, rows = arrays.columns
        columns = [one, nothing, run, nothing, nothing, stretch, rows]
        return pa.Table.from_batches([wrong, pa.RecordBatch.from_arrays(columns, schema=_FOUND)])

    return compare


def shared(table: pa.Table) -> pa.Table:
    """Of a stretch of positions, the messages that are at the position of another one."""
    way = table.column("judged")[0].as_py()
    at, author, seq = _read(table, 3)
    order = np.lexsort((seq, author, at))
    at, author, seq = at[order], author[order], seq[order]
    same = np.concatenate(([False], at[1:] == at[:-1]))
    return pa.Table.from_batches([_offences(way, same, (author << INDEX_BITS) + INDEX, author, seq)])


def grown(table: pa.Table) -> pa.Table:
    """Of all rows of a process, the messages whose position is not above that of the delivery before."""
    way = table.column("judged")[0].as_py()
    rows = _read(table, 6)
    place, _, author, seq, at = _singles(rows)
    order = np.lexsort((seq, place))
    place, author, seq, at = place[order], author[order], seq[order], at[order]
    back = np.concatenate(([False], at[1:] <= at[:-1]))
    return pa.Table.from_batches([_offences(way, back, place, author, seq)])


def _offences(way: int, chosen: Flags, place: Ints, author: Ints, seq: Ints) -> pa.RecordBatch:
    place, author, seq = place[chosen], author[chosen], seq[chosen]
    index = place & INDEX
    numbers = (np.full(len(place), way), place >> INDEX_BITS, author, seq)
    where = pa.array(index, mask=index == INDEX)
    columns = [
        *map(pa.array, numbers),
        where,
        pa.nulls(len(place), pa.int64()),
        pa.nulls(len(place), pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_FOUND)
