"""What rows say of certificates, in few numbers, and whether vector times are those of the sender.

A batch knows nothing of what came before it. So it makes *stretches*: what it needs of that, and what it
adds. The driver puts the stretches of a process together in their order. If the rows of a process do not lie
in order in the files, its stretches overlap, and its rows are sorted first.

Who delivered all that was sent in a view, with the same changes of the vector time, has the same times. Of
others the rows are lined up with those of the sender, author by author.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX,
    INDEX_BITS,
    NOTHING,
    VECTOR,
    Batches,
    Flags,
    Fold,
    Ints,
    Rows,
    batch_of,
    batch_of_rows,
    changes,
    longs,
)
from semcast.pipeline.verify.run_index import RunIndex

HIGHEST = np.iinfo(np.int64).max

PLACES = longs("segment", "begin", "end", "low", "high", "low_sent", "high_sent", "bad", "without")
"""Of the positions in a segment, from row `begin` to `end`: the lowest and highest delivered, and those sent.

`bad` is a row whose position is wrong whatever came before, NOTHING if there is none; `without` counts the
messages that have none. Lowest and highest are HIGHEST and NOTHING where there is none.
"""

TIMES = longs(
    "segment",
    "rank",
    "begin",
    "end",
    "low",
    "delivered",
    "heard",
    "said",
    "lacking",
    "beyond",
    "first",
    "bad",
    "late",
)
"""Of the vector times in a segment, for one member of the view, by its rank.

