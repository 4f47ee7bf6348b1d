"""Extended virtual synchrony by the positions of the ring: specifications 1.1, 2.3, 2.4, 5 and 6.

If a message has the same position at everybody, positions grow at each process within com(c), and what is
sent is beyond what was delivered before, then the positions of each configuration are an order that all
deliveries and sends agree with. What is left are the configurations: each is one moment for all who come to
it. A walk over the pieces of all processes, of which only the lowest and the highest position matter, tells
whether there is one order of everything (`semcast.specs.evs.walks`). Then 6.1 and 6.2 hold, and so do 1.1,
2.3 and 2.4, which ask for less.

5 and 6.3 also ask who has what. Whoever has come to a position in com(c) is asked for all that was sent there
below it, which is more than they ask; what is lacking then is judged in an excerpt from the lowest such
position on.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import add

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify import debts, relation, replaced
from semcast.pipeline.verify.crcs import Ints
from semcast.pipeline.verify.excerpt import Excerpts, Spot
from semcast.pipeline.verify.folds import NOTHING, Batches, Rows
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.positions.exact import compared_positions
from semcast.pipeline.verify.large.stretches import HIGHEST, PLACES, Grid, folding_places, stretches_of
from semcast.pipeline.verify.moves import with_author
from semcast.pipeline.verify.reading import Fold, longs, member_number, scope_code
from semcast.pipeline.verify.scene import numbered_violations
from semcast.specs.evs.configurations import Configuration, Stay
from semcast.specs.evs.walks import Walk

CERTIFICATE = "ring_certificate"
ORDER = (
    "evs_1_1_precedence",
    "evs_2_3_cut_after",
    "evs_2_4_cut_before",
    "evs_6_1_order_respects_precedence",
    "evs_6_2_same_moment",
)
HAVING = ("evs_5_causal", "evs_6_3_agreed")

_NOT_RECORDED = "no position was recorded"
_DOES_NOT_FIT = "the recorded positions are not an order of all events, and the rows around do not show why"
_TOO_MUCH = "too much comes after something that is lacking"

Com = tuple[int, int]
"""The number of a process and of a regular configuration: what the process does in com(c)."""


def judge_ring(given: Given, wanted: Wanted) -> Findings:
    """All of it."""
    return _Ring(given, wanted).judge()


@dataclass(slots=True)
class _Told:
    """What stretches say of one run."""

    without: str = ""
    """Who recorded messages without a position, if anybody did."""
    any: bool = False
    faults: set[Spot] = field(default_factory=set)


class _Ring:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._scene = given.scene
        self._wanted = wanted
        self._excerpts = Excerpts(given.scene, given.rows)
        self._found = Findings()
        self._regs = {
            each: number
            for number, each in enumerate(
                (run, reg) for run, known in self._scene.stays.runs.items() for reg in known.regs
            )
        }
        self._reg = [self._reg_of(number) for number in range(len(self._scene.pieces))]
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def judge(self) -> Findings:
        told = self._read()
        different = self._different()
        having: set[str] = set()
        for run, names in self._wanted.items():
            known = told[run]
            if not known.any:
                self._unknown(run, names, _NOT_RECORDED)
                continue
            if known.without:
                self._found.doubts.update({(run, name): known.without for name in names})
            if known.faults or run in different or self._stuck(run):
                self._by_excerpt(run, [name for name in names if name != CERTIFICATE], known.faults)
            elif set(HAVING) & set(names) and run not in self._given.circular | self._given.untold:
                having.add(run)
        self._judge_having(having)
        if any(CERTIFICATE in names for names in self._wanted.values()):
            self._blame(told)
        return self._found

    def _unknown(self, run: str, names: Iterable[str], why: str) -> None:
        self._found.unknown.update({(run, name): why for name in names})

    # What the rows say

    def _grid(self) -> Grid:
        scene = self._scene
        scope = []
        for piece, reg in zip(scene.pieces, self._reg, strict=True):
            run = piece.who[0]
            conf = None if reg is None else reg[1]
            by = NOTHING if conf is None else member_number(scene.numbers, run, conf.formed_by)
            scope.append(NOTHING if conf is None else scope_code(conf.number, by))
        judged = [piece.who[0] in self._wanted for piece in scene.pieces]
        return Grid(scene.starts, np.array(scope, np.int64), np.array(judged, np.bool_), [])

    def _reg_of(self, number: int) -> tuple[str, Configuration] | None:
        piece = self._scene.pieces[number]
        if piece.stay is None:
            return None
        run = piece.who[0]
        stay = self._scene.stays.runs[run].stays[piece.stay - self._scene.stays.number(run, self._first(run))]
        return run, stay.configuration.reg

    def _first(self, run: str) -> Stay:
        return self._scene.stays.runs[run].stays[0]

    def _read(self) -> dict[str, _Told]:
        """Put the stretches of each process together."""
        grid = self._grid()
        rows = stretches_of(self._scene, folding_places(grid), PLACES)
        told = {run: _Told() for run in self._wanted}
        by_com: dict[Com, list[tuple[int, ...]]] = {}
        for row in rows:
            piece = self._scene.pieces[row["piece"]]
            known, who = told[piece.who[0]], self._scene.numbers[piece.who]
            if row["without"]:
                known.without = f"{piece.who[1]} recorded messages without a position"
            if row["bad"] != NOTHING:
                known.faults.add((who, row["bad"]))
            known.any |= max(row["high"], row["high_sent"]) != NOTHING
            reg = self._reg[row["piece"]]
            number = NOTHING if reg is None else self._regs[reg]
            by_com.setdefault((who, number), []).append(tuple(row))
            self._low[row["piece"]] = min(self._low.get(row["piece"], HIGHEST), row["low"])
            self._high[row["piece"]] = max(self._high.get(row["piece"], NOTHING), row["high"])
        for (who, _), stretches in by_com.items():
            told[self._scene.everybody[who][0]].faults |= set(_disorder(who, stretches))
        return told

    def _different(self) -> set[str]:
        """The runs in which a message has several positions."""
        sets: dict[int, set[frozenset[tuple[int, ...]]]] = {}
        prints: dict[tuple[int, int], dict[int, tuple[int, ...]]] = {}
        for row in self._scene.prints.collect():
            reg = self._reg[row["piece"]]
            who = self._scene.numbers[self._scene.pieces[row["piece"]].who]
            if reg is not None:
                key = (-1 - who if row["sent"] == 1 else who), self._regs[reg]
                mine = prints.setdefault(key, {})
                before: tuple[int, ...] = mine.get(row["author"], (0, 0, 0))
                numbers: tuple[int, ...] = row["count"], row["messages"], row["positions"]
                mine[row["author"]] = tuple(map(add, before, numbers))
        for (who, reg), mine in prints.items():
            if who >= 0:
                sets.setdefault(reg, set()).add(frozenset((a, *numbers) for a, numbers in mine.items()))
            for author, numbers in mine.items() if who < 0 else ():
                other = prints.get((author, reg), {}).get(author)
                if other != numbers:
                    sets.setdefault(reg, set()).update((frozenset(), frozenset([(-1, *numbers)])))
        doubtful = {reg for reg, some in sets.items() if len(some) > 1}
        self._compared = self._compare(doubtful) if doubtful else None
        if self._compared is None:
            return set()
        whos = {row["who"] for row in self._compared.select("who").distinct().collect()}
        return {self._scene.everybody[who][0] for who in whos}

    def _compare(self, regs: set[int]) -> DataFrame:
        """Messages at another position than elsewhere, in these configurations."""
        scene = self._scene
        number = [NOTHING if reg is None else self._regs[reg] for reg in self._reg]
        judged = np.array([each in regs for each in number], np.bool_)
        coms: dict[Com, int] = {}
        whose = [
            coms.setdefault((scene.numbers[piece.who], reg), len(coms))
            for piece, reg in zip(scene.pieces, number, strict=True)
        ]
        return scene.keep(compared_positions(scene, np.array(whose, np.int64), judged))

    def _stuck(self, run: str) -> bool:
        """Whether configurations and positions have no common order."""
        numbers: dict[object, int] = {}
        paths: dict[int, list[int]] = {}
        chains: dict[object, set[int]] = {}
        stays = {
            self._scene.stays.number(run, stay): stay.configuration
            for stay in self._scene.stays.runs[run].stays
        }
        for number, piece in enumerate(self._scene.pieces):
            if piece.who[0] != run or piece.stay is None:
                continue
            path = paths.setdefault(self._scene.numbers[piece.who], [])
            conf = stays[piece.stay]
            if not piece.crashed:
                path.append(numbers.setdefault(conf, len(numbers)))
            low, high = self._low.get(number, HIGHEST), self._high.get(number, NOTHING)
            for position in dict.fromkeys((low, high)) if high != NOTHING else ():
                chains.setdefault(conf.reg, set()).add(position)
                path.append(numbers.setdefault((conf.reg, position), len(numbers)))
        orders = [[numbers[reg, position] for position in sorted(some)] for reg, some in chains.items()]
        return bool(Walk([*paths.values(), *orders], {}).stuck)

    # What that means

    def _by_excerpt(self, run: str, names: list[str], faults: set[Spot]) -> None:
        excerpt = self._excerpts.around(run, lambda: faults or self._spots(run))
        asked = [name for name in names if name in ORDER or excerpt.whole]
        told = {verdict.property: verdict for verdict in excerpt.judged(asked)}
        for name in names:
            if name in told:
                self._found.verdicts.append((run, told[name]))
            else:
                self._found.unknown[run, name] = _DOES_NOT_FIT

    def _spots(self, run: str) -> set[Spot]:
        """Rows at fault where the rows of a process alone tell nothing."""
        if self._compared is not None:
            some = self._compared.select("who", "index").limit(8).collect()
            found = {(row["who"], row["index"]) for row in some if row["index"] is not None}
            return {spot for spot in found if self._scene.everybody[spot[0]][0] == run}
        changes = [p for p in self._scene.pieces if p.who[0] == run and p.stay is not None]
        return {(self._scene.numbers[piece.who], piece.first) for piece in changes[-8:]}

    def _blame(self, told: Mapping[str, _Told]) -> None:
        scene = self._scene
        rows = [(*spot, 0, 0) for known in told.values() for spot in sorted(known.faults)]
        if rows:
            table = scene.table(rows, "who", "index", "first", "last")
            table = table.withColumn("author", fn.lit(None).cast("long"))
            reason = "recorded at a position that does not follow those before"
            found = numbered_violations(table, CERTIFICATE, reason, index=fn.col("index"))
            self._found.violations.append(scene.named(found))
        if self._compared is not None:
            rows_of = self._compared.select("who", "author", "first", fn.col("first").alias("last"), "index")
            reason = "recorded at another position than elsewhere"
            found = numbered_violations(rows_of, CERTIFICATE, reason, index=fn.col("index"))
            self._found.violations.append(scene.named(found))

    # 5 and 6.3

    def _judge_having(self, runs: set[str]) -> None:
        """Only excerpts of runs in which somebody lacks something are looked at."""
        lows = self._lows(runs) if runs else {}
        for run, mine in lows.items():
            names = [name for name in self._wanted[run] if name in HAVING]
            excerpt = self._excerpts.beyond(run, mine)
            if excerpt is None:
                self._unknown(run, names, _TOO_MUCH)
            else:
                self._found.verdicts += [(run, verdict) for verdict in excerpt.judged(names)]

    def _lows(self, runs: set[str]) -> dict[str, dict[Configuration, int]]:
        """Of each configuration in which somebody lacks something, the lowest position of that."""
        lacking = self._lacking(runs)
        if lacking is None:
            return {}
        regs = {number: key for key, number in self._regs.items()}
        wanted = {(row["author"], row["first"]): regs[row["reg"]] for row in lacking.collect()}
        found: dict[str, dict[Configuration, int]] = {}
        for run, conf in wanted.values():
            found.setdefault(run, {})[conf] = HIGHEST
        for row in self._scene.over_messages(_finding(set(wanted)), longs("author", "first", "at")).collect():
            run, conf = wanted[row["author"], row["first"]]
            found[run][conf] = min(found[run][conf], row["at"])
        return found

    def _lacking(self, runs: set[str]) -> DataFrame | None:
        """What is lacking below the highest position that a process has come to: (reg, author, first)."""
        scene, coms = self._scene, self._coms(runs)
        tops = {com: max(self._high.get(p, NOTHING) for p in pieces) for com, pieces in coms.items()}
        limits = sorted({(com[1], top) for com, top in tops.items() if top != NOTHING})
        reached = scene.over_messages(
            _reaching(self._grid_regs(runs), limits), longs("reg", "limit", "author", "upto")
        )
        known: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in reached.groupBy("reg", "limit", "author").agg(fn.max("upto").alias("upto")).collect():
            known.setdefault((row["reg"], row["limit"]), []).append((row["author"], row["upto"]))
        numbers = {com: number for number, com in enumerate(coms)}
        upto = [
            (numbers[com], author, last)
            for com, top in tops.items()
            for author, last in known.get((com[1], top), ())
        ]
        left = scene.keep(self._missing(coms, numbers, scene.table(upto, "debtor", "author", "upto")))
        if left.isEmpty():
            return None
        regs = fn.broadcast(scene.table([(n, com[1]) for com, n in numbers.items()], "debtor", "reg"))
        lowest = self._excused(coms, numbers, left).join(regs, "debtor")
        return lowest.groupBy("reg", "author").agg(fn.min("first").alias("first"))

    def _coms(self, runs: set[str]) -> dict[Com, list[int]]:
        found: dict[Com, list[int]] = {}
        for number, (piece, reg) in enumerate(zip(self._scene.pieces, self._reg, strict=True)):
            if reg is not None and reg[0] in runs:
                found.setdefault((self._scene.numbers[piece.who], self._regs[reg]), []).append(number)
        return found

    def _grid_regs(self, runs: set[str]) -> tuple[Ints, Ints]:
        regs = [NOTHING if reg is None or reg[0] not in runs else self._regs[reg] for reg in self._reg]
        return self._scene.starts, np.array(regs, np.int64)

    def _missing(self, coms: dict[Com, list[int]], numbers: dict[Com, int], upto: DataFrame) -> DataFrame:
        """(debtor, author, first, last): sent in c below what the debtor has come to, and not delivered."""
        scene = self._scene
        pieces = [(piece, numbers[com]) for com, some in coms.items() for piece in some]
        holds = fn.broadcast(scene.table(pieces, "piece", "debtor"))
        regular = [(piece, com[1]) for com, some in coms.items() for piece in some if self._is_regular(piece)]
        sent = scene.sent.join(fn.broadcast(scene.table(regular, "piece", "reg")), "piece")
        debtors = fn.broadcast(scene.table([(com[1], n) for com, n in numbers.items()], "reg", "debtor"))
        asked = (
            sent.join(debtors, "reg")
            .join(fn.broadcast(upto), ["debtor", "author"])
            .where("first <= upto")
            .select("debtor", "author", "first", fn.least("last", "upto").alias("last"))
        )
        return debts.without(asked, scene.delivered.join(holds, "piece"))

    def _is_regular(self, number: int) -> bool:
        piece = self._scene.pieces[number]
        run = piece.who[0]
        first = self._scene.stays.number(run, self._first(run))
        assert piece.stay is not None
        return self._scene.stays.runs[run].stays[piece.stay - first].configuration.regular

    def _excused(self, coms: dict[Com, list[int]], numbers: dict[Com, int], missing: DataFrame) -> DataFrame:
        """Without what the debtor has a replacement of, or may still come to one."""
        scene = self._scene
        regs = {number: key for key, number in self._regs.items()}
        here = [(piece, numbers[com]) for com, some in coms.items() for piece in some]
        coming = []
        for com in coms:
            run, reg = regs[com[1]]
            known = scene.stays.runs[run]
            if not known.owes(scene.everybody[com[0]][1], reg):
                sending = known.of.get(reg, ())
                coming += [(scene.stays.number(run, stay), numbers[com]) for stay in sending]
        span = ("debtor", "author", "first", "last")
        held = scene.delivered.join(fn.broadcast(scene.table(here, "piece", "debtor")), "piece").select(*span)
        sent = scene.sent.join(fn.broadcast(scene.table(coming, "stay", "debtor")), "stay").select(*span)
        notes = scene.keep(relation.annotated(scene.events))
        covered = replaced.covered(
            scene.of_senders(missing),
            scene.of_senders(held.union(sent)),
            notes,
            self._given.positions,
            scene.keep,
        )
        if covered is None:
            return missing
        points = with_author(covered, scene.people).select(
            "debtor", "author", fn.col("seq").alias("first"), fn.col("seq").alias("last")
        )
        return debts.without(missing, points)


def _disorder(who: int, stretches: list[tuple[int, ...]]) -> Iterator[Spot]:
    """Where positions do not grow from one stretch of a process in com(c) to the next."""
    ends, high, high_sent = -1, NOTHING, NOTHING
    for _, begin, end, low, top, low_sent, top_sent, *_ in sorted(stretches, key=lambda each: each[1]):
        if begin <= ends or low <= high or low_sent <= max(high, high_sent):
            yield who, begin
        ends, high, high_sent = max(ends, end), max(high, top), max(high_sent, top_sent)


def _reaching(grid: tuple[Ints, Ints], limits: list[tuple[int, int]]) -> Fold:
    """Of each configuration and limit, the last message of each sender with a position up to the limit."""
    starts, regs = grid

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
                columns = np.array(found, np.int64).T
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column) for column in columns], schema=longs("reg", "limit", "author", "upto")
                )

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
                columns = np.array(found, np.int64).T
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column) for column in columns], schema=longs("author", "first", "at")
                )

    return find
