"""Calls (`semcast.specs.calls`), in runs that memory does not hold.

A call is judged by its own rows and by the views of those who take part: a task has the calls of one caller
within a range of numbers. Whether a reply comes before its causes is a question of rows and their places.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.columns import SCHEMA
from semcast.history.schema import CAUSAL, GONE, TOTAL, Kind
from semcast.pipeline.verify.events import process
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.memory import Task, judge_in_parts, outlines
from semcast.pipeline.verify.violations import violations
from semcast.specs.calls import CALLS
from semcast.specs.calls.kinds import (
    ASKED,
    CAME,
    CHOSEN,
    DELIVERED,
    DEPARTED,
    HEARD,
    MADE,
    MISSED,
    RETURNED,
    RUN,
    SAID,
    SENT,
    TOLD,
    VIEW,
)
from semcast.specs.calls.replies import NO_CAUSAL_ORDER

_RANGE = 1 << 12
"""So many calls of a caller are judged in one task."""

_CAUSAL = "causal_reply"
_BY_CALL = ("call_replies", "call_complete", "call_one")
_TASKS = {name: Task(name, CALLS[name]) for name in _BY_CALL}
_OF_CALLER = (MADE, DELIVERED, CAME, HEARD, DEPARTED, RETURNED)
_OF_OTHERS = (ASKED, CHOSEN, RUN, SAID)
JUDGED = {*_BY_CALL, _CAUSAL}
"""What is judged here. Nothing else holds."""

_LIFE = ["run", "process", "incarnation"]
_PAIR = ["run", "caller", "teller", "in_view"]
_MEMBER = "struct<name:string,incarnation:bigint>"


def judge_calls(given: Given, wanted: Wanted) -> Findings:
    """All properties of the family."""
    found, there = Findings(), given.run_index.with_kinds(*_OF_CALLER, *_OF_OTHERS, VIEW)
    runs = [run for run in wanted if run in there]
    for run, names in wanted.items():
        if run not in runs:
            found.unknown.update({(run, name): "nothing was recorded of calls" for name in names})
    if runs:
        _judge_by_call(given, {run: wanted[run] for run in runs}, found)
        _judge_causes(given, [run for run in runs if _CAUSAL in wanted[run]], found)
    return found


def _judge_by_call(given: Given, wanted: Wanted, found: Findings) -> None:
    known = outlines(given, wanted, _is(VIEW, *GONE))
    asked = [(run, name) for run, names in wanted.items() for name in names if name in _TASKS]
    if known is None:
        found.unknown.update(dict.fromkeys(asked, "there are too many views for one task"))
        return
    own = _is(*_OF_CALLER)
    caller = (
        fn.when(own, fn.col("process")).otherwise(fn.col("sender")),
        fn.when(own, fn.col("incarnation")).otherwise(fn.col("sender_incarnation")),
    )
    part = fn.concat_ws("#", *caller, fn.expr(f"seq div {_RANGE}")).alias("part")
    rows = given.rows.where(_is(*_OF_CALLER, *_OF_OTHERS))
    parts = [
        rows.where(fn.col("run").isin([run for run, of in asked if of == name])).select(
            *SCHEMA.names, fn.lit(name).alias("task"), part
        )
        for name in dict.fromkeys(name for _, name in asked)
    ]
    if parts:
        beside = {(run, name): known[run].events for run, name in asked}
        found.add(judge_in_parts(given, reduce(DataFrame.union, parts), _TASKS, known, beside))


def _judge_causes(given: Given, runs: list[str], found: Findings) -> None:
    infos = given.run_index.infos
    for run in runs:
        if infos[run].only.order not in (CAUSAL, TOTAL):
            found.notes[run, _CAUSAL] = NO_CAUSAL_ORDER
    ordered = [run for run in runs if (run, _CAUSAL) not in found.notes]
    if ordered:
        kinds = (VIEW, MISSED, TOLD, SENT, SAID, CAME, Kind.LEFT)
        rows = given.rows.where(fn.col("run").isin(ordered) & _is(*kinds))
        parted = [run for run in ordered if infos[run].only.order == CAUSAL]
        found.violations.append(_before_its_causes(given, _in_views(rows), parted))


def _in_views(rows: DataFrame) -> DataFrame:
    """Rows with the view that they are in, and whether it is not known what was told there.

    (run, who, index, kind, sender, seq, last, whom, in_view, missed)
    """
    before = Window.partitionBy(*_LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, 0)
    view = fn.when(_is(VIEW) & (fn.col("level") == "view"), fn.struct("view", "sender", "sender_incarnation"))
    sender = fn.struct(fn.col("sender").alias("name"), fn.col("sender_incarnation").alias("incarnation"))
    inside = rows.select(
        "run",
        process().alias("who"),
        "index",
        "kind",
        sender.alias("sender"),
        "seq",
        (fn.col("seq") + fn.col("count") - 1).alias("last"),
        fn.get("members", fn.lit(0)).alias("whom"),
        fn.last(view, ignorenulls=True).over(before).alias("in_view"),
    )
    there = Window.partitionBy("run", "who", "in_view").orderBy("index")
    missed = fn.max(_is(MISSED)).over(there.rowsBetween(Window.unboundedPreceding, 0))
    return inside.select("*", missed.alias("missed"))


def _before_its_causes(given: Given, rows: DataFrame, parted: list[str]) -> DataFrame:
    """Replies that come before something that their sender had been given or had sent in the same view.

    Where the caller has a cause later than some reply that was said after the cause, the reply that came
    first is the one to look at. What is left after that is counted pair by pair. Of the `parted` runs, who
    leaves in that view is not owed what it is never given.
    """
    rows = given.run_index.keep(rows)
    replies = given.run_index.keep(_replies(rows))
    late = _with_earliest(_causes(rows, replies, parted), replies).where("told is null or earliest < told")
    pairs = late.join(replies, _same(late, replies, *_PAIR)).where(
        "cause < said and (told is null or came < told)"
    )
    cases = pairs.select(
        late["run"],
        late["caller"].alias("process"),
        fn.lit(None).cast(_MEMBER).alias("sender"),
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
        "came",
    )
    return violations(cases, _CAUSAL, "a reply comes before its cause", index=fn.col("came"))


def _replies(rows: DataFrame) -> DataFrame:
    """What came in the view in which it was said: (run, caller, teller, in_view, said, came)."""
    said = fn.max_by(fn.struct("index", "in_view"), "index").alias("said")
    answers = rows.where(_is(SAID)).groupBy("run", "who", "sender", "seq").agg(said)
    told = answers.select(
        "run",
        fn.col("who").alias("teller"),
        fn.col("sender").alias("caller"),
        "seq",
        fn.col("said.index").alias("said"),
        fn.col("said.in_view").alias("in_view"),
    )
    came = rows.where(_is(CAME) & ~fn.col("missed")).select(
        "run",
        fn.col("who").alias("caller"),
        fn.col("whom").alias("teller"),
        "seq",
        fn.col("index").alias("came"),
        fn.col("in_view").alias("came_in"),
    )
    both = came.join(told, ["run", "caller", "teller", "seq"])
    # Where no view was told of, both are in none.
    return both.where(fn.col("came_in").eqNullSafe(fn.col("in_view"))).select(*_PAIR, "said", "came")


def _causes(rows: DataFrame, replies: DataFrame, parted: list[str]) -> DataFrame:
    """What tellers had, and where their callers had it: (run, caller, teller, in_view, cause, told).

    What a caller is not owed was told before everything else.
    """
    single = fn.explode(fn.sequence("seq", "last")).alias("seq")
    given = rows.where(_is(TOLD, SENT)).select("run", "who", "sender", single, "index", "in_view")
    had = given.select(
        "run", fn.col("who").alias("teller"), "sender", "seq", fn.col("index").alias("cause"), "in_view"
    )
    told = given.groupBy("run", fn.col("who").alias("caller"), "sender", "seq")
    first = told.agg(fn.min("index").alias("told"))
    pairs = fn.broadcast(replies.select(*_PAIR).distinct())
    owed = had.join(pairs, _same(had, pairs, "run", "teller", "in_view"))
    named = owed.select(had["run"], "caller", had["teller"], had["in_view"], "sender", "seq", "cause")
    known = named.join(first, ["run", "caller", "sender", "seq"], "left")
    left = rows.where(_is(Kind.LEFT) & fn.col("run").isin(parted)).select(
        fn.col("run"), fn.col("who").alias("caller"), "in_view", fn.lit(-1).cast("long").alias("excused")
    )
    gone = fn.broadcast(left.distinct())
    judged = known.join(gone, _same(known, gone, "run", "caller", "in_view"), "left")
    moment = fn.coalesce(known["told"], gone["excused"]).alias("told")
    return judged.select(*[known[name] for name in _PAIR], known["cause"], moment)


def _with_earliest(causes: DataFrame, replies: DataFrame) -> DataFrame:
    """Causes with the first moment at which a reply came that was said after them; others are left out."""
    nothing = fn.lit(None).cast("long")
    both = causes.select(*_PAIR, fn.col("cause").alias("at"), "told", nothing.alias("came")).union(
        replies.select(*_PAIR, fn.col("said").alias("at"), nothing, "came")
    )
    later = Window.partitionBy(*_PAIR).orderBy(fn.desc("at")).rowsBetween(Window.unboundedPreceding, 0)
    marked = both.select("*", fn.min("came").over(later).alias("earliest"))
    found = marked.where("came is null and earliest is not null")
    return found.select(*_PAIR, fn.col("at").alias("cause"), "told", "earliest")


def _same(one: DataFrame, other: DataFrame, *names: str) -> Column:
    return reduce(Column.__and__, [one[name].eqNullSafe(other[name]) for name in names])


def _is(*kinds: Kind) -> Column:
    return fn.col("kind").isin(*(kind.value for kind in kinds))
