"""Virtual synchrony, but for causal and total order: what a view asks of its members.

Views and the states that they begin with are few rows in any run: the checkers in memory judge them. What
they look for among messages is found out on Spark, for a few stays.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import pairwise

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId, Nanos
from semcast.history import GONE, Event, History, Kind
from semcast.pipeline.verify.events import member_of
from semcast.pipeline.verify.folds import SENT
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import Books, books_of
from semcast.pipeline.verify.run_index import RunIndex, numbered_violations
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import Status, Verdict
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings as Cases
from semcast.specs.vsync.membership import find_second_primary, going_on, vs_view_agreement
from semcast.specs.vsync.state import vs_state_transfer
from semcast.specs.vsync.views import Views, views_of

_LACKING = "has neither this nor a replacement in the view"


def judge_views(given: Given, wanted: Wanted) -> Findings:
    """What virtual synchrony says about views and deliveries, but for causal and total order."""
    return _Views(given, wanted).judge()


class _Views:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._run_index = given.run_index
        self._wanted = wanted
        self._books = books_of(given)

    def judge(self) -> Findings:
        found = Findings()
        self._few_rows(found)
        rows = [*self._elsewhere(), *self._lacking()]
        if rows:
            found.violations.append(self._run_index.named(reduce(DataFrame.union, rows)))
        return found

    def _asks(self, *names: str) -> list[str]:
        """The runs of which any of these is wanted."""
        return [run for run, wanted in self._wanted.items() if not set(names).isdisjoint(wanted)]

    def _few_rows(self, found: Findings) -> None:
        """What the checkers in memory say, given the rows that matter."""
        histories = self._run_index.stays.histories
        doubtful = self._given.circular | self._given.untold
        judges: dict[str, Callable[[list[str]], Mapping[str, Verdict]]] = {
            "vs_view_agreement": lambda runs: {run: vs_view_agreement(histories[run]) for run in runs},
            "vs_primary_partition": lambda runs: _primary_partition(
                self._run_index, runs, self._books, doubtful
            ),
            "vs_state_transfer": lambda runs: _state_transfer(self._run_index, runs),
        }
        rows = []
        for name, judge in judges.items():
            runs = self._asks(name)
            for run, verdict in (judge(runs) if runs else {}).items():
                if verdict.status is Status.UNKNOWN:
                    found.unknown[run, name] = verdict.detail
                elif verdict.count:
                    rows.append(told_by(run, verdict))
        found.violations.append(known_violations(self._run_index.spark, rows))

    def _elsewhere(self) -> list[DataFrame]:
        name = "vs_sending_view_delivery"
        if not self._asks(name):
            return []
        run_index = self._run_index
        both = run_index.sent.union(run_index.delivered)
        wrong = both.where(f"outside or (what = {SENT} and view != inside)")
        what = fn.when(fn.col("outside"), fn.lit("outside every view, or after a crash")).otherwise(
            fn.lit("multicast with the number of another view")
        )
        return [
            numbered_violations(wrong, name, what),
            numbered_violations(
                self._books.with_who(self._books.strays), name, "not delivered where it was sent"
            ),
        ]

    def _lacking(self) -> list[DataFrame]:
        found = []
        synchrony, books = "vs_view_synchrony", self._books
        if self._asks(synchrony):
            same = self._books.with_who(books.lacking.where("same"))
            found.append(numbered_violations(same, synchrony, "not delivered there"))
        flags = {
            "vs_semantic_validity": "own",
            "vs_semantic_view_synchrony": "same",
            "vs_semantic_uniform_agreement": "promised",
        }
        asked = {name: flag for name, flag in flags.items() if self._asks(name)}
        if asked:
            left = books.unpaid(books.lacking)
            for name, flag in asked.items():
                found.append(numbered_violations(self._books.with_who(left.where(flag)), name, _LACKING))
        name = "vs_semantic_fifo_view_completeness"
        if self._asks(name):
            left = books.unpaid(books.lacking_before(books.latest))
            found.append(numbered_violations(self._books.with_who(left), name, _LACKING))
        return found


_PRIMARY = "vs_primary_partition"


def _primary_partition(
    run_index: RunIndex, runs: Iterable[str], books: Books, doubtful: set[str]
) -> dict[str, Verdict]:
    """The verdicts on `vs_primary_partition`.

    Who went on with a view while others had the next, with messages that are lost on these, did not agree to
    it; in `doubtful` runs nobody can say what is lost.
    """
    active = _last_steps(run_index)
    candidates: dict[int, tuple[str, int, Stay, Stay]] = {}
    for run in runs:
        views = views_of(run_index.stays.histories[run])
        if run not in doubtful:
            for number, following in pairwise(views.of):
                for stay, goes_on in _active_after(run_index, run, views, number, following, active):
                    candidates[len(candidates)] = run, number, stay, goes_on
    lost = _lost(run_index, candidates, books) if candidates else set()
    ignored: dict[tuple[str, int], set[MemberId]] = {}
    for place in lost:
        run, number, stay, _ = candidates[place]
        ignored.setdefault((run, number), set()).add(stay.process)
    return {run: _judged(run, views_of(run_index.stays.histories[run]), ignored) for run in runs}


def _judged(run: str, views: Views, ignored: Mapping[tuple[str, int], set[MemberId]]) -> Verdict:
    findings = Cases(_PRIMARY)
    find_second_primary(views, findings, lambda number, _: ignored.get((run, number), set()))
    return findings.verdict()


def _last_steps(run_index: RunIndex) -> dict[int, Nanos]:
    """When something was last sent or delivered in a stay."""
    found: dict[int, Nanos] = {}
    for row in run_index.steps.collect():
        stay = run_index.segments[row["segment"]].stay
        if stay is not None:
            found[stay] = max(found.get(stay, row["at"]), row["at"])
    return found


def _active_after(
    run_index: RunIndex, run: str, views: Views, number: int, following: int, active: Mapping[int, Nanos]
) -> list[tuple[Stay, Stay]]:
    """Stays in a view that went on when the next was there, with one that goes on to it."""
    goes_on = going_on(views, number, following)
    if goes_on is None:
        return []
    installed = min(stay.event.at for stay in views.of[following])
    return [
        (stay, goes_on)
        for stay in views.of[number]
        if active.get(run_index.stays.number(run, stay), -1) > installed
    ]


def _lost(
    run_index: RunIndex, candidates: Mapping[int, tuple[str, int, Stay, Stay]], books: Books
) -> set[int]:
    """Of pairs of stays those of which the second lacks something that the first has, or a replacement."""
    numbers = [
        (place, run_index.stays.number(run, stay), run_index.stays.number(run, goes_on))
        for place, (run, _, stay, goes_on) in candidates.items()
    ]
    found = books.lost(run_index.table(numbers, "debtor", "has", "lacks"))
    return {row["debtor"] for row in found.select("debtor").distinct().collect()}


def _state_transfer(run_index: RunIndex, runs: Iterable[str]) -> dict[str, Verdict]:
    """The verdicts on `vs_state_transfer`."""
    outlines = _outlines(run_index, set(runs))
    return {run: vs_state_transfer(outlines[run]) for run in runs}


def _outlines(run_index: RunIndex, runs: set[str]) -> dict[str, History]:
    """Histories with views, crashes, the states that views begin with, and what stands beside these."""
    events = {run: {(e.process, e.index): e for e in run_index.stays.histories[run].events} for run in runs}
    for row in run_index.states.where("view is not null").collect():
        if row["run"] in runs:
            state = _state(run_index.infos[row["run"]].only.name, row)
            events[row["run"]][state.process, state.index] = state
    for row in run_index.steps.collect():
        (run, process), index = run_index.segments[row["segment"]].who, row["first"]
        if run in runs and index is not None:
            some = Event(process, index, 0, Kind.DELIVER, run_index.infos[run].only.name, process, 1, 1)
            events[run][process, index] = some
    for (run, process), rows in run_index.sizes.items():
        if run in runs:
            _mark_end(run_index.infos[run].only.name, events[run], process, rows - 1)
    return {
        run: History(run_index.infos[run], sorted(found.values(), key=lambda event: event.index))
        for run, found in events.items()
    }


def _mark_end(group: str, events: dict[tuple[MemberId, int], Event], process: MemberId, last: int) -> None:
    """At the end, before a crash, stands a state or something that does not matter."""
    while last >= 0 and (process, last) in events and events[process, last].kind in GONE:
        last -= 1
    if last >= 0:
        events.setdefault((process, last), Event(process, last, 0, Kind.RECOVER, group))


def _state(group: str, row: Row) -> Event:
    sender, digest = row["sender"], row["annotation"]["item"]
    return Event(
        process=member_of(row["process"]),
        index=row["index"],
        at=row["at_ns"],
        kind=Kind.APPLY,
        group=group,
        sender=member_of(sender),
        view=row["view"],
        digest=digest,
    )
