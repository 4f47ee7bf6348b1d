"""Servers that replicate a service (`semcast.specs.replication`), in runs that memory does not hold.

Of every property here, most rows are at rest: one look at positions or at what came before tells that they
break nothing. The checkers in memory are asked about the others, together with the outline of the run: who
started with which disk, which primaries were installed, who crashed, and how far disks and answers came.
"""

from collections.abc import Callable, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import GONE, Kind
from semcast.pipeline.verify.certified import MOST_ROWS, history_of
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.specs import check
from semcast.specs.replication.kinds import (
    AGAIN,
    ALARM,
    COLOUR,
    DURABLE,
    GREEN,
    GROUP,
    INSTALL,
    PHASE,
    REPLY,
    REQUEST,
    SNAPSHOT,
    STORE,
    WHITE,
)
from semcast.specs.replication.primaries import ORDERS

_LIFE = ["run", "process", "incarnation"]
_ROW = [*_LIFE, "index"]
_CREATOR = ["run", "sender", "sender_incarnation"]
_TEXT = "annotation.item"
_BIN = 64
_OF = "of_property"
_ALL = "all of them"
_OUTLINE = [kind.value for kind in (STORE, INSTALL, GROUP, *GONE)]


def judge_replication(given: Given, wanted: Wanted) -> Findings:
    """The rows in doubt of all runs and properties, then run by run what the checkers say of them."""
    found = Findings()
    rows = given.rows.where(fn.col("run").isin(*wanted))
    with_servers = {row["run"] for row in rows.where(_is(STORE.value)).select("run").distinct().collect()}
    asked: dict[str, list[str]] = {}
    for run, names in wanted.items():
        if run in with_servers:
            asked[run] = [name for name in names if name in _DOUBTFUL]
        else:
            found.unknown.update({(run, name): "no server was recorded" for name in names})
    if asked:
        _judge(given, rows.where(fn.col("run").isin(*asked)), asked, found)
    return found


def _judge(given: Given, rows: DataFrame, asked: Wanted, found: Findings) -> None:
    in_doubt = {name: doubtful(rows) for name, doubtful in _DOUBTFUL.items()}
    marked = [part.withColumn(_OF, fn.lit(name)) for name, part in {_ALL: _outline(rows), **in_doubt}.items()]
    kept = given.run_index.keep(reduce(DataFrame.union, marked))
    sizes = {(row["run"], row[_OF]): row["count"] for row in kept.groupBy("run", _OF).count().collect()}
    few = {case for case, size in sizes.items() if size + sizes.get((case[0], _ALL), 0) <= MOST_ROWS}
    names = [f"{run} {of}" for run, of in few]
    table = kept.where(fn.concat_ws(" ", "run", _OF).isin(*names)).toArrow()
    for run in asked:
        mine = table.filter(pc.equal(table["run"], run))
        for name in asked[run]:
            if {(run, name), (run, _ALL)} & sizes.keys() - few:
                found.unknown[run, name] = "too many rows are in doubt"
            else:
                about = mine.filter(pc.is_in(mine[_OF], pa.array([_ALL, name]))).drop_columns([_OF])
                found.verdicts.append((run, check(history_of(given.run_index, run, about), [name])[0]))


def _is(*kinds: str) -> Column:
    return fn.col("kind").isin(*kinds)


def _outline(rows: DataFrame) -> DataFrame:
    """The rows about lives and primaries, and how far the disk and the strict answers of each life came."""
    strict = _is(REPLY.value) & (fn.col("level") == "strict")
    durable = _is(DURABLE.value)
    furthest = [
        fn.max_by("index", fn.when(durable, fn.col("order"))).alias("line"),
        fn.max_by("index", fn.when(durable, fn.col("view"))).alias("primary"),
        fn.max_by("index", fn.when(strict, fn.col("order"))).alias("answer"),
    ]
    tops = rows.where(strict | durable).groupBy(*_LIFE).agg(*furthest)
    places = tops.select(*_LIFE, fn.explode(fn.array("line", "primary", "answer")).alias("index"))
    few = rows.where(strict | durable).join(fn.broadcast(places.distinct()), _ROW, "left_semi")
    return rows.where(_is(*_OUTLINE)).union(few.select(*rows.columns))


def _nothing(rows: DataFrame) -> DataFrame:
    """The outline is enough."""
    return rows.limit(0)


def _green_outside(rows: DataFrame) -> DataFrame:
    """Phases, and greens where actions do not turn green as they come."""
    known = rows.where(_is(PHASE.value, COLOUR.value))
    phase = fn.when(_is(PHASE.value), fn.coalesce("level", fn.lit("")))
    before = Window.partitionBy(*_LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, 0)
    marked = known.withColumn("phase", fn.last(phase, ignorenulls=True).over(before))
    elsewhere = ~fn.coalesce("phase", fn.lit("")).isin(*ORDERS)
    green = (fn.col("level") == GREEN) & elsewhere
    return marked.where(_is(PHASE.value) | green).select(*rows.columns)


