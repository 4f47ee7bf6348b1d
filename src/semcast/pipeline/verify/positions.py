"""Total order by the positions that deliveries were recorded with.

A position is a certificate: if all processes give a message the same one, no two messages have the same,
and at each process positions grow, then all deliver in one order. What has no position cannot be judged so.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import add

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.verify import position_arrays
from semcast.pipeline.verify.folds import ON_RING
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.ring import judge_ring
from semcast.pipeline.verify.run_index import numbered_violations
from semcast.specs.vsync.views import views_of

TOTAL_ORDER = ("total_order", "uniform_total_order")
"""Of those who go on from a view, and of everybody: the two ways of judging."""

_MOST = 20_000_000
"""Messages of a process that one task may hold, where its positions do not grow."""

_Print = tuple[int, ...]


def judge_positions(given: Given, wanted: Wanted) -> Findings:
    """Total order, uniform or not. A ring has positions within configurations, and they prove as much."""
    placed = given.run_index.prints.where(fn.col("sent") == ON_RING).select("segment").distinct().collect()
    rings = {given.run_index.segments[row["segment"]].who[0] for row in placed}
    found = _Positions(given, {run: names for run, names in wanted.items() if run not in rings}).judge()
    on_rings = {run: names for run, names in wanted.items() if run in rings}
    if on_rings:
        found.add(judge_ring(given, on_rings))
    return found


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
        scatter = position_arrays.scattering(self._starts, self._stays, self._judged, chosen, whole=True)
        arrays = self._run_index.over_messages(scatter, position_arrays.ARRAYS)
        wrong = arrays.groupBy("judged", "author").applyInArrow(position_arrays.grown, position_arrays.FOUND)
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
        scatter = position_arrays.scattering(self._starts, self._stays, self._judged, authors)
        arrays = self._run_index.over_messages(scatter, position_arrays.ARRAYS)
        compared = self._run_index.keep(
            arrays.groupBy("judged", "author", "stretch").applyInArrow(
                position_arrays.compared(self._runs), position_arrays.FOUND
            )
        )
        by_position = compared.where("rows is not null").select("judged", "author", "stretch", "rows")
        shared = by_position.groupBy("judged", "author", "stretch").applyInArrow(
            position_arrays.shared, position_arrays.FOUND
        )
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
