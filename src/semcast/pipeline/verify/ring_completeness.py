"""Specifications 5 and 6.3 by the positions of the ring: who has come to a position lacks nothing below it.

Whoever has come to a position in com(c) is asked for all that was sent there below it, which is more than 5
and 6.3 ask; what is lacking then is judged in an excerpt from the lowest such position on.
"""

from collections.abc import Mapping

import numpy as np
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.pipeline.verify import obligations, replacements
from semcast.pipeline.verify.arrays import NOTHING, Batches, Fold, Ints, batch_of_rows, longs
from semcast.pipeline.verify.certificates import HIGHEST
from semcast.pipeline.verify.certified import Excerpts
from semcast.pipeline.verify.findings import Findings, Given, Wanted
from semcast.pipeline.verify.folds import Rows
from semcast.pipeline.verify.run_index import RunIndex
from semcast.specs.evs.configurations import Configuration

HAVING = ("evs_5_causal", "evs_6_3_agreed")

_TOO_MUCH = "too much comes after something that is lacking"
_NOT_THERE = "something is lacking whose position was not recorded"
_REACHED = longs("reg", "limit", "author", "upto")
_FOUND = longs("author", "first", "at")

Com = tuple[int, int]
"""The number of a process and of a regular configuration: what the process does in com(c)."""


class Coms:
    """Which segments are parts of which com(c)."""

    def __init__(self, run_index: RunIndex) -> None:
        stays = map(run_index.stays.at, run_index.segments)
        self.regular = [
            None if stay is None else (segment.who[0], stay.configuration.reg)
            for segment, stay in zip(run_index.segments, stays, strict=True)
        ]
        """Of each segment the run and the regular configuration, None before any."""
        self.names = list(dict.fromkeys(reg for reg in self.regular if reg is not None))
        """The regular configurations, by number."""
        number = {reg: place for place, reg in enumerate(self.names)}
        self.numbers: Ints = np.array([NOTHING if r is None else number[r] for r in self.regular], np.int64)
        """Of each segment the number of its regular configuration."""
        self._whos = [run_index.numbers[segment.who] for segment in run_index.segments]

    def parts(self) -> Ints:
        """Of each segment the number of the com(c) that it is a part of."""
        coms: dict[Com, int] = {}
        keys = zip(self._whos, self.numbers.tolist(), strict=True)
        return np.array([coms.setdefault(key, len(coms)) for key in keys], np.int64)

    def of(self, runs: set[str]) -> dict[Com, list[int]]:
        """The segments of each com(c) in some runs."""
        found: dict[Com, list[int]] = {}
        for segment, (who, reg) in enumerate(zip(self._whos, self.regular, strict=True)):
            if reg is not None and reg[0] in runs:
                found.setdefault((who, int(self.numbers[segment])), []).append(segment)
        return found


def judge_completeness(
    given: Given, wanted: Wanted, coms: Coms, high: Mapping[int, int], excerpts: Excerpts
) -> Findings:
    """Only excerpts of runs in which somebody lacks something are looked at.

    `high` is the highest position that was delivered in a segment.
    """
    found = Findings()
    for run, lows in _Lacking(given, set(wanted), coms, high).lows().items():
        names = [name for name in wanted[run] if name in HAVING]
        excerpt = excerpts.beyond(run, lows)
        if excerpt is None:
            found.unknown.update({(run, name): _TOO_MUCH for name in names})
        elif HIGHEST in lows.values() or not excerpt.has_messages:
            found.unknown.update({(run, name): _NOT_THERE for name in names})
        else:
            found.verdicts += [(run, verdict) for verdict in excerpt.judged(names)]
    return found


