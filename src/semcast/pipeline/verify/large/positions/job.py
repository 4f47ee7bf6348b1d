"""Total order for runs of any size, by the positions that deliveries were recorded with.

A position is a certificate: if all processes give a message the same one, no two messages have the same,
and at each process positions grow, then all deliver in one order. What has no position cannot be judged so.
"""

from collections.abc import Iterable, Iterator
from operator import add

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.pipeline.verify.folds import ON_RING
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.positions import exact
from semcast.pipeline.verify.scene import numbered_violations
from semcast.specs.vsync.views import views_of

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
        self._scene = given.scene
        self._wanted = wanted
        pieces = self._scene.pieces
        self._starts = self._scene.starts
        self._stays = np.array([-1 if p.stay is None else p.stay for p in pieces], np.int64)
        self._judged = np.stack([np.array(list(self._counts(way)), np.bool_) for way in range(2)])
        names = list(self._scene.infos)
        self._runs = np.array([names.index(run) for run, _ in self._scene.everybody], np.int64)

    def _counts(self, way: int) -> Iterator[bool]:
        """Which pieces are judged, way by way."""
        judged: set[int] = set()
        for run in self._wanted:
            views = views_of(self._scene.stays.histories[run])
            for stay in views.known.stays:
                if not views.bereft(stay) if way == 1 else views.closed(stay):
                    judged.add(self._scene.stays.number(run, stay))
        for piece in self._scene.pieces:
            there = piece.stay is not None and TOTAL_ORDER[way] in self._wanted.get(piece.who[0], ())
            yield there and piece.stay in judged

    def judge(self) -> Findings:
        found = Findings()
        rows = [*self._backwards(found), *self._different(found)]
        found.violations += [self._scene.named(row) for row in rows]
        return found

    def certified(self) -> set[str]:
        """The runs in which messages have the same positions everywhere, and these grow."""
        found = Findings()
        wrong = [self._scene.named(row) for row in self._different(found)]
        runs = [row["run"] for each in wrong for row in each.select("run").distinct().collect()]
        going_back = {self._scene.everybody[who][0] for who in self._going_back()}
        return self._wanted.keys() - {*runs, *going_back, *(run for run, _ in found.doubts)}

    def _going_back(self) -> list[int]:
        """Processes whose positions may not always grow."""
        judged = self._scene.table(zip(*reversed(np.nonzero(self._judged)), strict=True), "piece", "judged")
        pieces = self._scene.growing.join(fn.broadcast(judged), "piece")
        along = Window.partitionBy("judged", "who").orderBy("begin")
        back = (fn.lag("end").over(along) >= fn.col("begin")) | (
            fn.lag("last").over(along) >= fn.col("first")
        )
        doubtful = pieces.select("judged", "who", back.alias("back")).where("back").select("who").distinct()
        return [row["who"] for row in doubtful.collect()]

    def _backwards(self, found: Findings) -> list[DataFrame]:
        """Deliveries at positions that do not grow."""
        numbers = self._going_back()
        if not numbers:
            return []
        lengths = self._lengths()
        long = [who for who in numbers if lengths[who] > _MOST]
        for who in long:
            run, process = self._scene.everybody[who]
            reason = f"the rows of {process} are not in order, and too many to be sorted by one task"
            found.unknown.update({(run, name): reason for name in self._wanted[run] if name in TOTAL_ORDER})
        chosen = np.zeros(len(self._scene.everybody), np.bool_)
        chosen[[who for who in numbers if who not in long]] = True
        scatter = exact.scattering(self._starts, self._stays, self._judged, chosen, whole=True)
        arrays = self._scene.over_messages(scatter, exact.ARRAYS)
        wrong = arrays.groupBy("judged", "author").applyInArrow(exact.grown, exact.FOUND)
        return [_violations(wrong, "delivered at a position that is not above the one before")]

    def _lengths(self) -> dict[int, int]:
        """How many messages the rows of each process are about."""
        counted = self._scene.totals.groupBy("run", "process").agg(fn.sum("messages").alias("messages"))
        return {
            self._scene.numbers[
                row["run"], MemberId(row["process"]["name"], row["process"]["incarnation"])
            ]: row["messages"]
            for row in counted.collect()
        }

    def _different(self, found: Findings) -> list[DataFrame]:
        """Messages with several positions and positions with several messages.

        There are none where all who delivered anything delivered the same at the same positions, which grow.
        """
        doubtful = self._doubtful(found)
        if not doubtful:
            return []
        authors = np.isin(self._runs, list(doubtful))
        scatter = exact.scattering(self._starts, self._stays, self._judged, authors)
        arrays = self._scene.over_messages(scatter, exact.ARRAYS)
        compared = self._scene.keep(
            arrays.groupBy("judged", "author", "stretch").applyInArrow(
                exact.compared(self._runs), exact.FOUND
            )
        )
        by_position = compared.where("rows is not null").select("judged", "author", "stretch", "rows")
        shared = by_position.groupBy("judged", "author", "stretch").applyInArrow(exact.shared, exact.FOUND)
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
        for row in self._scene.prints.where("sent != 1").collect():
            who = self._scene.pieces[row["piece"]].who
            for way in np.flatnonzero(self._judged[:, row["piece"]]).tolist():
                if row["sent"] == ON_RING:
                    reason = "positions of a ring count within one configuration"
                    found.doubts[who[0], TOTAL_ORDER[way]] = reason
                    continue
                mine = told.setdefault((way, self._scene.numbers[who]), {})
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
