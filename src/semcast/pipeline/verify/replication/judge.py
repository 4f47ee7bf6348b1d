"""Servers that replicate a service (`semcast.specs.replication`), in runs that memory does not hold.

Of every property here, most rows are at rest: one look at positions or at what came before tells that they
break nothing. The checkers in memory are asked about the others, together with the outline of the run: who
started with which disk, which primaries were installed, who crashed, and how far disks and answers came.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.core import MemberId
from semcast.history.schema import GONE, Kind
from semcast.pipeline.frames import united
from semcast.pipeline.verify.excerpts import MOST_ROWS, history_of
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.pipeline.verify.replication.answers import (
    answered_and_lost,
    answered_before,
    dirty_otherwise,
    made_too_early,
    session_behind,
    weak_otherwise,
)
from semcast.pipeline.verify.replication.order import FAULT, SUSPICIOUS, at_positions, contested
from semcast.pipeline.verify.replication.rows import (
    CREATOR,
    LIFE,
    ROW,
    TEXT,
    actions,
    furthest_answers,
    green,
    is_kind,
    meeting,
    operators,
    span,
    strict,
    these,
    without_operator,
)
from semcast.specs import Verdict, check
from semcast.specs.replication.kinds import (
    AGAIN,
    ALARM,
    COLOUR,
    DURABLE,
    GREEN,
    GROUP,
    INSTALL,
    PHASE,
    PUT_BACK,
    REQUEST,
    SNAPSHOT,
    STORE,
    WHITE,
)
from semcast.specs.replication.ledger import ledger_of
from semcast.specs.replication.order import FAULTS, order_verdict
from semcast.specs.replication.primaries import ORDERS

_OF = "of_property"
_ALL = "all of them"
_OUTLINE = (STORE, INSTALL, GROUP, PUT_BACK, *GONE)


def judge_replication(given: Given, wanted: Wanted) -> Findings:
    """The rows in doubt of all runs and properties, then run by run what the checkers say of them."""
    found = Findings()
    stores = given.rows.where(is_kind(STORE)).select("run").distinct()
    with_servers = {row["run"] for row in stores.collect()}
    asked: dict[str, list[str]] = {}
    for run, names in wanted.items():
        if run in with_servers:
            asked[run] = [name for name in names if name in _DOUBTFUL or name in SUSPICIOUS]
        else:
            found.unknown.update({(run, name): "no server was recorded" for name in names})
    if asked:
        _judge(given, asked, found)
    return found


def _judge(given: Given, asked: Wanted, found: Findings) -> None:
    """Rows of runs that nobody asked about stay out at the end: a list of names would be in every plan."""
    rows = given.rows
    parts = {_ALL: _unsuspected(_outline(rows))}
    for name in dict.fromkeys(name for names in asked.values() for name in names):
        suspicious = SUSPICIOUS.get(name)
        parts[name] = suspicious(rows) if suspicious else _unsuspected(_DOUBTFUL[name](rows))
    marked = [part.withColumn(_OF, fn.lit(name)) for name, part in parts.items()]
    kept = given.run_index.keep(united(marked))
    sizes = {(row["run"], row[_OF]): row["count"] for row in kept.groupBy("run", _OF).count().collect()}
    few = {case for case, size in sizes.items() if size + sizes.get((case[0], _ALL), 0) <= MOST_ROWS}
    names = [f"{run} {of}" for run, of in few if run in asked]
    table = kept.where(fn.concat_ws(" ", "run", _OF).isin(*names)).toArrow()
    for run in asked:
        mine = table.filter(pc.equal(table["run"], run))
        for name in asked[run]:
            if {(run, name), (run, _ALL)} & sizes.keys() - few:
                found.unknown[run, name] = "too many rows are in doubt"
            else:
                about = mine.filter(pc.is_in(mine[_OF], pa.array([_ALL, name])))
                found.verdicts.append((run, _verdict(given, run, name, about)))


def _unsuspected(rows: DataFrame) -> DataFrame:
    return rows.withColumn(FAULT, fn.lit(None).cast("string"))


def _verdict(given: Given, run: str, name: str, about: pa.Table) -> Verdict:
    """What the checker says of some rows; of one fault after the other, if only suspects may be at fault."""
    history = history_of(given.run_index, run, about.drop_columns([_OF, FAULT]))
    if name not in SUSPICIOUS:
        return check(history, [name])[0]
    columns = about.select([*ROW[1:], FAULT]).to_pylist()
    suspects = {(row[FAULT], MemberId(row["process"], row["incarnation"]), row["index"]) for row in columns}
    faults = FAULTS[name](ledger_of(history))
    return order_verdict(
        name, (each for each in faults if (each.kind, each.event.process, each.event.index) in suspects)
    )


def _outline(rows: DataFrame) -> DataFrame:
    """The rows about lives and primaries, and how far the disk and the strict answers of each life came."""
    disks = rows.where(is_kind(DURABLE))
    furthest = [fn.max_by("index", column).alias(column) for column in ("order", "view")]
    tops = disks.groupBy(*LIFE).agg(*furthest)
    places = tops.select(*LIFE, fn.explode(fn.array("order", "view")).alias("index"))
    few = these(rows, places.union(furthest_answers(rows)))
    return rows.where(is_kind(*_OUTLINE)).union(few)


def _nothing(rows: DataFrame) -> DataFrame:
    """The outline is enough."""
    return rows.limit(0)


def _green_outside(rows: DataFrame) -> DataFrame:
    """Phases, and greens where actions do not turn green as they come."""
    known = rows.where(is_kind(PHASE, COLOUR))
    phase = fn.when(is_kind(PHASE), fn.coalesce("level", fn.lit("")))
    before = Window.partitionBy(*LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, 0)
    marked = known.withColumn("phase", fn.last(phase, ignorenulls=True).over(before))
    elsewhere = ~fn.coalesce("phase", fn.lit("")).isin(*ORDERS)
    green = (fn.col("level") == GREEN) & elsewhere
    return marked.where(is_kind(PHASE) | green).select(*rows.columns)


def _several_hashes(rows: DataFrame) -> DataFrame:
    """Alarms, and what is said of positions of which there are several chain hashes."""
    durable = rows.where(is_kind(DURABLE, SNAPSHOT))
    told = durable.where(fn.col(TEXT) != "").groupBy("run", "order")
    several = told.agg(fn.count_distinct(TEXT).alias("hashes")).where("hashes > 1").select("run", "order")
    return rows.where(is_kind(ALARM)).union(
        durable.join(several, ["run", "order"], "left_semi").select(*rows.columns)
    )


def _sent_again(rows: DataFrame) -> DataFrame:
    """What is sent in an exchange by a creator of whom something is sent twice there."""
    again = rows.where(is_kind(AGAIN)).withColumn("place", fn.coalesce(TEXT, fn.lit("")))
    keys = ["place", *CREATOR]
    spans = again.select(*keys, *span("seq"), fn.lit(1).alias("times"))
    twice = overlay(chunked(spans), [*keys, "chunk"], [], ["times"]).where("times > 1").select(*keys)
    return again.join(twice.distinct(), keys, "left_semi").select(*rows.columns)


def _several_actions(rows: DataFrame) -> DataFrame:
    """Greens at positions at which there are several actions."""
    greens = rows.where(green())
    return at_positions(greens, contested(greens))


def _answered_otherwise(rows: DataFrame) -> DataFrame:
    """Greens and strict answers at positions at which there are several actions, and who asked for them."""
    told = rows.where(green() | strict())
    placed = at_positions(told, contested(told))
    return placed.union(meeting(rows.where(is_kind(REQUEST)), actions(placed)))


def _white_too_early(rows: DataFrame) -> DataFrame:
    """What is white and not on the disk of a server by then, or not when it starts again.

    With what the disks of all its servers had said by then: one that was put back has less than it had.
    """
    server = fn.get("members", fn.lit(0))
    stores = rows.where(is_kind(STORE)).select(*LIFE, server.alias("server"))
    line = fn.coalesce("order", fn.lit(0)).alias("line")
    place, nowhere = fn.struct(*ROW), fn.lit(None).cast(_PLACE)
    never = fn.lit(None).cast("long")
    began = rows.where(is_kind(STORE)).select(
        "run", server.alias("server"), "at_ns", line, line.alias("recovered"), nowhere.alias("told"), nowhere
    )
    told = rows.where(is_kind(DURABLE)).join(fn.broadcast(stores), LIFE)
    told = told.select("run", "server", "at_ns", line, never, place, nowhere)
    white = rows.where(is_kind(WHITE)).select(
        "run", fn.explode("members").alias("server"), "at_ns", line, never, nowhere, place.alias("white")
    )
    together = white.union(told).union(began).toDF(*_DISK)
    is_white = fn.col("white").isNotNull()
    known = fn.when(~is_white, fn.col("line"))
    upto = Window.partitionBy("run", "server").orderBy("at_ns", is_white)
    upto = upto.rowsBetween(Window.unboundedPreceding, 0)
    back = Window.partitionBy("run", "server").orderBy(fn.desc("at_ns"), fn.desc(is_white))
    later = fn.min("recovered").over(back.rowsBetween(Window.unboundedPreceding, 0))
    seen = together.select(
        "*",
        fn.max(known).over(upto).alias("had"),
        fn.max_by("told", known).over(upto).alias("by"),
        later.alias("later"),
    )
    seen = seen.where(is_white)
    wrong = seen.where("had is null or had < line or later < line").select("white").distinct()
    of_all = seen.join(wrong, "white", "left_semi")  # the checker asks about every server of the row
    return these(rows, of_all.select(fn.explode(fn.array("white", "by")).alias("row")).select("row.*"))


_DISK = ("run", "server", "at_ns", "line", "recovered", "told", "white")
"""Of a server's disk: what it had when, as it said or as it was read; and what is white somewhere."""
_PLACE = "struct<run:string, process:string, incarnation:bigint, index:bigint>"


