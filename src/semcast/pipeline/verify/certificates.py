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
how many messages have no vector time, and in `delivered` whether any has one (1 or 0).
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
    return run_index.over_messages(fold, schema, in_order=True).collect() if _overlap(found) else found


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


def _chosen(batch: pa.RecordBatch, grid: Grid) -> tuple[Rows, Ints, Ints | None]:
    """The rows that are looked at, in order, with their segments, and where they were in the batch.

    None stands for all rows where they are: mostly it is so, and then nothing is copied.
    """
    rows = Rows.of(batch)
    segment: Ints = np.searchsorted(grid.starts, rows.place, side="right") - 1
    judged = grid.judged[segment]
    if judged.all() and (rows.place[1:] > rows.place[:-1]).all():
        return rows, segment, None
    chosen = np.flatnonzero(judged)
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


_PRINT = longs("view", "who", "author", "sent", "messages", "mark")
"""Of what a process delivered or sent in a view of one author: how many messages, and a fingerprint of the
changes of the vector time."""

_TOLD = longs("is_print", *TIMES.names)
"""Both in one table, since vector times take long to read; of a print the last columns mean nothing."""

_PADDING = [NOTHING] * (len(TIMES) - len(_PRINT))


def read_times(run_index: RunIndex, grid: Grid) -> tuple[list[Row], list[Row]]:
    """Rows with the columns of TIMES, and those of PRINT under the first names of these."""
    fold = _folding_times(grid, _views(run_index))
    found = run_index.over_messages(fold, _TOLD, vectors=True).collect()
    times, prints = ([row for row in found if row["is_print"] == kind] for kind in (0, 1))
    if _overlap(times):
        again = run_index.over_messages(fold, _TOLD, in_order=True, vectors=True)
        times = again.where("is_print = 0").collect()
    return times, prints


def _folding_times(grid: Grid, views: Ints) -> Fold:
    def fold(batches: Batches) -> Batches:
        for batch in batches:
            found = [(0, *each) for each in _times_of(batch, grid)]
            found += [(1, *each, *_PADDING) for each in _prints_of(batch, grid, views)]
            if found:
                yield batch_of_rows(found, _TOLD)

    return fold


def _times_of(batch: pa.RecordBatch, grid: Grid) -> list[tuple[int, ...]]:
    rows, segment, chosen = _chosen(batch, grid)
    vectors = batch.column(VECTOR)
    vectors = vectors if chosen is None else vectors.take(pa.array(chosen))
    parts = _slices(segment)
    if len(parts) == 1:
        return list(_times(rows, vectors, int(segment[0]), grid.ranks[int(segment[0])]))
    found: list[tuple[int, ...]] = []
    for part in parts:
        number = int(segment[part[0]])
        found += _times(rows.only(part), vectors.take(pa.array(part)), number, grid.ranks[number])
    return found


def _ranks_of(author: Ints, ranks: dict[int, int]) -> Ints:
    """The ranks of authors in a view; NOTHING for who is no member."""
    table = np.full(int(author.max(initial=0)) + 2, NOTHING, np.int64)
    for number, rank in ranks.items():
        if number < len(table) - 1:
            table[number] = rank
    return table[author]


class _Changes(NamedTuple):
    """The changes of vector times, one behind the other."""

    row: Ints
    rank: Ints
    seq: Ints

    @classmethod
    def of(cls, rows: Rows, vectors: pa.Array) -> "_Changes":
        pairs = vectors.flatten().to_numpy().reshape(-1, 2)
        row = np.repeat(np.arange(len(rows.place)), np.maximum(rows.changes, 0))
        return cls(row, pairs[:, 0], pairs[:, 1])

    def only(self, chosen: Flags) -> "_Changes":
        return self if chosen.all() else _Changes(*(column[chosen] for column in self))

    def highest(self, ranks: int) -> Ints:
        """Of each rank, NOTHING where there is none."""
        found = np.full(ranks, NOTHING, np.int64)
        np.maximum.at(found, self.rank, self.seq)
        return found


def _known(rows: Rows, heard: _Changes, author: Ints, ranks: int) -> Ints:
    """By rank and row, the highest that was delivered or heard of before the row; at the end, in all."""
    table = np.full((ranks, len(rows.place) + 1), NOTHING, np.int64)
    table[heard.rank, heard.row + 1] = heard.seq
    row = np.flatnonzero((rows.what == DELIVERED) & (author >= 0))
    own = author[row], row + 1
    table[own] = np.maximum(table[own], rows.last[row])
    return np.maximum.accumulate(table, axis=1, out=table)


