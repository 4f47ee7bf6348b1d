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
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as fn

from semcast.pipeline.verify.certificates import TIMES, Grid, Mismatch, differing, read_times
from semcast.pipeline.verify.excerpts import Certified, Spot, Told
from semcast.pipeline.verify.folds import INDEX_BITS, NOTHING
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import Books, books_of
from semcast.pipeline.verify.positions import in_one_order
from semcast.pipeline.verify.reliable import disordered
from semcast.pipeline.verify.run_index import numbered_violations
from semcast.pipeline.verify.stays import Segment
from semcast.specs.vsync.views import views_of

CERTIFICATE = "vector_certificate"
DELIVERY, COMPLETENESS = "causal_delivery", "semantic_causal_completeness"

_LACKING = "has neither this nor a replacement in the view, though it precedes what was delivered"


def judge_causal(given: Given, wanted: Wanted) -> Findings:
    """Nobody delivers m after m' if m precedes m'; who delivers m' has m, or a replacement."""
    certain = _ordered_by_position(given, wanted)
    found = Findings()
    found.unknown.update(
        {(run, CERTIFICATE): "no vector time was recorded" for run in certain if CERTIFICATE in wanted[run]}
    )
    rest = {run: names for run, names in wanted.items() if run not in certain}
    if rest:
        found.add(_Causal(given, rest).judge())
    return found


@dataclass(slots=True)
class _Told(Told):
    """What stretches say of one run."""

    late: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    """Deliveries that come too late: the author, and a message of it."""

    @property
    def circular(self) -> bool:
        """Whether somebody may have multicast a message after something that comes after it."""
        return any(who == author for (who, _), (author, _) in self.late.items())