def _last_states(rows: DataFrame) -> DataFrame:
    """How far servers came, and the last state of each part of their services."""
    told = rows.where(is_kind(Kind.APPLY))
    last = told.groupBy(*LIFE, *CREATOR[1:]).agg(fn.max("index").alias("index")).select(*ROW)
    return _furthest(rows).union(told.join(last, ROW, "left_semi").select(*rows.columns))


def _without_place(rows: DataFrame) -> DataFrame:
    """How far servers came and in which phase, and requests that are not known to have a place."""
    phases = rows.where(is_kind(PHASE))
    last = phases.groupBy(*LIFE).agg(fn.max("index").alias("index")).select(*ROW)
    greens, requests = rows.where(green()), rows.where(is_kind(REQUEST))
    # What is green where nobody crashed has a place for ever.
    crashed = rows.where(is_kind(Kind.CRASH)).select(*LIFE).distinct()
    placed = without_operator(rows, greens.join(fn.broadcast(crashed), LIFE, "left_anti"))
    layers = [
        part.select(*CREATOR, *span("seq"), fn.lit(asked).alias("asked"), fn.lit(1 - asked).alias("placed"))
        for part, asked in ((requests, 1), (placed, 0))
    ]
    laid = overlay(chunked(layers[0].union(layers[1])), [*CREATOR, "chunk"], ["asked", "placed"])
    owed = laid.where("asked and not placed").select(*CREATOR, "first", "last")
    asked_for = meeting(requests, owed)
    few = asked_for.union(meeting(greens, actions(asked_for)))
    return phases.join(last, ROW, "left_semi").select(*rows.columns).union(_furthest(rows)).union(few)


