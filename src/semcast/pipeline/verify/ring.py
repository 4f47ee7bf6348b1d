"""Extended virtual synchrony by the positions of the ring: specifications 1.1, 2.3, 2.4 and 6.

If a message has the same position at everybody, positions grow at each process within com(c), and what is
sent is beyond what was delivered before, then the positions of each configuration are an order that all
deliveries and sends agree with. What is left are the configurations: each is one moment for all who come to
it. A walk over the segments of all processes, of which only the lowest and the highest position matter, tells
whether there is one order of everything (`semcast.specs.evs.walks`). Then 6.1 and 6.2 hold, and so do 1.1,
2.3 and 2.4, which ask for less. What 5 and 6.3 ask besides is judged by `ring_completeness.py`.
"""

from collections.abc import Iterator, Mapping
from operator import add

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.arrays import NOTHING
from semcast.pipeline.verify.batches import member_number, scope_code
from semcast.pipeline.verify.certificates import HIGHEST, PLACES, Grid, folding_places, stretches_of
from semcast.pipeline.verify.certified import Certified, Spot, Told
from semcast.pipeline.verify.findings import Findings, Given, Wanted
from semcast.pipeline.verify.position_arrays import compared_positions
from semcast.pipeline.verify.ring_completeness import HAVING, Com, Coms, judge_completeness
from semcast.specs.evs.walks import Walk

CERTIFICATE = "ring_certificate"
ORDER = (
    "evs_1_1_precedence",
    "evs_2_3_cut_after",
    "evs_2_4_cut_before",
    "evs_6_1_order_respects_precedence",
    "evs_6_2_same_moment",
    "total_order",
    "uniform_total_order",
)
"""What holds if there is one order of everything."""


def judge_ring(given: Given, wanted: Wanted) -> Findings:
    """All of it."""
    return _Ring(given, wanted).judge()