`low` is the lowest of its messages that is delivered, `delivered` the highest, `heard` the highest that is
said to come before something that is delivered, `said` the highest that the process says to come before its
own messages. It says too little unless `lacking` was said before, and too much unless `beyond` was heard
before; with its first message it has said `first`, NOTHING if there is no message. `bad` is a row with a
delivery that comes too late, whatever came before, and `late` its message. A row of rank NOTHING has in `low`
how many messages have no vector time.
"""


class Grid(NamedTuple):
    """What the work on arrays knows of the segments: the rows of each process in one view."""

    starts: Ints
    """Where each begins."""
    scope: Ints
    """The configuration of each, as `scope_code`; NOTHING for none."""
    judged: Flags
    """Which are looked at."""
    ranks: list[dict[int, int]]
    """The rank of each member in the view, by its number."""


def stretches_of(run_index: RunIndex, fold: Fold, schema: pa.Schema) -> list[Row]:
    """All stretches; where rows do not lie in order, of rows that were sorted first."""
    found = run_index.over_messages(fold, schema).collect()
    if _overlap(found):
        found = run_index.over_messages(fold, schema, in_order=True).collect()
    return found


def _overlap(stretches: Iterable[Row]) -> bool:
    ends: dict[tuple[int, int], int] = {}
    for row in sorted(stretches, key=lambda row: int(row["begin"])):
        key = row["segment"], row["rank"] if "rank" in row.__fields__ else 0
        if row["begin"] <= ends.get(key, -1):
            return True
        ends[key] = row["end"]
    return False


def _before(values: Ints) -> Ints:
    """The highest of all values before each, NOTHING before the first."""
    return np.append(NOTHING, np.maximum.accumulate(values)[:-1]) if len(values) else values


def folding_places(grid: Grid) -> Fold:
    """Folds batches into PLACES."""

    def fold(batches: Batches) -> Batches:
        for batch in batches:
            rows, segment, _ = _chosen(batch, grid)
            found = [_places(rows.only(part), int(segment[part[0]]), grid) for part in _slices(segment)]
            if found:
                yield batch_of_rows(found, PLACES)

    return fold


def _slices(segment: Ints) -> list[Ints]:
    """The places of each segment, of which the rows lie one after the other."""
    return np.split(np.arange(len(segment)), np.flatnonzero(changes(segment))[1:]) if len(segment) else []


def _chosen(batch: pa.RecordBatch, grid: Grid) -> tuple[Rows, Ints, Ints]:
    """The rows that are looked at, in order, with their segments, and where they were in the batch."""
    rows = Rows.of(batch)
    segment: Ints = np.searchsorted(grid.starts, rows.place, side="right") - 1
    chosen = np.flatnonzero(grid.judged[segment])
    chosen = chosen[np.argsort(rows.place[chosen], kind="stable")]
    return rows.only(chosen), segment[chosen], chosen


def _places(rows: Rows, segment: int, grid: Grid) -> tuple[int, ...]:
    first, last = rows.order, rows.order + rows.last - rows.first
    known = rows.scope != NOTHING
    delivered, sent = known & (rows.what == DELIVERED), known & (rows.what != DELIVERED)
    before = _before(np.where(delivered, last, NOTHING))
    sent_before = _before(np.where(sent, last, NOTHING))
    wrong = delivered & (first <= before)
    wrong |= sent & (first <= np.maximum(before, sent_before))
    wrong |= known & (rows.scope != grid.scope[segment])
    bad = np.flatnonzero(wrong)[:1]
    return (
        segment,
        int(rows.place[0] & INDEX),
        int(rows.place[-1] & INDEX),
        int(first[delivered].min(initial=HIGHEST)),
        int(last[delivered].max(initial=NOTHING)),
        int(first[sent].min(initial=HIGHEST)),
        int(last[sent].max(initial=NOTHING)),
        int(rows.place[bad[0]] & INDEX) if len(bad) else NOTHING,
        int((rows.last - rows.first + 1)[~known].sum()),
    )


def folding_times(grid: Grid) -> Fold:
    """Folds batches into TIMES."""

    def fold(batches: Batches) -> Batches:
        for batch in batches:
            rows, segment, chosen = _chosen(batch, grid)
            vectors = batch.column(VECTOR).take(pa.array(chosen))
            found: list[tuple[int, ...]] = []
            for part in _slices(segment):
                number = int(segment[part[0]])
                found += _times(rows.only(part), vectors.take(pa.array(part)), number, grid.ranks[number])
            if found:
                yield batch_of_rows(found, TIMES)

    return fold


class _Clocks(NamedTuple):
    """Of each row and rank, before the row and with it."""

    delivered: Ints
    heard: Ints
    said: Ints


def _clocks(rows: Rows, vectors: pa.Array, author: Ints, ranks: int) -> _Clocks:
    shape = len(rows.place) + 1, ranks
    delivered, heard, said = (np.full(shape, NOTHING, np.int64) for _ in range(3))
    is_delivery = rows.what == DELIVERED
    pairs = vectors.flatten().to_numpy().reshape(-1, 2)
    row = np.repeat(np.arange(len(rows.place)), np.maximum(rows.changes, 0))
    fits = pairs[:, 0] < ranks
    row, pairs = row[fits], pairs[fits]
    for table, chosen in ((heard, is_delivery[row]), (said, ~is_delivery[row])):
        table[row[chosen] + 1, pairs[chosen, 0]] = pairs[chosen, 1]
    known = np.flatnonzero(is_delivery & (author >= 0))
    delivered[known + 1, author[known]] = rows.last[known]
    return _Clocks(*(np.maximum.accumulate(table, axis=0) for table in (delivered, heard, said)))


def _times(rows: Rows, vectors: pa.Array, segment: int, ranks: dict[int, int]) -> Iterator[tuple[int, ...]]:
    begin, end = int(rows.place[0] & INDEX), int(rows.place[-1] & INDEX)
    without = int((rows.last - rows.first + 1)[rows.changes == NOTHING].sum())
    yield segment, NOTHING, begin, end, without, *([NOTHING] * 8)
    author = np.array([ranks.get(each, NOTHING) for each in rows.author.tolist()], np.int64)
    clocks = _clocks(rows, vectors, author, len(ranks))
    known = np.maximum(clocks.delivered, clocks.heard)
    sends = np.flatnonzero(rows.what != DELIVERED)
    for rank in range(len(ranks)):
        mine = author == rank
        low = np.flatnonzero((rows.what == DELIVERED) & mine)
        late = low[rows.first[low] <= known[low, rank]]
        own = np.flatnonzero((rows.what != DELIVERED) & mine)
        late = np.sort(np.concatenate((late, own[rows.first[own] <= known[own, rank]])))
        # Of its own messages nobody says that they come after each other.
        says = sends if not len(own) else sends[:0]
        had, said = known[says, rank], clocks.said[says + 1, rank]
        yield (
            segment,
            rank,
            begin,
            end,
            int(np.concatenate((rows.first[low], rows.first[own])).min(initial=HIGHEST)),
            int(clocks.delivered[-1, rank]),
            int(clocks.heard[-1, rank]),
            int(clocks.said[-1, rank]),
            int(had[had > said].max(initial=NOTHING)),
            int(said[said > had].max(initial=NOTHING)),
            int(said[0]) + 1 if len(says) else NOTHING,
            int(rows.place[late[0]] & INDEX) if len(late) else NOTHING,
            int(rows.first[late[0]]) if len(late) else NOTHING,
        )


_PRINT = longs("view", "who", "author", "sent", "messages", "mark")
_ROWS = pa.schema(
    [*longs("view", "place", "author", "sent", "first", "last"), (VECTOR, pa.list_(pa.int64()))]
)
_WRONG = longs("who", "index", "author", "first")
_FACTOR = 0x9E3779B1

Mismatch = tuple[int, int, int, int]
"""The process and the row, the sender and the message."""


def differing(run_index: RunIndex, grid: Grid, members: list[list[int]]) -> dict[str, list[Mismatch]]:
    """By run, messages that were delivered with other vector times than they were sent with."""
    views = _views(run_index)
    authors = _doubtful(run_index, grid, views)
    if not authors.any():
        return {}
    width = max(map(len, members), default=0)
    rows = run_index.over_messages(_picking(grid, views, authors), _ROWS)
    found = run_index.apply(rows, "author", _comparing(width), _WRONG).collect()
    wrong: dict[str, list[Mismatch]] = {}
    for who, index, author, first in found:
        wrong.setdefault(run_index.everybody[who][0], []).append((who, index, author, first))
    return wrong


def _views(run_index: RunIndex) -> Ints:
    """The view of each segment, numbered over all runs."""
    numbers: dict[object, int] = {}
    found = [
        numbers.setdefault((segment.who[0], segment.view), len(numbers)) for segment in run_index.segments
    ]
    return np.array(found, np.int64)


def _doubtful(run_index: RunIndex, grid: Grid, views: Ints) -> Flags:
    """The senders of whom somebody may have other vector times."""
    sent: dict[tuple[int, int], Ints] = {}
    delivered: dict[tuple[int, int, int], Ints] = {}
    for view, who, author, is_sent, messages, mark in run_index.over_messages(
        _printing(grid, views), _PRINT
    ).collect():
        told = np.array([messages, mark], np.int64)
        if is_sent:
            sent[view, author] = sent.get((view, author), 0) + told
        else:
            delivered[view, who, author] = delivered.get((view, who, author), 0) + told
    doubtful = np.zeros(len(run_index.everybody), np.bool_)
    for (view, _, author), told in delivered.items():
        other = sent.get((view, author))
        if other is None or (other != told).any():
            doubtful[author] = True
    return doubtful


def _segments(rows: Rows, grid: Grid) -> tuple[Ints, Flags]:
    segment: Ints = np.searchsorted(grid.starts, rows.place, side="right") - 1
    known: Flags = grid.judged[segment] & (rows.changes >= 0)
    return segment, known


def _printing(grid: Grid, views: Ints) -> Fold:
    def mark(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            segment, known = _segments(rows, grid)
            if not known.any():
                continue
            pairs = batch.column(VECTOR).flatten().to_numpy().reshape(-1, 2)
            row = np.repeat(np.arange(len(rows.place)), np.maximum(rows.changes, 0))
            with np.errstate(over="ignore"):
                marks = (rows.first[row] * _FACTOR + pairs[:, 0]) * _FACTOR + pairs[:, 1]
                total = np.zeros(len(rows.place), np.int64)
                np.add.at(total, row, marks >> 8)
            keys = np.stack((views[segment], rows.place >> INDEX_BITS, rows.author, rows.what != DELIVERED))
            keys, inverse = np.unique(keys[:, known], axis=1, return_inverse=True)
            messages, sums = np.zeros((2, keys.shape[1]), np.int64)
            np.add.at(messages, inverse.ravel(), (rows.last - rows.first + 1)[known])
            np.add.at(sums, inverse.ravel(), total[known])
            yield batch_of([*keys.astype(np.int64), messages, sums], _PRINT)

    return mark


def _picking(grid: Grid, views: Ints, authors: Flags) -> Fold:
    def pick(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            segment, known = _segments(rows, grid)
            chosen = known & authors[rows.author]
            if chosen.any():
                sent = (rows.what != DELIVERED).astype(np.int64)
                numbers = (views[segment], rows.place, rows.author, sent, rows.first, rows.last)
                columns = [pa.array(column[chosen]) for column in numbers]
                vector = batch.column(VECTOR).filter(pa.array(chosen))
                yield pa.RecordBatch.from_arrays([*columns, vector], schema=_ROWS)

    return pick


def _comparing(width: int) -> Callable[[pa.Table], pa.Table]:
    def compare(table: pa.Table) -> pa.Table:
        names = ("view", "place", "author", "sent", "first", "last")
        view, place, author, sent, first, last = (table.column(name).to_numpy() for name in names)
        vector = table.column(VECTOR).combine_chunks()
        found: list[Mismatch] = []
        for number in np.unique(view).tolist():
            here = np.flatnonzero(view == number)
            own = here[sent[here] == 1]
            own = own[np.argsort(first[own], kind="stable")]
            said = _cumulative(vector, own, width)
            steps = np.flatnonzero((np.diff(said, axis=0, prepend=0) != 0).any(axis=1))
            numbers = np.append(0, first[own][steps])
            times = np.concatenate((np.zeros((1, width), np.int64), said[steps]))
            for who in np.unique(place[here] >> INDEX_BITS).tolist():
                mine = here[(sent[here] == 0) & (place[here] >> INDEX_BITS == who)]
                mine = mine[np.argsort(place[mine], kind="stable")]
                low = np.searchsorted(numbers, first[mine], side="right") - 1
                high = np.searchsorted(numbers, last[mine], side="right") - 1
                sent_at_all = np.isin(first[mine], first[own]) | (len(own) > 0) & (
                    first[mine] >= first[own].min(initial=1)
                )
                other = (_cumulative(vector, mine, width) != times[low]).any(axis=1) | (low != high)
                for row in mine[other & sent_at_all].tolist():
                    found.append((who, int(place[row] & INDEX), int(author[row]), int(first[row])))
        return pa.Table.from_batches([batch_of_rows(found, _WRONG)])

    return compare


def _cumulative(vector: pa.Array, rows: Ints, width: int) -> Ints:
    """The vector times of rows in order, from their changes."""
    chosen = vector.take(pa.array(rows))
    times = np.zeros((len(rows), width), np.int64)
    lengths = np.diff(chosen.offsets.to_numpy()) // 2
    pairs = chosen.flatten().to_numpy().reshape(-1, 2)
    times[np.repeat(np.arange(len(rows)), lengths), pairs[:, 0]] = pairs[:, 1]
    return np.maximum.accumulate(times, axis=0)