class _Causal:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._run_index = given.run_index
        self._wanted = wanted
        self._certified = Certified(given, CERTIFICATE, "vector time")
        self._members = [self._members_of(segment) for segment in given.run_index.segments]
        self._owed: dict[tuple[int, int], int] = {}
        self._complete: list[str] = []
        """The runs whose completeness vector times tell."""

    def judge(self) -> Findings:
        grid = self._grid()
        times, prints = read_times(self._run_index, grid)
        told = self._put_together(times)
        others = differing(self._run_index, grid, self._members, prints)
        for run, names in self._wanted.items():
            known = told[run]
            if not self._certified.readable(run, known, names):
                continue
            proven = not known.wrong and run not in others
            left = list(names)
            if known.late or not proven:
                spots = {*known.late, *known.wrong}
                if not self._certified.excerpts.has_all(run):  # a job for each
                    spots |= set(self._witnesses(run, known))
                spots |= {(who, index) for who, index, _, _ in others.get(run, ())[:8]}
                left = self._certified.ask_excerpt(run, names, spots, [DELIVERY])
            if proven and COMPLETENESS in left and not known.circular:
                self._certified.found.unknown.pop((run, COMPLETENESS), None)
                self._complete.append(run)
        self._judge_completeness()
        self._blame(told, others)
        return self._certified.found

    def _members_of(self, segment: Segment) -> list[int]:
        """The numbers of the members of the view that a segment is in, by rank."""
        stay = self._run_index.stays.at(segment)
        members = () if stay is None else stay.event.members or ()
        return [self._run_index.numbers[segment.who[0], member] for member in members]

    def _grid(self) -> Grid:
        judged = [
            segment.who[0] in self._wanted and segment.stay is not None
            for segment in self._run_index.segments
        ]
        ranks = [{member: rank for rank, member in enumerate(members)} for members in self._members]
        nothing = np.full(len(judged), NOTHING, np.int64)
        return Grid(self._run_index.starts, nothing, np.array(judged, np.bool_), ranks)

    def _put_together(self, times: Iterable[Row]) -> dict[str, _Told]:
        """The stretches of each process in each view."""
        told = {run: _Told() for run in self._wanted}
        streams: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        for row in times:
            segment = self._run_index.segments[row["segment"]]
            known = told[segment.who[0]]
            if row["rank"] == NOTHING:
                known.recorded |= bool(row["delivered"])
                if row["low"]:
                    known.without = str(segment.who[1])
                continue
            assert segment.stay is not None
            stretch = tuple(row[name] for name in TIMES.names)
            streams.setdefault((segment.stay, row["rank"]), []).append(stretch)
        for (stay, rank), stretches in streams.items():
            segment = self._run_index.segments[stretches[0][0]]
            author = self._members[stretches[0][0]][rank]
            _compose(self._run_index.numbers[segment.who], author, stretches, told[segment.who[0]])
            heard = max(max(row[6], row[5] - 1) for row in stretches)
            if heard > 0:
                self._owed[stay, author] = heard
        return told

    def _witnesses(self, run: str, known: _Told) -> Iterator[Spot]:
        """The rows by which it was said that what was delivered later comes before."""
        starts = self._run_index.starts
        for (who, index), (author, seq) in sorted(known.late.items())[:4]:
            process = self._run_index.everybody[who][1]
            number = int(np.searchsorted(starts, (who << INDEX_BITS) + index, side="right")) - 1
            said = fn.exists("vector", _says(self._members[number].index(author), seq))
            rows = self._given.rows.where(
                (fn.col("run") == run)
                & (fn.col("process") == process.name)
                & (fn.col("incarnation") == process.incarnation)
                & fn.col("index").between(self._run_index.segments[number].first, index - 1)
                & said
            )
            for (first,) in rows.agg(fn.min("index")).collect():
                if first is not None:
                    yield who, first

    def _judge_completeness(self) -> None:
        """Who goes on from a view has what its vector time there names. All runs together: it takes jobs."""
        run_index = self._run_index
        closed = set[int]()
        for run in self._complete:
            views = views_of(run_index.stays.histories[run])
            closed |= {run_index.stays.number(run, stay) for stay in views.known.stays if views.closed(stay)}
        rows = [(stay, author, upto + 1) for (stay, author), upto in self._owed.items() if stay in closed]
        if not rows:
            return
        books = books_of(self._given)
        upto = run_index.table(rows, "debtor", "author", "upto")
        left = books.with_who(books.unpaid(books.lacking_before(upto)))
        self._certified.found.violations.append(
            run_index.named(numbered_violations(left, COMPLETENESS, _LACKING))
        )

    def _blame(self, told: Mapping[str, _Told], others: Mapping[str, list[Mismatch]]) -> None:
        rows: list[tuple[int | None, ...]] = [
            (*spot, None, 0) for known in told.values() for spot in sorted(known.wrong)
        ]
        rows += [case for some in others.values() for case in some]
        if rows:
            reason = "recorded with another vector time than its rows, or its sender, come to"
            self._certified.blame_rows(rows, reason)


def _says(rank: int, seq: int) -> Callable[[Column], Column]:
    return lambda change: (change.getField("rank") == rank) & (change.getField("seq") >= seq)


def _compose(who: int, author: int, stretches: list[tuple[int, ...]], told: _Told) -> None:
    """The stretches of one process in one view, about one member."""
    ends = known = said = NOTHING
    for row in sorted(stretches, key=lambda each: each[2]):
        _, _, begin, end, low, delivered, heard, says, lacking, beyond, first, bad, late = row
        if bad != NOTHING:
            told.late[who, bad] = author, late
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
    odd = disordered(given.run_index.forwards).select("who")
    odd = odd.union(_too_early(given.run_index.own)).union(_without_own(books))
    if any(COMPLETENESS in wanted[run] for run in found):
        odd = odd.union(books.with_who(books.unpaid(books.lacking_of_sent)).select("who"))
    return found - {given.run_index.everybody[row["who"]][0] for row in odd.distinct().collect()}


def _too_early(own: DataFrame) -> DataFrame:
    """Who may have delivered messages of its own before it multicast them: (who)."""
    along = Window.partitionBy("who").orderBy("begin")
    before = along.rowsBetween(Window.unboundedPreceding, -1)
    sent = fn.coalesce(fn.max("last").over(before), fn.lit(0))
    early = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.col("first") > sent)
    return own.select("who", early.alias("early")).where("early").select("who")


def _without_own(books: Books) -> DataFrame:
    """Who did not deliver all that it sent in a view: (who)."""
    missing = books.with_who(books.spans.where("expected and not delivered"))
    return missing.where("who = author").select("who")
