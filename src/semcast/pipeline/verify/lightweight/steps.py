"""One order of all that daemons of lightweight groups do (`lw_order`): what positions do not prove.

Most steps have one place everywhere, and places grow at every daemon: these have one order. Two kinds of rows
are left to the checkers. Rows at a place with several steps, and of steps at several places, may be wrong by
themselves. And the same step may rightly have two places in two rests of a configuration: a circle can only
be among what was done in that configuration from the first such place on, for at each daemon numbers of
configurations and places grow.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.columns import SCHEMA
from semcast.pipeline.verify.certified import MOST_ROWS
from semcast.pipeline.verify.forms import Findings
from semcast.pipeline.verify.lightweight.rows import LIFE, LightweightRows, is_kind, place
from semcast.pipeline.verify.parts import history_of
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs.lightweight.kinds import DELIVER, ORDERED, PRIVATE
from semcast.specs.lightweight.messages import one_order, one_place_each
from semcast.specs.lightweight.story import story_of
from semcast.specs.verdict import Findings as Faults

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
