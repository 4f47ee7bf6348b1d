"""Extended virtual synchrony by the positions of the ring: specifications 1.1, 2.3, 2.4, 5 and 6.

If a message has the same position at everybody, positions grow at each process within com(c), and what is
sent is beyond what was delivered before, then the positions of each configuration are an order that all
deliveries and sends agree with. What is left are the configurations: each is one moment for all who come to
it. A walk over the segments of all processes, of which only the lowest and the highest position matter, tells
whether there is one order of everything (`semcast.specs.evs.walks`). Then 6.1 and 6.2 hold, and so do 1.1,
2.3 and 2.4, which ask for less.

5 and 6.3: whoever has come to a position in com(c) is asked for all that was sent there below it, which is
more than they ask; what is lacking then is judged in an excerpt from the lowest such position on.
"""

from collections.abc import Iterator, Mapping
from operator import add

import numpy as np
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.pipeline.verify import obligations, replacements
from semcast.pipeline.verify.batches import member_number, scope_code
from semcast.pipeline.verify.certificates import HIGHEST, PLACES, Grid, folding_places, stretches_of
from semcast.pipeline.verify.excerpts import Certified, Excerpts, Spot, Told
from semcast.pipeline.verify.folds import NOTHING, ON_RING, Batches, Fold, Ints, Rows, batch_of_rows, longs
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.positions import compared_positions, judge_positions
from semcast.pipeline.verify.run_index import RunIndex
from semcast.specs.evs.configurations import Configuration
from semcast.specs.evs.walks import Walk

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


def judge_total_order(given: Given, wanted: Wanted) -> Findings:
    """Total order by the positions that there are: those of a ring, within configurations, prove as much."""
    placed = given.run_index.prints.where(fn.col("sent") == ON_RING).select("segment").distinct().collect()
    rings = {given.run_index.segments[row["segment"]].who[0] for row in placed}
    found = judge_positions(given, {run: names for run, names in wanted.items() if run not in rings})
    on_rings = {run: names for run, names in wanted.items() if run in rings}
    if on_rings:
        found.add(judge_ring(given, on_rings))
    return found


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
