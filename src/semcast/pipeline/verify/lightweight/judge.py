"""Lightweight groups and clients (`semcast.specs.lightweight`), in runs that memory does not hold.

Sessions, views and configurations are few rows: the driver has them, as the outline of a run. What they break
among themselves the checkers see there. The rest is judged by single rows and their neighbours
(`rows.py`), or by the checkers in tasks: a stretch of what a daemon did, a range of the requests
of a client, or all that a client was told.

One order of all that daemons do (`lw_order`): most steps have one place everywhere, and places grow at every
daemon: these have one order. Two kinds of rows are left to the checkers. Rows at a place with several steps,
and of steps at several places, may be wrong by themselves. And the same step may rightly have two places in
two rests of a configuration: a circle can only be among what was done in that configuration from the first
such place on, for at each daemon numbers of configurations and places grow.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history import Event, History
from semcast.history.columns import SCHEMA
from semcast.history.schema import GONE
from semcast.pipeline.verify.excerpts import MOST_ROWS
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.lightweight.rows import (
    LIFE,
    LightweightRows,
    after_the_end,
    is_kind,
    lost_or_unplaced,
    not_growing,
    of_the_gone,
    outside,
    place,
    sent_elsewhere,
    with_stays,
)
from semcast.pipeline.verify.memory import Task, history_of, judge_in_parts, outlines
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import LIGHTWEIGHT, Verdict
from semcast.specs.lightweight.kinds import (
    ASK,
    CONF,
    DELIVER,
    HEARD,
    LEFT,
    ORDERED,
    PRIVATE,
    SESSION,
    TRANSITIONAL,
    VIEW,
)
from semcast.specs.lightweight.messages import (
    look_at_names,
    look_for_own,
    one_order,
    one_place_each,
    sending_views,
)
from semcast.specs.lightweight.story import LightStory, Row, story_of
from semcast.specs.verdict import Findings as Faults

_STRETCH = 1 << 14
"""So many rows of a daemon, or requests of a client, are judged in one task."""

BY_OUTLINE = ("lw_view_agreement", "lw_one_event", "lw_gone", "one_fate")
"""What the checkers see in sessions and views alone; others add what messages break."""

ROWS: dict[str, Callable[[LightweightRows, str], DataFrame]] = {
    "lw_view_agreement": outside,
    "lw_order": not_growing,
    "lw_sending_view": sent_elsewhere,
    "lw_gone": of_the_gone,
    "lw_settled": lost_or_unplaced,
    "one_fate": after_the_end,
}
"""What single rows and their neighbours break."""

_OUTLINE = (CONF, SESSION, VIEW, TRANSITIONAL, LEFT, *GONE)
_ABOUT_MESSAGES = ("cast", "private")


def names_its_view(history: History) -> Verdict:
    """A part of `lw_sending_view`: whether senders are in the views that they name."""
    faults = Faults("lw_sending_view")
    look_at_names(story_of(history), faults)
    return faults.verdict()


def has_its_own(history: History) -> Verdict:
    """A part of `lw_sending_view`: whether senders are given their own messages."""
    faults, story = Faults("lw_sending_view"), story_of(history)
    look_for_own(story, sending_views(story), faults)
    return faults.verdict()


TASKS = {
    "lw_open": Task("lw_open", LIGHTWEIGHT["lw_open"], own=True),
    "names": Task("lw_sending_view", names_its_view, own=True),
    "own": Task("lw_sending_view", has_its_own, own=True),
    "lw_same_view": Task("lw_same_view", LIGHTWEIGHT["lw_same_view"]),
    "lw_private": Task("lw_private", LIGHTWEIGHT["lw_private"]),
    "lw_heard": Task("lw_heard", LIGHTWEIGHT["lw_heard"]),
    "lw_purged": Task("lw_purged", LIGHTWEIGHT["lw_purged"]),
}
JUDGED = {*BY_OUTLINE, *ROWS, *(task.property for task in TASKS.values()), "lw_atomicity"}
"""What is judged here. Nothing else holds."""


def judge_lightweight(given: Given, wanted: Wanted) -> Findings:
    """All properties of the family."""
    found = Findings()
    there = given.run_index.with_kinds(SESSION, CONF)
    runs = [run for run in wanted if run in there]
    for run, names in wanted.items():
        if run not in runs:
            found.unknown.update({(run, name): "no daemon was recorded" for name in names})
    if not runs:
        return found
    about_messages = is_kind(ASK, ORDERED) & fn.col("level").isin(*_ABOUT_MESSAGES)
    others = is_kind(ASK, ORDERED) & ~about_messages
    programs = is_kind(HEARD) & (fn.col("level") == "opened")  # without one they would be taken for daemons
    known = outlines(given, runs, is_kind(*_OUTLINE) | others | programs)
    if known is None:
        why = "there are too many rows about sessions and views"
        found.unknown.update({(run, name): why for run in runs for name in wanted[run]})
        return found
    _Judgement(given, {run: wanted[run] for run in runs}, known, found).all()
    return found


class _Judgement:
    """Of some runs, whose outlines are known."""

    def __init__(self, given: Given, wanted: Wanted, known: dict[str, History], found: Findings) -> None:
        self._given = given
        self._wanted = wanted
        self._known = known
        self._found = found
        self._rows = LightweightRows(given, known)

    def all(self) -> None:
        """Whatever is wanted."""
        self._by_outline()
        for name, form in ROWS.items():
            if self._runs(name):
                self._found.violations.append(form(self._rows.of(self._runs(name)), name))
        self._stays()
        if self._runs("lw_order"):
            self._found.add(judge_steps(self._rows.of(self._runs("lw_order")), "lw_order"))
        parts = [each for task in TASKS if (each := self._parts(task)) is not None]
        if parts:
            beside = {
                (run, task): list(_beside(task, self._known[run]))
                for task, each in TASKS.items()
                for run in self._runs(each.property)
            }
            rows = reduce(DataFrame.union, parts)
            self._found.add(judge_in_parts(self._given, rows, TASKS, self._known, beside))

    def _runs(self, name: str) -> list[str]:
        return [run for run, names in self._wanted.items() if name in names]

    def _by_outline(self) -> None:
        told = [(run, LIGHTWEIGHT[name](self._known[run])) for name in BY_OUTLINE for run in self._runs(name)]
        broken = [told_by(run, verdict) for run, verdict in told if verdict.count]
        self._found.violations.append(known_violations(self._given.run_index.spark, broken))

    def _stays(self) -> None:
        """What clients were given in a view is one number each, in the outline: equal if it was the same."""
        runs = self._runs("lw_atomicity")
        if runs:
            for run, events in with_stays(self._rows.of(runs)).items():
                history = History(self._known[run].info, events)
                self._found.verdicts.append((run, LIGHTWEIGHT["lw_atomicity"](history)))

    def _parts(self, task: str) -> DataFrame | None:
        runs = self._runs(TASKS[task].property)
        if not runs:
            return None
        rows, part = _PARTS[task](self._rows.of(runs))
        return rows.select(*SCHEMA.names, fn.lit(task).alias("task"), part.alias("part"))


# Which rows are judged together

Parted = tuple[DataFrame, Column]


def _of_daemon(place: str) -> Column:
    return fn.concat_ws("#", "process", "incarnation", fn.expr(f"{place} div {_STRETCH}"))


def _turns(rows: LightweightRows) -> Parted:
    """What a daemon did, cut where it begins with a request; with those that were sent in a view."""
    done = rows.turns
    home = rows.all.where(is_kind(ASK) & (fn.col("level") == "cast") & rows.text("view").isNotNull())
    places = done.where(is_kind(ORDERED)).select(
        "run", "sender", "sender_incarnation", "seq", _of_daemon("turn").alias("part")
    )
    asked = home.join(places, ["run", "sender", "sender_incarnation", "seq"])
    both = done.select(*SCHEMA.names, _of_daemon("turn").alias("part"))
    return both.union(asked.select(*SCHEMA.names, "part")), fn.col("part")


def _asked(rows: LightweightRows) -> Parted:
    home = rows.all.where(is_kind(ASK) & (fn.col("level") == "cast") & rows.text("view").isNotNull())
    return home, _of_daemon("index")


def _by_request(rows: DataFrame) -> Parted:
    part = fn.concat_ws("#", "sender", "sender_incarnation", fn.expr(f"seq div {_STRETCH}"))
    return rows, part


def _delivered(rows: LightweightRows) -> Parted:
    return _by_request(rows.all.where(is_kind(DELIVER)))


def _private(rows: LightweightRows) -> Parted:
    asked = is_kind(ASK, ORDERED) & (fn.col("level") == "private")
    return _by_request(rows.all.where(asked | is_kind(PRIVATE)))


def _told(rows: LightweightRows) -> Parted:
    """All that programs were told which say what they heard."""
    heard = rows.clients.where(is_kind(VIEW, TRANSITIONAL, LEFT, DELIVER, PRIVATE, HEARD))
    programs = rows.clients.where(is_kind(HEARD)).select("run", "client").distinct()
    return heard.join(programs, ["run", "client"], "left_semi"), fn.to_json("client")


def _told_and_asked(rows: LightweightRows) -> Parted:
    """The same, and what the messages were about."""
    told, part = _told(rows)
    key = ["run", "sender", "sender_incarnation", "seq"]
    casts = rows.all.where(is_kind(ASK) & (fn.col("level") == "cast"))
    where = told.where(is_kind(DELIVER)).select(*key, part.alias("part")).distinct()
    about = casts.join(where, key).select(*SCHEMA.names, "part")
    return told.select(*SCHEMA.names, part.alias("part")).union(about), fn.col("part")


_PARTS: dict[str, Callable[[LightweightRows], Parted]] = {
    "lw_open": _turns,
    "names": _asked,
    "own": _turns,
    "lw_same_view": _delivered,
    "lw_private": _private,
    "lw_heard": _told,
    "lw_purged": _told_and_asked,
}


def _beside(task: str, known: History) -> Iterable[Event]:
    """The rows of an outline that belong to every part."""
    story = story_of(known)
    match task:
        case "lw_same_view":
            return _one_of_each(story)
        case "lw_private" | "lw_heard" | "lw_purged":
            return _events(story.rows(SESSION))
        case "lw_open" | "names" | "own":
            return _events(story.rows(SESSION, VIEW, LEFT))
    return ()


def _events(rows: Iterable[Row]) -> Iterator[Event]:
    return (row.event for row in rows)


def _one_of_each(story: LightStory) -> Sequence[Event]:
    """Of each group with sending view delivery a row that says so."""
    return list({row.text.group: row.event for row in story.rows(VIEW) if row.text.vs}.values())


_STEP = ["run", "step"]
_FOR = "for_what"
_PLACES, _CIRCLES = "places", "circles"
_UNKNOWN = "too many rows are in doubt"


def judge_steps(rows: LightweightRows, name: str) -> Findings:
    """Of some runs, whether every step has one place and all daemons agree on an order."""
    keep, found, broken = rows.given.run_index.keep, Findings(), []
    steps = _steps(rows)
    places = keep(_places(steps))
    marked = [
        each.select(*SCHEMA.names, fn.lit(what).alias(_FOR))
        for what, each in ((_PLACES, _wrong(steps, places)), (_CIRCLES, _around(steps, places)))
    ]
    kept = keep(marked[0].union(marked[1]))
    sizes = {(run, what): size for run, what, size in kept.groupBy("run", _FOR).count().collect()}
    many = {case for case, size in sizes.items() if size > MOST_ROWS}
    table = kept.where(
        ~fn.concat_ws(" ", "run", _FOR).isin([f"{run} {what}" for run, what in many])
    ).toArrow()
    for run in rows.known:
        faults = Faults(name)
        for what, look in ((_PLACES, one_place_each), (_CIRCLES, one_order)):
            if (run, what) in many:
                found.doubts[run, name] = _UNKNOWN
            elif (run, what) in sizes:
                look(story_of(history_of(rows.given, run, _of(table, run, what))), faults)
        if faults.verdict().count:
            broken.append(told_by(run, faults.verdict()))
    found.violations.append(known_violations(rows.given.run_index.spark, broken))
    return found


def _of(table: pa.Table, run: str, what: str) -> pa.Table:
    mine = pc.and_(pc.equal(table["run"], run), pc.equal(table[_FOR], what))
    return table.filter(mine).select(SCHEMA.names)


def _steps(rows: LightweightRows) -> DataFrame:
    """All rows about steps, with `step` and `place`."""
    what = fn.when(fn.col("seq") != 0, fn.col("seq").cast("string")).otherwise(fn.col("level"))
    step = fn.struct("sender", "sender_incarnation", fn.coalesce(what, fn.lit("")).alias("what"))
    return rows.all.where(is_kind(ORDERED, DELIVER, PRIVATE)).withColumns(
        {"step": step, "place": place(rows)}
    )


def _places(steps: DataFrame) -> DataFrame:
    """The places of steps: (run, step, number, rest, name, low, high), one row for each configuration."""
    each = steps.select(*_STEP, "place.*").groupBy(*_STEP, "number", "rest", "name")
    return each.agg(fn.min("order").alias("low"), fn.max("order").alias("high"))


def _wrong(steps: DataFrame, places: DataFrame) -> DataFrame:
    """Rows about steps that may be at two places, and at places that may have two steps."""
    known = places.groupBy(*_STEP).agg(
        (fn.min("number") != fn.max("number")).alias("apart"),
        (fn.count_if(fn.col("rest") == 0) > 1).alias("again"),
        fn.bool_or(fn.col("low") != fn.col("high")).alias("moved"),
    )
    moved = known.where("apart or again or moved").select(*_STEP)
    shared = steps.groupBy("run", "place").agg((fn.min("step") != fn.max("step")).alias("shared"))
    shared = shared.where("shared").select("run", "place")
    there = steps.join(moved, _STEP, "left_semi").select(*SCHEMA.names)
    return there.union(steps.join(shared, ["run", "place"], "left_semi").select(*SCHEMA.names)).distinct()


def _around(steps: DataFrame, places: DataFrame) -> DataFrame:
    """What daemons did, as far as a circle can be there; all of it where places do not grow."""
    done = steps.where(is_kind(ORDERED))
    several = places.groupBy(*_STEP).agg(
        ((fn.count(fn.lit(1)) > 1) | fn.bool_or(fn.col("low") != fn.col("high"))).alias("several"),
        (fn.min("number") != fn.max("number")).alias("apart"),
    )
    begin = fn.min(fn.struct("number", "rest", "name", fn.col("low").alias("order")))
    odd = places.join(several.where("several").select(*_STEP), _STEP, "left_semi")
    begins = odd.groupBy("run", "number").agg(begin.alias("begin"))
    before = fn.lag("place").over(Window.partitionBy(*LIFE).orderBy("index"))
    back = done.select("run", (before >= fn.col("place")).alias("back")).where("back").select("run")
    all_of = fn.broadcast(back.union(several.where("apart").select("run")).distinct())
    same = (fn.col("run") == fn.col("of_run")) & (fn.col("place.number") == fn.col("number"))
    lows = fn.broadcast(begins.withColumnRenamed("run", "of_run"))
    some = done.join(lows, same & (fn.col("place") >= fn.col("begin"))).select(*SCHEMA.names)
    # Both have a row where both apply: a history takes each once.
    return some.union(done.join(all_of, "run", "left_semi").select(*SCHEMA.names))