def _several_hashes(rows: DataFrame) -> DataFrame:
    """Alarms, and what is said of positions of which there are several chain hashes."""
    durable = rows.where(_is(DURABLE.value, SNAPSHOT.value))
    told = durable.where(fn.col(_TEXT) != "").groupBy("run", "order")
    several = told.agg(fn.count_distinct(_TEXT).alias("hashes")).where("hashes > 1").select("run", "order")
    return rows.where(_is(ALARM.value)).union(
        durable.join(several, ["run", "order"], "left_semi").select(*rows.columns)
    )


def _sent_again(rows: DataFrame) -> DataFrame:
    """What is sent in an exchange by a creator of whom something is sent twice there."""
    again = rows.where(_is(AGAIN.value)).withColumn("place", fn.coalesce(_TEXT, fn.lit("")))
    keys = ["place", *_CREATOR]
    spans = again.select(*keys, *_span("seq"), fn.lit(1).alias("times"))
    twice = overlay(chunked(spans), [*keys, "chunk"], [], ["times"]).where("times > 1").select(*keys)
    return again.join(twice.distinct(), keys, "left_semi").select(*rows.columns)


def _several_actions(rows: DataFrame) -> DataFrame:
    """Greens at positions at which there are several actions."""
    return _at_one_position(rows, rows.where(_is(COLOUR.value) & (fn.col("level") == GREEN)))


def _answered_otherwise(rows: DataFrame) -> DataFrame:
    """Greens and strict answers at positions at which there are several actions, and who asked for them."""
    green = _is(COLOUR.value) & (fn.col("level") == GREEN)
    strict = _is(REPLY.value) & (fn.col("level") == "strict")
    placed = _at_one_position(rows, rows.where(green | strict))
    requests = rows.where(_is(REQUEST.value)).select("*", *_span("seq"))
    asked = _meeting(requests, placed.select(*_CREATOR, *_span("seq")))
    return placed.union(asked.select(*rows.columns))


def _at_one_position(rows: DataFrame, placed: DataFrame) -> DataFrame:
    """Rows about actions at positions that others give to other actions."""
    action = fn.struct(*_CREATOR[1:], (fn.col("seq") - fn.col("order")).alias("shift"))
    spans = placed.select("run", action.alias("action"), *_span("order"), fn.lit(1).alias("there"))
    each = overlay(chunked(spans), ["run", "action", "chunk"], ["there"])
    depth = each.select("run", "chunk", "first", "last", fn.lit(1).alias("actions"))
    several = overlay(depth, ["run", "chunk"], [], ["actions"]).where("actions > 1")
    wrong = chunked(several.select("run", "first", "last"), chunk=_BIN).alias("w")
    cut = chunked(placed.select(*_ROW, *_span("order")), chunk=_BIN).alias("p")
    same = (fn.col("w.run") == fn.col("p.run")) & (fn.col("w.chunk") == fn.col("p.chunk"))
    meet = (fn.col("w.first") <= fn.col("p.last")) & (fn.col("p.first") <= fn.col("w.last"))
    chosen = cut.join(wrong, same & meet, "left_semi").select(*_ROW).distinct()
    return placed.join(chosen, _ROW, "left_semi").select(*rows.columns)


def _span(column: str) -> list[Column]:
    return [fn.col(column).alias("first"), (fn.col(column) + fn.col("count") - 1).alias("last")]


