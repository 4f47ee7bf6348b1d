"""Total order by positions, uniform or not.

In order at one process are positions that grow. Where all who delivered anything delivered the same at the
same positions, by their fingerprints, there is one order. Else the deliveries of one stretch of messages, or
of positions, are laid side by side: rows travel as lists of numbers, so that a shuffle moves few of them. Of
what a process delivers again in the same stay only the first time counts; integrity judges the rest. What has
no position cannot be judged so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import add

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX,
    INDEX_BITS,
    ON_RING,
    Batches,
    Flags,
    Fold,
    Ints,
    Rows,
    longs,
)
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.run_index import RunIndex, numbered_violations
from semcast.specs.vsync.views import views_of

_STRETCH = 1 << 16
"""Numbers of messages, or positions, that are compared at once. No result depends on it."""

_ARRAYS = pa.schema([*longs("judged", "author", "stretch"), ("rows", pa.list_(pa.int64()))])
_FOUND = pa.schema(
    [*longs("judged", "who", "author", "first", "index", "stretch"), ("rows", pa.list_(pa.int64()))]
)
"""A message at fault and where it was delivered, or else, of a run (as `author`), messages by position."""

_SPARK = from_arrow_schema(_FOUND)


def _scattering(
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
        keys = rows[2], rows[3] // _STRETCH
    yield _keyed(way, keys, np.stack(rows))


def _cut(rows: list[Ints]) -> list[Ints]:
    """Rows cut where a stretch of messages ends."""
    place, stay, author, first, last, at = rows
    within = last // _STRETCH - first // _STRETCH + 1
    if within.max() == 1:
        return rows
    copies = np.repeat(np.arange(len(first)), within)
    before = np.repeat(np.cumsum(within) - within, within)
    edge = (first[copies] // _STRETCH + np.arange(len(copies)) - before) * _STRETCH
    begin, end = np.maximum(first[copies], edge), np.minimum(last[copies], edge + _STRETCH - 1)
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
    return pa.RecordBatch.from_arrays(columns, schema=_ARRAYS)


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
    scatter = _scattering(run_index.starts, coms, judged[None], everybody, sends=True)
    arrays = run_index.over_messages(scatter, _ARRAYS)
    runs = np.zeros(len(run_index.everybody), np.int64)
    found = arrays.groupBy("judged", "author", "stretch").applyInArrow(_comparing(runs), _SPARK)
    return found.where("rows is null").select("who", "author", "first", "index")


def _comparing(runs: Ints) -> Callable[[pa.Table], pa.Table]:
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
        keys = runs[author[new]], at[new] // _STRETCH
        arrays = _keyed(way, keys, kept)
        nothing = pa.nulls(len(arrays), pa.int64())
        one, run, stretch, rows = arrays.columns
        columns = [one, nothing, run, nothing, nothing, stretch, rows]
        return pa.Table.from_batches([wrong, pa.RecordBatch.from_arrays(columns, schema=_FOUND)])

    return compare


def _sharing(table: pa.Table) -> pa.Table:
    """Of a stretch of positions, the messages that are at the position of another one."""
    way = table.column("judged")[0].as_py()
    at, author, seq = _read(table, 3)
    order = np.lexsort((seq, author, at))
    at, author, seq = at[order], author[order], seq[order]
    same = np.concatenate(([False], at[1:] == at[:-1]))
    return pa.Table.from_batches([_offences(way, same, (author << INDEX_BITS) + INDEX, author, seq)])


def _not_growing(table: pa.Table) -> pa.Table:
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


TOTAL_ORDER = ("total_order", "uniform_total_order")
"""Of those who go on from a view, and of everybody: the two ways of judging."""

_MOST = 20_000_000
"""Messages of a process that one task may hold, where its positions do not grow."""

_Print = tuple[int, ...]


def judge_positions(given: Given, wanted: Wanted) -> Findings:
    """Total order, uniform or not."""
    return _Positions(given, wanted).judge()


def in_one_order(given: Given, runs: Iterable[str]) -> set[str]:
    """Those of these runs in which all deliver in the same order, by their positions."""
    return _Positions(given, dict.fromkeys(runs, TOTAL_ORDER[1:])).certified()


class _Positions:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._run_index = given.run_index
        self._wanted = wanted
        segments = self._run_index.segments
        self._starts = self._run_index.starts
        self._stays = np.array([-1 if p.stay is None else p.stay for p in segments], np.int64)
        self._judged = np.stack([np.array(list(self._counts(way)), np.bool_) for way in range(2)])
        names = list(self._run_index.infos)
        self._runs = np.array([names.index(run) for run, _ in self._run_index.everybody], np.int64)

    def _counts(self, way: int) -> Iterator[bool]:
        """Which segments are judged, way by way."""
        judged: set[int] = set()
        for run in self._wanted:
            views = views_of(self._run_index.stays.histories[run])
            for stay in views.known.stays:
                if not views.bereft(stay) if way == 1 else views.closed(stay):
                    judged.add(self._run_index.stays.number(run, stay))
        for segment in self._run_index.segments:
            there = segment.stay is not None and TOTAL_ORDER[way] in self._wanted.get(segment.who[0], ())
            yield there and segment.stay in judged

    def judge(self) -> Findings:
        found = Findings()
        rows = [*self._backwards(found), *self._different(found)]
        found.violations += [self._run_index.named(row) for row in rows]
        return found

    def certified(self) -> set[str]:
        """The runs in which messages have the same positions everywhere, and these grow."""
        found = Findings()
        wrong = [self._run_index.named(row) for row in self._different(found)]
        runs = [row["run"] for each in wrong for row in each.select("run").distinct().collect()]
        going_back = {self._run_index.everybody[who][0] for who in self._going_back()}
        return self._wanted.keys() - {*runs, *going_back, *(run for run, _ in found.doubts)}

    def _going_back(self) -> list[int]:
        """Processes whose positions may not always grow."""
        judged = self._run_index.table(
            zip(*reversed(np.nonzero(self._judged)), strict=True), "segment", "judged"
        )
        segments = self._run_index.growing.join(fn.broadcast(judged), "segment")
        along = Window.partitionBy("judged", "who").orderBy("begin")
        back = (fn.lag("end").over(along) >= fn.col("begin")) | (
            fn.lag("last").over(along) >= fn.col("first")
        )
        doubtful = segments.select("judged", "who", back.alias("back")).where("back").select("who").distinct()
        return [row["who"] for row in doubtful.collect()]

    def _backwards(self, found: Findings) -> list[DataFrame]:
        """Deliveries at positions that do not grow."""
        numbers = self._going_back()
        if not numbers:
            return []
        lengths = self._lengths()
        long = [who for who in numbers if lengths[who] > _MOST]
        for who in long:
            run, process = self._run_index.everybody[who]
            reason = f"the rows of {process} are not in order, and too many to be sorted by one task"
            found.unknown.update({(run, name): reason for name in self._wanted[run] if name in TOTAL_ORDER})
        chosen = np.zeros(len(self._run_index.everybody), np.bool_)
        chosen[[who for who in numbers if who not in long]] = True
        scatter = _scattering(self._starts, self._stays, self._judged, chosen, whole=True)
        arrays = self._run_index.over_messages(scatter, _ARRAYS)
        wrong = arrays.groupBy("judged", "author").applyInArrow(_not_growing, _SPARK)
        return [_violations(wrong, "delivered at a position that is not above the one before")]

    def _lengths(self) -> dict[int, int]:
        """How many messages the rows of each process are about."""
        found: Counter[int] = Counter()
        for each in self._run_index.totals:
            found[self._run_index.numbers[each.run, each.process]] += each.messages
        return found

    def _different(self, found: Findings) -> list[DataFrame]:
        """Messages with several positions and positions with several messages.

        There are none where all who delivered anything delivered the same at the same positions, which grow.
        """
        doubtful = self._doubtful(found)
        if not doubtful:
            return []
        authors = np.isin(self._runs, list(doubtful))
        scatter = _scattering(self._starts, self._stays, self._judged, authors)
        arrays = self._run_index.over_messages(scatter, _ARRAYS)
        compared = self._run_index.keep(
            arrays.groupBy("judged", "author", "stretch").applyInArrow(_comparing(self._runs), _SPARK)
        )
        by_position = compared.where("rows is not null").select("judged", "author", "stretch", "rows")
        shared = by_position.groupBy("judged", "author", "stretch").applyInArrow(_sharing, _SPARK)
        return [
            _violations(compared.where("rows is null"), "delivered at another position than elsewhere"),
            _violations(shared, "at the position of another message"),
        ]

    def _doubtful(self, found: Findings) -> set[int]:
        """The numbers of runs in which not all who delivered anything delivered the same."""
        different: dict[tuple[int, int], set[frozenset[_Print]]] = {}
        for (way, who), mine in self._prints(found).items():
            prints = frozenset((author, *numbers) for author, numbers in mine.items())
            different.setdefault((way, int(self._runs[who])), set()).add(prints)
        return {run for (_, run), sets in different.items() if len(sets) > 1}

    def _prints(self, found: Findings) -> dict[tuple[int, int], dict[int, _Print]]:
        """What each process delivered of each author, way by way; where there are no positions is doubt."""
        told: dict[tuple[int, int], dict[int, _Print]] = {}
        for row in self._run_index.prints.where("sent != 1").collect():
            who = self._run_index.segments[row["segment"]].who
            for way in np.flatnonzero(self._judged[:, row["segment"]]).tolist():
                if row["sent"] == ON_RING:
                    reason = "positions of a ring count within one configuration"
                    found.doubts[who[0], TOTAL_ORDER[way]] = reason
                    continue
                mine = told.setdefault((way, self._run_index.numbers[who]), {})
                before = mine.get(row["author"], (0, 0, 0))
                mine[row["author"]] = tuple(
                    map(add, before, (row["count"], row["messages"], row["positions"]))
                )
                if row["without"]:
                    reason = f"{who[1]} delivered messages without a position"
                    found.doubts[who[0], TOTAL_ORDER[way]] = reason
        return told


def _violations(found: DataFrame, reason: str) -> DataFrame:
    name = fn.when(fn.col("judged") == 0, fn.lit(TOTAL_ORDER[0])).otherwise(fn.lit(TOTAL_ORDER[1]))
    rows = found.select("judged", "who", "author", "first", fn.col("first").alias("last"), "index")
    return numbered_violations(rows, name, reason, index=fn.col("index"))