class _Ring:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._run_index = given.run_index
        self._wanted = wanted
        self._certified = Certified(given, CERTIFICATE, "position")
        self._coms = Coms(given.run_index)
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def judge(self) -> Findings:
        told = self._read()
        elsewhere = self._elsewhere()
        complete: set[str] = set()
        for run, names in self._wanted.items():
            if not self._certified.readable(run, told[run], names):
                continue
            if told[run].wrong or run in elsewhere or self._stuck(run):
                spots = told[run].wrong or elsewhere.get(run) or self._last_changes(run)
                self._certified.ask_excerpt(run, names, spots, ORDER)
            elif set(HAVING) & set(names) and run not in self._given.circular | self._given.untold:
                complete.add(run)
        if complete:
            asked = {run: self._wanted[run] for run in complete}
            self._certified.found.add(
                judge_completeness(self._given, asked, self._coms, self._high, self._certified.excerpts)
            )
        self._blame(told)
        return self._certified.found

    # What the rows say

    def _grid(self) -> Grid:
        run_index = self._run_index
        scope = []
        for segment, reg in zip(run_index.segments, self._coms.regular, strict=True):
            if reg is None:
                scope.append(NOTHING)
            else:
                by = member_number(run_index.numbers, segment.who[0], reg[1].formed_by)
                scope.append(scope_code(reg[1].number, by))
        judged = [segment.who[0] in self._wanted for segment in run_index.segments]
        return Grid(run_index.starts, np.array(scope, np.int64), np.array(judged, np.bool_), [])

    def _read(self) -> dict[str, Told]:
        """Put the stretches of each process together."""
        told = {run: Told() for run in self._wanted}
        by_com: dict[Com, list[tuple[int, ...]]] = {}
        for row in stretches_of(self._run_index, folding_places(self._grid()), PLACES):
            number = row["segment"]
            segment = self._run_index.segments[number]
            known, who = told[segment.who[0]], self._run_index.numbers[segment.who]
            if row["without"]:
                known.without = str(segment.who[1])
            if row["bad"] != NOTHING:
                known.wrong.add((who, row["bad"]))
            known.recorded |= max(row["high"], row["high_sent"]) != NOTHING
            by_com.setdefault((who, int(self._coms.numbers[number])), []).append(tuple(row))
            self._low[number] = min(self._low.get(number, HIGHEST), row["low"])
            self._high[number] = max(self._high.get(number, NOTHING), row["high"])
        for (who, _), stretches in by_com.items():
            told[self._run_index.everybody[who][0]].wrong |= set(_disorder(who, stretches))
        return told

    def _elsewhere(self) -> dict[str, set[Spot]]:
        """The runs in which a message has several positions, each with a few rows that say so."""
        doubtful = self._doubtful()
        self._compared = self._compare(doubtful) if doubtful else None
        if self._compared is None:
            return {}
        first = self._compared.groupBy("who").agg(fn.min("index").alias("index")).collect()
        found: dict[str, set[Spot]] = {}
        for row in first:
            spots = found.setdefault(self._run_index.everybody[row["who"]][0], set())
            if row["index"] is not None:
                spots.add((row["who"], row["index"]))
        return found

    def _doubtful(self) -> set[int]:
        """The regular configurations in which fingerprints differ: of everybody, and of what was sent."""
        prints: dict[Com, dict[int, tuple[int, ...]]] = {}
        for row in self._run_index.prints.collect():
            reg = int(self._coms.numbers[row["segment"]])
            who = self._run_index.numbers[self._run_index.segments[row["segment"]].who]
            if reg != NOTHING:
                mine = prints.setdefault(((-1 - who if row["sent"] == 1 else who), reg), {})
                before: tuple[int, ...] = mine.get(row["author"], (0, 0, 0))
                numbers: tuple[int, ...] = row["count"], row["messages"], row["positions"]
                mine[row["author"]] = tuple(map(add, before, numbers))
        found: set[int] = set()
        sets: dict[int, dict[int, tuple[int, ...]]] = {}
        for (who, reg), mine in prints.items():
            if who >= 0 and sets.setdefault(reg, mine) != mine:
                found.add(reg)
            if who < 0 and any(prints.get((a, reg), {}).get(a) != told for a, told in mine.items()):
                found.add(reg)
        return found

    def _compare(self, regs: set[int]) -> DataFrame:
        """Messages at another position than elsewhere, in these configurations."""
        judged = np.isin(self._coms.numbers, sorted(regs))
        return self._run_index.keep(compared_positions(self._run_index, self._coms.parts(), judged))

    def _stuck(self, run: str) -> bool:
        """Whether configurations and positions have no common order."""
        numbers: dict[object, int] = {}
        paths: dict[int, list[int]] = {}
        chains: dict[object, set[int]] = {}
        for number, segment in enumerate(self._run_index.segments):
            stay = self._run_index.stays.at(segment)
            if segment.who[0] != run or stay is None:
                continue
            path, conf = paths.setdefault(self._run_index.numbers[segment.who], []), stay.configuration
            if not segment.crashed:
                path.append(numbers.setdefault(conf, len(numbers)))
            low, high = self._low.get(number, HIGHEST), self._high.get(number, NOTHING)
            for position in dict.fromkeys((low, high)) if high != NOTHING else ():
                chains.setdefault(conf.reg, set()).add(position)
                path.append(numbers.setdefault((conf.reg, position), len(numbers)))
        orders = [[numbers[reg, position] for position in sorted(some)] for reg, some in chains.items()]
        return bool(Walk([*paths.values(), *orders], {}).stuck)

    # What that means

    def _last_changes(self, run: str) -> set[Spot]:
        """Rows to look at where neither single rows nor messages are at fault."""
        known = [s for s in self._run_index.segments if s.who[0] == run and s.stay is not None]
        return {(self._run_index.numbers[segment.who], segment.first) for segment in known[-8:]}

    def _blame(self, told: Mapping[str, Told]) -> None:
        rows = [(*spot, None, 0) for known in told.values() for spot in sorted(known.wrong)]
        if rows:
            self._certified.blame_rows(rows, "recorded at a position that does not follow those before")
        if self._compared is not None:
            self._certified.blame(self._compared, "recorded at another position than elsewhere")


def _disorder(who: int, stretches: list[tuple[int, ...]]) -> Iterator[Spot]:
    """Where positions do not grow from one stretch of a process in com(c) to the next."""
    ends, high, high_sent = -1, NOTHING, NOTHING
    for _, begin, end, low, top, low_sent, top_sent, *_ in sorted(stretches, key=lambda each: each[1]):
        if begin <= ends or low <= high or low_sent <= max(high, high_sent):
            yield who, begin
        ends, high, high_sent = max(ends, end), max(high, top), max(high_sent, top_sent)