def _said(said: _Changes, sends: Ints, ranks: int) -> Ints:
    """By rank and multicast, what a process has said with it to come before its own messages."""
    table = np.full((ranks, len(sends)), NOTHING, np.int64)
    table[said.rank, np.searchsorted(sends, said.row)] = said.seq
    return np.maximum.accumulate(table, axis=1, out=table)


def _times(rows: Rows, vectors: pa.Array, segment: int, ranks: dict[int, int]) -> Iterator[tuple[int, ...]]:
    begin, end = int(rows.place[0] & INDEX), int(rows.place[-1] & INDEX)
    without = int((rows.last - rows.first + 1)[rows.changes == NOTHING].sum())
    there = int((rows.changes != NOTHING).any())
    yield segment, NOTHING, begin, end, without, there, *([NOTHING] * 7)
    author = _ranks_of(rows.author, ranks)
    changed = _Changes.of(rows, vectors)
    changed = changed.only(changed.rank < len(ranks))
    is_delivery = rows.what == DELIVERED
    by_others = is_delivery[changed.row]
    heard, said = changed.only(by_others), changed.only(~by_others)
    sends = np.flatnonzero(~is_delivery)
    known, says = _known(rows, heard, author, len(ranks)), _said(said, sends, len(ranks))
    heard_of, said_of = heard.highest(len(ranks)), said.highest(len(ranks))
    members = np.flatnonzero(author >= 0)
    is_late = np.zeros(len(author), np.bool_)
    is_late[members] = rows.first[members] <= known[author[members], members]
    for rank in range(len(ranks)):
        mine = np.flatnonzero(author == rank)
        late = mine[is_late[mine]]
        delivered = mine[is_delivery[mine]]
        # Of its own messages nobody says that they come after each other.
        owns = len(delivered) < len(mine)
        before, told = (known[rank, sends], says[rank]) if not owns else (says[rank, :0], says[rank, :0])
        yield (
            segment,
            rank,
            begin,
            end,
            int(rows.first[mine].min(initial=HIGHEST)),
            int(rows.last[delivered].max(initial=NOTHING)),
            int(heard_of[rank]),
            int(said_of[rank]),
            int(before[before > told].max(initial=NOTHING)),
            int(told[told > before].max(initial=NOTHING)),
            int(told[0]) + 1 if len(told) else NOTHING,
            int(rows.place[late[0]] & INDEX) if len(late) else NOTHING,
            int(rows.first[late[0]]) if len(late) else NOTHING,
        )


_ROWS = pa.schema(
    [*longs("view", "place", "author", "sent", "first", "last"), (VECTOR, pa.list_(pa.int64()))]
)
_WRONG = longs("who", "index", "author", "first")
_FACTOR = 0x9E3779B1

Mismatch = tuple[int, int, int, int]
"""The process and the row, the sender and the message."""


def differing(
    run_index: RunIndex, grid: Grid, members: list[list[int]], prints: Iterable[Row]
) -> dict[str, list[Mismatch]]:
    """By run, messages that were delivered with other vector times than they were sent with."""
    authors = _doubtful(run_index, prints)
    if not authors.any():
        return {}
    width = max(map(len, members), default=0)
    rows = run_index.over_messages(_picking(grid, _views(run_index), authors), _ROWS, vectors=True)
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


def _doubtful(run_index: RunIndex, prints: Iterable[Row]) -> Flags:
    """The senders of whom somebody may have other vector times."""
    sent: dict[tuple[int, int], Ints] = {}
    delivered: dict[tuple[int, int, int], Ints] = {}
    for row in prints:
        view, who, author, is_sent, messages, mark = row[1 : 1 + len(_PRINT)]
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


def _prints_of(batch: pa.RecordBatch, grid: Grid, views: Ints) -> list[tuple[int, ...]]:
    rows = Rows.of(batch)
    segment, known = _segments(rows, grid)
    if not known.any():
        return []
    authors = int(rows.author.max()) + 2
    keys = (segment * authors + rows.author + 1) * 2 + (rows.what != DELIVERED)
    keys, inverse = np.unique(keys, return_inverse=True)
    messages, sums = np.zeros((2, len(keys)), np.int64)
    np.add.at(messages, inverse[known], (rows.last - rows.first + 1)[known])
    changed = _Changes.of(rows, batch.column(VECTOR))
    changed = changed if known.all() else changed.only(known[changed.row])
    with np.errstate(over="ignore"):
        marks = (rows.first[changed.row] * _FACTOR + changed.rank) * _FACTOR + changed.seq
        np.add.at(sums, inverse[changed.row], marks >> 8)
    of, author = np.divmod(keys >> 1, authors)
    columns = [views[of], grid.starts[of] >> INDEX_BITS, author - 1, keys & 1, messages, sums]
    return [each for each in zip(*(column.tolist() for column in columns), strict=True) if each[4]]


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
