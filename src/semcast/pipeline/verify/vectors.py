"""Whether messages are delivered with the vector time that they were sent with.

Who delivered all that was sent in a view, with the same changes of the vector time, has the same times. Of
others the rows are lined up with those of the sender, author by author.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from semcast.pipeline.verify.arrays import Batches, Flags, Fold, Ints, batch_of, batch_of_rows, longs
from semcast.pipeline.verify.certificates import Grid
from semcast.pipeline.verify.folds import DELIVERED, INDEX, INDEX_BITS, VECTOR, Rows
from semcast.pipeline.verify.run_index import RunIndex

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