class _Lacking:
    """Who lacks something below the highest position it has come to. A debtor is a com(c)."""

    def __init__(self, given: Given, runs: set[str], coms: Coms, high: Mapping[int, int]) -> None:
        self._given = given
        self._run_index = given.run_index
        self._known = coms
        self._coms = coms.of(runs)
        self._numbers = {com: number for number, com in enumerate(self._coms)}
        self._tops = {com: max(high.get(s, NOTHING) for s in some) for com, some in self._coms.items()}
        segments = [(each, self._numbers[com]) for com, some in self._coms.items() for each in some]
        self._holds = fn.broadcast(self._run_index.table(segments, "segment", "debtor"))

    def lows(self) -> dict[str, dict[Configuration, int]]:
        """Of each configuration in which somebody lacks something, the lowest position of that."""
        wanted: dict[tuple[int, int], tuple[str, Configuration]] = {}
        for row in self._lowest():
            wanted[row["author"], row["first"]] = self._known.names[row["reg"]]
        found: dict[str, dict[Configuration, int]] = {}
        for run, conf in wanted.values():
            found.setdefault(run, {})[conf] = HIGHEST
        for row in self._run_index.over_messages(_finding(set(wanted)), _FOUND).collect() if wanted else ():
            run, conf = wanted[row["author"], row["first"]]
            found[run][conf] = min(found[run][conf], row["at"])
        return found

    def _lowest(self) -> list[Row]:
        """What is lacking below the highest position that a process has come to: (reg, author, first)."""
        left = self._run_index.keep(self._missing())
        if left.isEmpty():
            return []
        regs = [(number, com[1]) for com, number in self._numbers.items()]
        whose = fn.broadcast(self._run_index.table(regs, "debtor", "reg"))
        lowest = self._excused(left).join(whose, "debtor")
        return lowest.groupBy("reg", "author").agg(fn.min("first").alias("first")).collect()

    def _upto(self) -> DataFrame:
        """The last message of each sender below the position a debtor has come to: (debtor, author, upto)."""
        limits = sorted({(com[1], top) for com, top in self._tops.items() if top != NOTHING})
        fold = _reaching(self._run_index.starts, self._known.numbers, limits)
        reached = self._run_index.over_messages(fold, _REACHED).groupBy("reg", "limit", "author")
        known: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in reached.agg(fn.max("upto").alias("upto")).collect():
            known.setdefault((row["reg"], row["limit"]), []).append((row["author"], row["upto"]))
        rows = [
            (self._numbers[com], author, last)
            for com, top in self._tops.items()
            for author, last in known.get((com[1], top), ())
        ]
        return fn.broadcast(self._run_index.table(rows, "debtor", "author", "upto"))

    def _missing(self) -> DataFrame:
        """(debtor, author, first, last): sent in c below what the debtor has come to, and not delivered."""
        run_index = self._run_index
        regular = [
            (each, com[1])
            for com, some in self._coms.items()
            for each in some
            if (stay := run_index.stays.at(run_index.segments[each])) and stay.configuration.regular
        ]
        debtors = [(com[1], number) for com, number in self._numbers.items()]
        asked = (
            run_index.sent.join(fn.broadcast(run_index.table(regular, "segment", "reg")), "segment")
            .join(fn.broadcast(run_index.table(debtors, "reg", "debtor")), "reg")
            .join(self._upto(), ["debtor", "author"])
            .where("first <= upto")
            .select("debtor", "author", "first", fn.least("last", "upto").alias("last"))
        )
        return obligations.without(asked, run_index.delivered.join(self._holds, "segment"))

    def _excused(self, missing: DataFrame) -> DataFrame:
        """Without what the debtor has a replacement of, or may still come to one."""
        run_index = self._run_index
        coming = []
        for com, number in self._numbers.items():
            run, reg = self._known.names[com[1]]
            known = run_index.stays.runs[run]
            if not known.owes(run_index.everybody[com[0]][1], reg):
                coming += [(run_index.stays.number(run, stay), number) for stay in known.of.get(reg, ())]
        span = ("debtor", "author", "first", "last")
        held = run_index.delivered.join(self._holds, "segment").select(*span)
        theirs = fn.broadcast(run_index.table(coming, "stay", "debtor"))
        sent = run_index.sent.join(theirs, "stay").select(*span)
        covered = replacements.covered(run_index, missing, held.union(sent), self._given.positions)
        if covered is None:
            return missing
        seq = fn.col("seq")
        points = covered.select("debtor", "author", seq.alias("first"), seq.alias("last"))
        return obligations.without(missing, points)


def _reaching(starts: Ints, regs: Ints, limits: list[tuple[int, int]]) -> Fold:
    """Of each configuration and limit, the last message of each sender with a position up to the limit."""

    def reach(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            reg = regs[np.searchsorted(starts, rows.place, side="right") - 1]
            found = []
            for number, limit in limits:
                some = rows.only((reg == number) & (rows.scope != NOTHING) & (rows.order <= limit))
                last = np.minimum(some.last, some.first + limit - some.order)
                for author in np.unique(some.author).tolist():
                    found.append((number, limit, author, int(last[some.author == author].max())))
            if found:
                yield batch_of_rows(found, _REACHED)

    return reach


def _finding(wanted: set[tuple[int, int]]) -> Fold:
    """The positions of some messages (author, number)."""

    def find(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            found = []
            for author, seq in wanted:
                there = (rows.author == author) & (rows.first <= seq) & (seq <= rows.last)
                for at in np.flatnonzero(there & (rows.scope != NOTHING)).tolist():
                    found.append((author, seq, int(rows.order[at] + seq - rows.first[at])))
            if found:
                yield batch_of_rows(found, _FOUND)

    return find
