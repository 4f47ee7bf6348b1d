"""Causal order by vector times (Pereira 2002, 4.6): one fold over the rows of each process.

The vector time of a message says all that precedes it. If what a process says with its own messages is what
its rows come to (what it delivered, and what is said to precede that), and a message is delivered with the
vector time it was sent with, then vector times are the truth. Then a delivery is too late exactly if
something that was delivered before is said to come after it, and who goes on from a view is asked for all
that its vector time there names.

A total order needs no vector times: it extends the causal order if everybody delivers its own messages, after
it sent them (Birman 1991, 5.2).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.verify import order
from semcast.pipeline.verify.excerpt import Excerpts, Spot
from semcast.pipeline.verify.folds import NOTHING
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.positions import in_one_order
from semcast.pipeline.verify.large.stretches import TIMES, Grid, folding_times, stretches_of
from semcast.pipeline.verify.large.vectors import Mismatch, differing
from semcast.pipeline.verify.large.views.books import Books, books_of
from semcast.pipeline.verify.scene import numbered_violations
from semcast.specs.vsync.views import views_of

CERTIFICATE = "vector_certificate"
DELIVERY, COMPLETENESS = "causal_delivery", "semantic_causal_completeness"

_NOT_RECORDED = "no vector time was recorded"
_DOES_NOT_FIT = "the recorded vector times do not prove it, and the rows around do not show why"
_LACKING = "has neither this nor a replacement in the view, though it precedes what was delivered"


def judge_causal(given: Given, wanted: Wanted) -> Findings:
    """Nobody delivers m after m' if m precedes m'; who delivers m' has m, or a replacement."""
    certain = _ordered_by_position(given, wanted)
    found = Findings()
    found.unknown.update({(run, CERTIFICATE): _NOT_RECORDED for run in certain if CERTIFICATE in wanted[run]})
    rest = {run: names for run, names in wanted.items() if run not in certain}
    if rest:
        found.add(_Causal(given, rest).judge())
    return found


@dataclass(slots=True)
class _Told:
    """What stretches say of one run."""

    any: bool = False
    without: str = ""
    late: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    """Deliveries that come too late: the author, and a message of it."""
    wrong: set[Spot] = field(default_factory=set)
    """Messages that are said to come after too little or too much."""


