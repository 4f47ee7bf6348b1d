"""Greens that must follow each other: the rows in doubt (`judge.py`) about what comes after what.

Nearly every green follows the one before it, and is at rest. Of the others, the *suspects*, the checkers are
asked, together with the rows that decide: the green before, snapshots, and of each creator the highest place
that a server may have had at a start or a snapshot. What comes after what is told of suspects only: in an
excerpt all other greens seem to follow a gap.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import united
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.pipeline.verify.replication.rows import (
    BIN,
    CREATOR,
    LIFE,
    ROW,
    actions,
    green,
    is_kind,
    meeting,
    operators,
    span,
    strict,
    these,
)
from semcast.specs.replication.kinds import DONE, DURABLE, REQUEST, SNAPSHOT, STORE
from semcast.specs.replication.order import DONE_TWICE, GAP, TWICE, UNASKED, UNORDERED

FAULT = "fault"
"""The column that says what a row is suspected of; null for one that only helps to decide."""

_MOST_BOUNDS = 1 << 14
"""More come of contested positions only, which are too many to be judged then."""


def contested(placed: DataFrame) -> DataFrame:
    """Positions that some rows give to one action and others to another: (run, first, last)."""
    action = fn.struct(*CREATOR[1:], (fn.col("seq") - fn.col("order")).alias("shift"))
    spans = placed.select("run", action.alias("action"), *span("order"), fn.lit(1).alias("there"))
    each = overlay(chunked(spans), ["run", "action", "chunk"], ["there"])
    depth = each.select("run", "chunk", "first", "last", fn.lit(1).alias("actions"))
    several = overlay(depth, ["run", "chunk"], [], ["actions"]).where("actions > 1")
    return several.select("run", "first", "last")


def at_positions(placed: DataFrame, spans: DataFrame) -> DataFrame:
    """Of rows with a position those that have one of spans (run, first, last)."""
    wrong = chunked(spans, chunk=BIN).alias("w")
    cut = chunked(placed.select(*ROW, *span("order")), chunk=BIN).alias("p")
    same = (fn.col("w.run") == fn.col("p.run")) & (fn.col("w.chunk") == fn.col("p.chunk"))
    meet = (fn.col("w.first") <= fn.col("p.last")) & (fn.col("p.first") <= fn.col("w.last"))
    chosen = cut.join(wrong, same & meet, "left_semi").select(*ROW).distinct()
    return placed.join(chosen, ROW, "left_semi").select(*placed.columns)


def _not_in_order(rows: DataFrame) -> DataFrame:
    """Greens that are not the next of their creator as far as a life shows, and what it had before."""
    greens, snapshots = rows.where(green()), rows.where(is_kind(SNAPSHOT))
    marked = _since_snapshots(greens, snapshots)
    wrong = _breaks(marked, [*LIFE, *CREATOR[1:]], "seq")
    disputed = contested(greens)
    context = _befores(rows, wrong), snapshots, at_positions(greens, disputed)
    return _all(rows, {UNORDERED: wrong}, *context, _highest(rows, marked, _bounds(rows, disputed)))


def _not_sound(rows: DataFrame) -> DataFrame:
    """Greens after a gap, twice in a life or never asked for, and requests that are done at two places."""
    greens, snapshots = rows.where(green()), rows.where(is_kind(SNAPSHOT))
    gaps = _breaks(_since_snapshots(greens, snapshots), LIFE, "order")
    unasked = meeting(greens, _never_asked_for(rows, greens))
    asked = meeting(rows.where(is_kind(REQUEST)), actions(unasked))
    suspects = {GAP: gaps, TWICE: _twice(greens), UNASKED: unasked, DONE_TWICE: _done_twice(rows)}
    return _all(rows, suspects, _befores(rows, gaps), snapshots, asked)


SUSPICIOUS: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "repl_fifo": _not_in_order,
    "repl_integrity": _not_sound,
}
"""By property, the rows that may break it, and those that decide: with the column `FAULT`."""


def _all(rows: DataFrame, suspects: Mapping[str, DataFrame], *context: DataFrame) -> DataFrame:
    parts = [part.select(*rows.columns, fn.lit(fault).alias(FAULT)) for fault, part in suspects.items()]
    nothing = fn.lit(None).cast("string").alias(FAULT)
    parts += [part.select(*rows.columns, nothing) for part in context]
    return united(parts)


def _since_snapshots(greens: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Greens with `snapshots`, how many their life had before."""
    places = snapshots.groupBy(*LIFE).agg(fn.collect_list("index").alias("places"))
    before = fn.filter("places", lambda place: place < fn.col("index"))
    marked = greens.join(fn.broadcast(places), LIFE, "left")
    return marked.withColumn("snapshots", fn.coalesce(fn.size(before), fn.lit(0))).drop("places")


