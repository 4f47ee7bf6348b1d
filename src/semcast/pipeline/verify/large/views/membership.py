"""Views as everybody agrees on them, and the states that they begin with: rows that are few in any run.

The checkers in memory judge them. What they look for among messages is found out on Spark, for a few stays.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId, Nanos
from semcast.history import GONE, Event, History, Kind
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.large.views.books import Books
from semcast.pipeline.verify.scene import Scene
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings, Verdict
from semcast.specs.vsync.membership import find_second_primary, going_on, vs_view_agreement
from semcast.specs.vsync.state import vs_state_transfer
from semcast.specs.vsync.views import Views, views_of

__all__ = ["primary_partition", "state_transfer", "vs_view_agreement"]

_PRIMARY = "vs_primary_partition"


def primary_partition(
    scene: Scene, runs: Iterable[str], books: Books, doubtful: set[str]
) -> dict[str, Verdict]:
    """The verdicts on `vs_primary_partition`.

    Who went on with a view while others had the next, with messages that are lost on these, did not agree to
    it; in `doubtful` runs nobody can say what is lost.
    """
    active = _last_steps(scene)
    candidates: dict[int, tuple[str, int, Stay, Stay]] = {}
    for run in runs:
        views = views_of(scene.stays.histories[run])
        if run not in doubtful:
            for number, following in pairwise(views.of):
                for stay, goes_on in _active_after(scene, run, views, number, following, active):
                    candidates[len(candidates)] = run, number, stay, goes_on
    lost = _lost(scene, candidates, books) if candidates else set()
    ignored: dict[tuple[str, int], set[MemberId]] = {}
    for place in lost:
        run, number, stay, _ = candidates[place]
        ignored.setdefault((run, number), set()).add(stay.process)
    return {run: _judged(run, views_of(scene.stays.histories[run]), ignored) for run in runs}


def _judged(run: str, views: Views, ignored: Mapping[tuple[str, int], set[MemberId]]) -> Verdict:
    findings = Findings(_PRIMARY)
    find_second_primary(views, findings, lambda number, _: ignored.get((run, number), set()))
    return findings.verdict()


def _last_steps(scene: Scene) -> dict[int, Nanos]:
    """When something was last sent or delivered in a stay."""
    found: dict[int, Nanos] = {}
    for row in scene.steps.collect():
        stay = scene.pieces[row["piece"]].stay
        if stay is not None:
            found[stay] = max(found.get(stay, row["at"]), row["at"])
    return found


def _active_after(
    scene: Scene, run: str, views: Views, number: int, following: int, active: Mapping[int, Nanos]
) -> list[tuple[Stay, Stay]]:
    """Stays in a view that went on when the next was there, with one that goes on to it."""
    goes_on = going_on(views, number, following)
    if goes_on is None:
        return []
    installed = min(stay.event.at for stay in views.of[following])
    return [
        (stay, goes_on)
        for stay in views.of[number]
        if active.get(scene.stays.number(run, stay), -1) > installed
    ]


def _lost(scene: Scene, candidates: Mapping[int, tuple[str, int, Stay, Stay]], books: Books) -> set[int]:
    """Of pairs of stays those of which the second lacks something that the first has, or a replacement."""
    numbers = [
        (place, scene.stays.number(run, stay), scene.stays.number(run, goes_on))
        for place, (run, _, stay, goes_on) in candidates.items()
    ]
    found = books.lost(scene.table(numbers, "debtor", "has", "lacks"))
    return {row["debtor"] for row in found.select("debtor").distinct().collect()}


def state_transfer(scene: Scene, runs: Iterable[str]) -> dict[str, Verdict]:
    """The verdicts on `vs_state_transfer`."""
    outlines = _outlines(scene, set(runs))
    return {run: vs_state_transfer(outlines[run]) for run in runs}


def _outlines(scene: Scene, runs: set[str]) -> dict[str, History]:
    """Histories with views, crashes, the states that views begin with, and what stands beside these."""
    events = {run: {(e.process, e.index): e for e in scene.stays.histories[run].events} for run in runs}
    for row in _states_at_views(scene.events).collect():
        if row["run"] in runs:
            state = _state(scene.infos[row["run"]].only.name, row)
            events[row["run"]][state.process, state.index] = state
    for row in scene.steps.collect():
        (run, process), index = scene.pieces[row["piece"]].who, row["first"]
        if run in runs and index is not None:
            some = Event(process, index, 0, Kind.DELIVER, scene.infos[run].only.name, process, 1, 1)
            events[run][process, index] = some
    for (run, process), rows in _lengths(scene).items():
        if run in runs:
            _mark_end(scene.infos[run].only.name, events[run], process, rows - 1)
    return {
        run: History(scene.infos[run], sorted(found.values(), key=lambda event: event.index))
        for run, found in events.items()
    }


def _mark_end(group: str, events: dict[tuple[MemberId, int], Event], process: MemberId, last: int) -> None:
    """At the end, before a crash, stands a state or something that does not matter."""
    while last >= 0 and (process, last) in events and events[process, last].kind in GONE:
        last -= 1
    if last >= 0:
        events.setdefault((process, last), Event(process, last, 0, Kind.RECOVER, group))


def _states_at_views(events: DataFrame) -> DataFrame:
    return of_kind(events, Kind.APPLY).where("view is not null")


def _state(group: str, row: Row) -> Event:
    sender, digest = row["sender"], row["annotation"]["item"]
    return Event(
        process=_member(row["process"]),
        index=row["index"],
        at=row["at_ns"],
        kind=Kind.APPLY,
        group=group,
        sender=_member(sender),
        view=row["view"],
        digest=digest,
    )


def _lengths(scene: Scene) -> dict[tuple[str, MemberId], int]:
    """How many rows each process has."""
    counted = scene.totals.groupBy("run", "process").agg(fn.sum("rows").alias("rows")).collect()
    return {(row["run"], _member(row["process"])): row["rows"] for row in counted}


def _member(struct: Row) -> MemberId:
    return MemberId(struct["name"], struct["incarnation"])