class _Causal:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._scene = given.scene
        self._wanted = wanted
        self._excerpts = Excerpts(given.scene, given.rows)
        self._found = Findings()
        self._members = [self._members_of(number) for number in range(len(self._scene.pieces))]
        self._owed: dict[tuple[int, int], int] = {}
        self._complete: list[str] = []
        """The runs whose completeness vector times tell."""

    def judge(self) -> Findings:
        told = self._read()
        others = differing(self._scene, self._grid(), self._members)
        for run, names in self._wanted.items():
            known = told[run]
            if not known.any:
                self._unknown(run, names, _NOT_RECORDED)
                continue
            if known.without:
                self._found.doubts.update({(run, name): known.without for name in names})
            fits = not known.wrong and run not in others
            if not fits or known.late:
                self._by_excerpt(run, names, known, fits=fits)
            elif COMPLETENESS in names:
                self._complete.append(run)
        self._judge_completeness()
        if any(CERTIFICATE in names for names in self._wanted.values()):
            self._blame(told, others)
        return self._found

    def _unknown(self, run: str, names: Iterable[str], why: str) -> None:
        self._found.unknown.update({(run, name): why for name in names})

    def _members_of(self, number: int) -> list[int]:
        """The numbers of the members of the view that a piece is in, by rank."""
        piece = self._scene.pieces[number]
        if piece.stay is None:
            return []
        run = piece.who[0]
        known = self._scene.stays.runs[run]
        stay = known.stays[piece.stay - self._scene.stays.number(run, known.stays[0])]
        return [self._scene.numbers[run, member] for member in stay.event.members or ()]

    def _grid(self) -> Grid:
        judged = [piece.who[0] in self._wanted and piece.stay is not None for piece in self._scene.pieces]
        ranks = [{member: rank for rank, member in enumerate(members)} for members in self._members]
        nothing = np.full(len(judged), NOTHING, np.int64)
        return Grid(self._scene.starts, nothing, np.array(judged, np.bool_), ranks)

    def _read(self) -> dict[str, _Told]:
        """Put the stretches of each process in each view together."""
        told = {run: _Told() for run in self._wanted}
        streams: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        for row in stretches_of(self._scene, folding_times(self._grid()), TIMES):
            piece = self._scene.pieces[row["piece"]]
            known = told[piece.who[0]]
            if row["rank"] == NOTHING:
                if row["low"]:
                    known.without = f"{piece.who[1]} recorded messages without a vector time"
                continue
            assert piece.stay is not None
            streams.setdefault((piece.stay, row["rank"]), []).append(tuple(row))
        for run in self._recorded():
            told[run].any = True
        for (stay, rank), stretches in streams.items():
            piece = self._scene.pieces[stretches[0][0]]
            author = self._members[stretches[0][0]][rank]
            _compose(self._scene.numbers[piece.who], author, stretches, told[piece.who[0]])
            heard = max(max(row[6], row[5] - 1) for row in stretches)
            if heard > 0:
                self._owed[stay, author] = heard
        return told

    def _recorded(self) -> set[str]:
        """The runs with any vector time."""
        rows = self._given.rows.where(fn.col("vector").isNotNull()).select("run").distinct().collect()
        return {row["run"] for row in rows} & set(self._wanted)

    def _by_excerpt(self, run: str, names: Iterable[str], known: _Told, *, fits: bool) -> None:
        excerpt = self._excerpts.around(
            run, lambda: {*known.late, *known.wrong, *self._witnesses(run, known)}
        )
        asked = [DELIVERY, COMPLETENESS] if excerpt.whole else [DELIVERY]
        told = {verdict.property: verdict for verdict in excerpt.judged(asked)}
        for name in names:
            if name in told:
                self._found.verdicts.append((run, told[name]))
            elif name != CERTIFICATE:
                if name == COMPLETENESS and fits:
                    self._complete.append(run)
                else:
                    self._found.unknown[run, name] = _DOES_NOT_FIT

    def _witnesses(self, run: str, known: _Told) -> Iterator[Spot]:
        """The rows by which it was said that something comes before what was delivered."""
        for (who, index), (author, seq) in sorted(known.late.items())[:4]:
            process = self._scene.everybody[who][1]
            rank = next((m.index(author) for m in self._members if author in m), 0)
            said = fn.exists("vector", _says(rank, seq))
            rows = self._given.rows.where(
                (fn.col("run") == run)
                & (fn.col("process") == process.name)
                & (fn.col("incarnation") == process.incarnation)
                & (fn.col("index") < index)
                & said
            )
            for row in rows.select("index").limit(1).collect():
                yield who, row["index"]

    def _judge_completeness(self) -> None:
        """Who goes on from a view has what its vector time there names. All runs together: it takes jobs."""
        scene = self._scene
        closed = set[int]()
        for run in self._complete:
            views = views_of(scene.stays.histories[run])
            closed |= {scene.stays.number(run, stay) for stay in views.known.stays if views.closed(stay)}
        rows = [(stay, author, upto + 1) for (stay, author), upto in self._owed.items() if stay in closed]
        if not rows:
            return
        books = books_of(self._given)
        upto = scene.table(rows, "debtor", "author", "upto")
        left = books.with_who(books.unpaid(books.lacking_before(upto)))
        self._found.violations.append(scene.named(numbered_violations(left, COMPLETENESS, _LACKING)))

    def _blame(self, told: Mapping[str, _Told], others: Mapping[str, list[Mismatch]]) -> None:
        scene = self._scene
        rows: list[tuple[int | None, ...]] = [
            (*spot, None, 0) for known in told.values() for spot in sorted(known.wrong)
        ]
        rows += [(who, index, author, seq) for some in others.values() for who, index, author, seq in some]
        if rows:
            table = scene.table(rows, "who", "index", "author", "first").withColumn("last", fn.col("first"))
            reason = "recorded with another vector time than its rows, or its sender, come to"
            found = numbered_violations(table, CERTIFICATE, reason, index=fn.col("index"))
            self._found.violations.append(scene.named(found))


def _says(rank: int, seq: int) -> Callable[[Column], Column]:
    return lambda change: (change.getField("rank") == rank) & (change.getField("seq") >= seq)


def _compose(who: int, author: int, stretches: list[tuple[int, ...]], told: _Told) -> None:
    """The stretches of one process in one view, about one member."""
    ends = known = said = NOTHING
    for row in sorted(stretches, key=lambda each: each[2]):
        _, _, begin, end, low, delivered, heard, says, lacking, beyond, first, bad = row
        if bad != NOTHING:
            told.late[who, bad] = author, 1
        if low <= known:
            told.late[who, begin] = author, low
        small = lacking > said or (first != NOTHING and max(said, first - 1) < known)
        if begin <= ends or small or beyond > known:
            told.wrong.add((who, begin))
        ends, said = max(ends, end), max(said, says)
        known = max(known, delivered, heard)


def _ordered_by_position(given: Given, wanted: Wanted) -> set[str]:
    """The runs whose causal order follows from a total order, and in which nobody lacks anything."""
    found = in_one_order(given, wanted)
    if not found:
        return found
    books = books_of(given)
    disordered = order.disordered(given.scene.forwards).select("who")
    odd = disordered.union(_too_early(given.scene.own)).union(_without_own(books))
    if any(COMPLETENESS in wanted[run] for run in found):
        odd = odd.union(books.with_who(books.unpaid(books.lacking_of_sent)).select("who"))
    return found - {given.scene.everybody[row["who"]][0] for row in odd.distinct().collect()}


def _too_early(own: DataFrame) -> DataFrame:
    """Who may have delivered messages of its own before it multicast them: (who)."""
    along = Window.partitionBy("who").orderBy("begin")
    before = along.rowsBetween(Window.unboundedPreceding, -1)
    sent = fn.coalesce(fn.max("last").over(before), fn.lit(0))
    early = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.col("first") > sent)
    return own.select("who", early.alias("early")).where("early").select("who")


def _without_own(books: Books) -> DataFrame:
    """Who did not deliver all that it sent in a view: (who)."""
    missing = books.with_who(books.segments.where("expected and not delivered"))
    return missing.where("who = author").select("who")