def _breaks(marked: DataFrame, keys: list[str], column: str) -> DataFrame:
    """Greens that do not follow the one before, or that come after a snapshot or a start: with `before`."""
    at = Window.partitionBy(*keys).orderBy("index")
    end = fn.struct((fn.col(column) + fn.col("count")).alias("next"), "snapshots", "index")
    told = marked.withColumn("before", fn.lag(end).over(at))
    follows = (fn.col(column) == fn.col("before.next")) & (fn.col("snapshots") == fn.col("before.snapshots"))
    return told.where(~fn.coalesce(follows, fn.lit(False)))


def _befores(rows: DataFrame, wrong: DataFrame) -> DataFrame:
    """The greens before those that do not follow them."""
    return these(rows, wrong.where("before is not null").select(*LIFE, fn.col("before.index").alias("index")))


def _bounds(rows: DataFrame, disputed: DataFrame) -> DataFrame:
    """Per run, up to where starts, disks, answers, snapshots and operators may count: (run, bounds).

    And where positions are contested: beside them, the highest place of a creator is beyond dispute.
    """
    line = fn.coalesce("order", fn.lit(0)).alias("bound")
    each = rows.where(is_kind(STORE, SNAPSHOT)).select("run", line).union(operators(rows).select("run", line))
    furthest = rows.where(is_kind(DURABLE) | strict()).groupBy(*LIFE, "kind").agg(fn.max("order"))
    edges = fn.explode(fn.array(fn.col("first") - 1, "last"))
    parts = each, furthest.select("run", fn.col("max(order)")), disputed.select("run", edges)
    found = united(parts).groupBy("run").agg(fn.collect_set("bound").alias("bounds"))
    return found.select("run", fn.slice("bounds", 1, _MOST_BOUNDS).alias("bounds"))


def _highest(rows: DataFrame, marked: DataFrame, bounds: DataFrame) -> DataFrame:
    """Of each life and creator the green that comes furthest, between any two bounds and two snapshots."""
    below = fn.size(fn.filter("bounds", lambda bound: bound < fn.col("order"))).alias("below")
    cut = marked.join(fn.broadcast(bounds), "run").select(*ROW, *CREATOR[1:], "snapshots", below, *_end())
    tops = cut.groupBy(*LIFE, *CREATOR[1:], "snapshots", "below").agg(
        fn.max_by("index", "end").alias("index")
    )
    return these(rows, tops)


def _end() -> list[Column]:
    return [(fn.col("order") + fn.col("count") - 1).alias("end")]


def _twice(greens: DataFrame) -> DataFrame:
    """Greens about actions that are green more than once in a life."""
    keys = [*CREATOR, *LIFE[1:]]
    spans = chunked(greens.select(*keys, *span("seq"), fn.lit(1).alias("times")))
    again = overlay(spans, [*keys, "chunk"], [], ["times"]).where("times > 1")
    return meeting(greens, again, *LIFE[1:])


def _never_asked_for(rows: DataFrame, greens: DataFrame) -> DataFrame:
    """What is green somewhere without a request: (run, sender, sender_incarnation, first, last)."""
    layers = [
        part.select(*CREATOR, *span("seq"), fn.lit(placed).alias("placed"), fn.lit(1 - placed).alias("asked"))
        for part, placed in ((greens, 1), (rows.where(is_kind(REQUEST)), 0))
    ]
    laid = overlay(chunked(layers[0].union(layers[1])), [*CREATOR, "chunk"], ["placed", "asked"])
    return laid.where("placed and not asked").select(*CREATOR, "first", "last")


def _done_twice(rows: DataFrame) -> DataFrame:
    """All that is said of requests that are done at several places."""
    done = rows.where(is_kind(DONE)).withColumn("request", fn.get("members", fn.lit(0)))
    places = done.groupBy("run", "request").agg(fn.count_distinct("order").alias("places"))
    several = places.where("places > 1").select("run", "request")
    return done.join(several, ["run", "request"], "left_semi")