def _asked_for_since(rows: DataFrame) -> DataFrame:
    """Where an operator gave up servers: what was asked for since, and where it is green."""
    since = operators(rows).groupBy("run").agg(fn.min("at_ns").alias("since"))
    requests = rows.where(is_kind(REQUEST)).join(fn.broadcast(since), "run").where("at_ns > since")
    asked = requests.select(*rows.columns)
    return asked.union(meeting(rows.where(green()), actions(asked)))


def _furthest(rows: DataFrame) -> DataFrame:
    """Of each life the row with its last green, and its last snapshot."""
    line = fn.col("order") + fn.when(green(), fn.col("count") - 1).otherwise(0)
    steps = rows.where(green() | is_kind(SNAPSHOT))
    tops = steps.groupBy(*LIFE, "kind").agg(fn.max_by("index", line).alias("index")).select(*ROW)
    return steps.join(tops, ROW, "left_semi").select(*rows.columns)


_DOUBTFUL: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "repl_total_order": _several_actions,
    "repl_one_primary": _nothing,
    "repl_green_in_primary": _green_outside,
    "repl_knowledge": _several_hashes,
    "repl_white": _white_too_early,
    "repl_answered": _answered_otherwise,
    "repl_weak": weak_otherwise,
    "repl_dirty": dirty_otherwise,
    "repl_session": session_behind,
    "repl_queued": answered_and_lost,
    "repl_linear": answered_before,
    "repl_causal": made_too_early,
    "repl_lineage": _asked_for_since,
    "repl_memory": _nothing,
    "repl_exchange_once": _sent_again,
    "repl_join": _nothing,
    "repl_leave": _nothing,
    "repl_liveness": _without_place,
    "repl_state": _last_states,
}
"""By property, the rows that may break it."""