def _weak_otherwise(rows: DataFrame) -> DataFrame:
    """Weak reads that show something else than the disk had, each with what the disk had."""
    known = rows.where(_is(STORE.value, DURABLE.value) | (_is(REPLY.value) & (fn.col("level") == "weak")))
    before = Window.partitionBy(*_LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    line = fn.when(~_is(REPLY.value), fn.struct(fn.coalesce("order", fn.lit(0)).alias("order"), "index"))
    marked = known.withColumn("line", fn.last(line, ignorenulls=True).over(before))
    text = fn.coalesce(_TEXT, fn.lit(""))
    wrong = marked.where(_is(REPLY.value) & ((fn.col("order") != fn.col("line.order")) | (text != "")))
    lines = wrong.select(*_LIFE, fn.col("line.index").alias("index")).distinct()
    return wrong.select(*rows.columns).union(rows.join(lines, _ROW, "left_semi").select(*rows.columns))


def _white_too_early(rows: DataFrame) -> DataFrame:
    """What is white and not on the disk of a server by then, or not when it starts again."""
    server = fn.get("members", fn.lit(0))
    stores = rows.where(_is(STORE.value)).select(*_LIFE, server.alias("server"))
    line = fn.coalesce("order", fn.lit(0)).alias("line")
    nothing = fn.lit(None)
    began = rows.where(_is(STORE.value)).select(
        fn.col("run").alias("of"), server.alias("server"), "at_ns", line, line.alias("recovered"), *_no_row()
    )
    told = rows.where(_is(DURABLE.value)).join(fn.broadcast(stores), _LIFE)
    told = told.select("run", "server", "at_ns", line, nothing.cast("long"), *_no_row())
    white = rows.where(_is(WHITE.value)).select(
        fn.col("run").alias("of"),
        fn.explode("members").alias("server"),
        "at_ns",
        line,
        nothing.cast("long"),
        *_ROW,
    )
    together = began.union(told).union(white)
    is_white = fn.col("index").isNotNull()
    upto = Window.partitionBy("of", "server").orderBy("at_ns", is_white)
    had = fn.max(fn.when(~is_white, fn.col("line"))).over(upto.rowsBetween(Window.unboundedPreceding, 0))
    back = Window.partitionBy("of", "server").orderBy(fn.desc("at_ns"), fn.desc(is_white))
    later = fn.min("recovered").over(back.rowsBetween(Window.unboundedPreceding, 0))
    seen = together.select("*", had.alias("had"), later.alias("later")).where(is_white)
    wrong = seen.where("had is null or had < line or later < line").select(*_ROW).distinct()
    return rows.join(wrong, _ROW, "left_semi").select(*rows.columns)


def _no_row() -> list[Column]:
    kinds = ("string", "string", "long", "long")
    return [fn.lit(None).cast(kind).alias(name) for name, kind in zip(_ROW, kinds, strict=True)]


def _last_states(rows: DataFrame) -> DataFrame:
    """How far servers came, and the last state of each part of their services."""
    told = rows.where(_is(Kind.APPLY.value))
    last = told.groupBy(*_LIFE, *_CREATOR[1:]).agg(fn.max("index").alias("index")).select(*_ROW)
    return _furthest(rows).union(told.join(last, _ROW, "left_semi").select(*rows.columns))


def _without_place(rows: DataFrame) -> DataFrame:
    """How far servers came and in which phase, and requests that are not known to have a place."""
    phases = rows.where(_is(PHASE.value))
    last = phases.groupBy(*_LIFE).agg(fn.max("index").alias("index")).select(*_ROW)
    green = rows.where(_is(COLOUR.value) & (fn.col("level") == GREEN)).select("*", *_span("seq"))
    requests = rows.where(_is(REQUEST.value)).select("*", *_span("seq"))
    # What is green where nobody crashed has a place for ever.
    crashed = rows.where(_is(Kind.CRASH.value)).select(*_LIFE).distinct()
    placed = green.join(fn.broadcast(crashed), _LIFE, "left_anti")
    layers = [
        part.select(
            *_CREATOR, "first", "last", fn.lit(asked).alias("asked"), fn.lit(1 - asked).alias("placed")
        )
        for part, asked in ((requests, 1), (placed, 0))
    ]
    laid = overlay(chunked(layers[0].union(layers[1])), [*_CREATOR, "chunk"], ["asked", "placed"])
    owed = laid.where("asked and not placed").select(*_CREATOR, "first", "last")
    asked_for = _meeting(requests, owed)
    whole = asked_for.select(*_CREATOR, *_span("seq"))
    few = asked_for.select(*rows.columns).union(_meeting(green, whole).select(*rows.columns))
    return phases.join(last, _ROW, "left_semi").select(*rows.columns).union(_furthest(rows)).union(few)


def _furthest(rows: DataFrame) -> DataFrame:
    """Of each life the row with its last green, and its last snapshot."""
    is_green = _is(COLOUR.value) & (fn.col("level") == GREEN)
    line = fn.col("order") + fn.when(is_green, fn.col("count") - 1).otherwise(0)
    steps = rows.where(is_green | _is(SNAPSHOT.value))
    tops = steps.groupBy(*_LIFE, "kind").agg(fn.max_by("index", line).alias("index")).select(*_ROW)
    return steps.join(tops, _ROW, "left_semi").select(*rows.columns)


def _meeting(rows: DataFrame, spans: DataFrame) -> DataFrame:
    """Of rows with (first, last) those that share an action with spans of the same creator."""
    wanted = chunked(spans.select(*_CREATOR, "first", "last"), chunk=_BIN).alias("w")
    cut = chunked(rows.select(*_ROW, *_CREATOR[1:], "first", "last"), chunk=_BIN).alias("q")
    same = [fn.col(f"w.{name}") == fn.col(f"q.{name}") for name in (*_CREATOR, "chunk")]
    meet = (fn.col("w.first") <= fn.col("q.last")) & (fn.col("q.first") <= fn.col("w.last"))
    found = cut.join(wanted, reduce(Column.__and__, same) & meet, "left_semi").select(*_ROW).distinct()
    return rows.join(found, _ROW, "left_semi")


_DOUBTFUL: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "repl_total_order": _several_actions,
    "repl_one_primary": _nothing,
    "repl_green_in_primary": _green_outside,
    "repl_knowledge": _several_hashes,
    "repl_white": _white_too_early,
    "repl_answered": _answered_otherwise,
    "repl_weak": _weak_otherwise,
    "repl_exchange_once": _sent_again,
    "repl_join": _nothing,
    "repl_leave": _nothing,
    "repl_liveness": _without_place,
    "repl_state": _last_states,
}
"""By property, the rows that may break it."""
