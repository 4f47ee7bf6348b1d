"""Batches that programs gave loggers (`semcast.specs.gossip.publishing`), a logger in one task.

What a logger published is its own stream, and where that is on its own disk: no row about another stream is
looked at, nor of another logger, but for whether a batch is anywhere at all.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.history.columns import SCHEMA
from semcast.history.schema import Kind
from semcast.pipeline.frames import TEXT, small_frame
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.gossip.outline import Outline
from semcast.pipeline.verify.memory import Task, judge_in_parts
from semcast.specs.gossip.kinds import ASKED, KEPT, LOG, OFFERED, PLACED, REFUSED, TAKEN
from semcast.specs.gossip.publishing import published_all, published_once, published_taken

ONCE, TAKEN_ALL, ALL = BY_LOGGERS = ("published_once", "published_taken", "published_all")
_REFUSED = "published_refused"
"""The part of `published_taken` that is about what a publisher was told, and not about logs."""
_TASKS = {
    ONCE: Task(ONCE, published_once),
    TAKEN_ALL: Task(TAKEN_ALL, published_taken),
    _REFUSED: Task(TAKEN_ALL, published_taken),
    ALL: Task(ALL, published_all),
}


def judge_batches(given: Given, known: Mapping[str, Outline], runs: Mapping[str, Sequence[str]]) -> Findings:
    """What is judged so, of these runs by property."""
    asked = [name for name in BY_LOGGERS if name in runs]
    if not asked:
        return Findings()
    parts = [part for name in asked for part in _parts(given, known, name, runs[name])]
    histories = {run: outline.history for run, outline in known.items()}
    beside = {
        (run, task): histories[run].events
        for task, each in _TASKS.items()
        for run in runs.get(each.property, ())
    }
    return judge_in_parts(given, reduce(DataFrame.union, parts), _TASKS, histories, beside)


def _parts(given: Given, known: Mapping[str, Outline], name: str, runs: Sequence[str]) -> list[DataFrame]:
    """Rows with the task that they are for, and the logger or publisher whose part they belong to."""
    names = {(run, log.logger) for run in runs for log in known[run].ledger.logs}
    table = small_frame(given.run_index.spark, {"run": TEXT, "logger": TEXT}, sorted(names))
    loggers = fn.broadcast(table)
    rows = given.rows.where(fn.col("run").isin(*runs))
    own = _of_kinds(rows, Kind.MULTICAST, LOG, KEPT, PLACED).where(fn.col("sender") == fn.col("process"))
    of_loggers = own.join(loggers, "run").where(fn.col("process") == fn.col("logger"))
    offered = _of_kinds(rows, OFFERED)
    if name == ALL:
        return [_for(each, ALL, fn.lit("")) for each in (of_loggers, offered)]
    logger = fn.col("logger")
    found = [_for(each, name, logger) for each in (of_loggers, offered.join(loggers, "run"))]
    if name == TAKEN_ALL:
        publisher = fn.concat_ws("#", "process", "incarnation")
        found.append(_for(_of_kinds(rows, TAKEN), name, fn.col("sender")))
        found.append(_for(_of_kinds(rows, OFFERED, ASKED, REFUSED), _REFUSED, publisher))
    return found


def _of_kinds(rows: DataFrame, *kinds: Kind) -> DataFrame:
    return rows.where(fn.col("kind").isin(*(kind.value for kind in kinds)))


def _for(rows: DataFrame, task: str, part: Column) -> DataFrame:
    return rows.select(*SCHEMA.names, fn.lit(task).alias("task"), part.alias("part"))
