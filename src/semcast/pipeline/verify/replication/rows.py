"""Rows of servers that replicate, as all forms about them take them: kinds, spans of actions, places."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.verify.obligations import chunked
from semcast.specs.replication.kinds import COLOUR, GREEN, INSTALL, REPLY, WHOLE

LIFE = ["run", "process", "incarnation"]
ROW = [*LIFE, "index"]
CREATOR = ["run", "sender", "sender_incarnation"]
TEXT = "annotation.item"
BIN = 64


def is_kind(*kinds: Kind) -> Column:
    """Whether a row is of one of these kinds."""
    return fn.col("kind").isin(*(kind.value for kind in kinds))


def strict() -> Column:
    """Whether a row answers an action that has its place."""
    return is_kind(REPLY) & (fn.col("level") == "strict")


def green() -> Column:
    """Whether a row gives actions their places."""
    return is_kind(COLOUR) & (fn.col("level") == GREEN)


def span(column: str) -> list[Column]:
    """The numbers of a row, from those in this column on."""
    return [fn.col(column).alias("first"), (fn.col(column) + fn.col("count") - 1).alias("last")]


def meeting(rows: DataFrame, spans: DataFrame, *same: str) -> DataFrame:
    """Of rows those that share an action with spans (run, sender, ..., first, last) of the same creator.

    With `same`, only with spans that have the same values there, too.
    """
    keys = [*CREATOR, *same]
    wanted = chunked(spans.select(*keys, "first", "last"), chunk=BIN).alias("w")
    own = list(dict.fromkeys([*ROW, *keys]))
    cut = chunked(rows.select(*own, *span("seq")), chunk=BIN).alias("q")
    alike = [fn.col(f"w.{name}") == fn.col(f"q.{name}") for name in (*keys, "chunk")]
    meet = (fn.col("w.first") <= fn.col("q.last")) & (fn.col("q.first") <= fn.col("w.last"))
    found = cut.join(wanted, reduce(Column.__and__, alike) & meet, "left_semi").select(*ROW).distinct()
    return rows.join(found, ROW, "left_semi").select(*rows.columns)


def actions(rows: DataFrame) -> DataFrame:
    """What rows are about: (run, sender, sender_incarnation, first, last)."""
    return rows.select(*CREATOR, *span("seq"))


def these(rows: DataFrame, chosen: DataFrame) -> DataFrame:
    """The rows at some places (run, process, incarnation, index)."""
    return rows.join(chosen.select(*ROW).distinct(), ROW, "left_semi").select(*rows.columns)


def operators(rows: DataFrame) -> DataFrame:
    """The installations by which an operator gave up servers, and with them what they alone had."""
    return rows.where(is_kind(INSTALL) & (fn.col(TEXT) == WHOLE))


def without_operator(rows: DataFrame, some: DataFrame) -> DataFrame:
    """Rows of runs without such an installation: in the others nothing stands for ever by itself."""
    runs = fn.broadcast(operators(rows).select("run").distinct())
    return some.join(runs, "run", "left_anti").select(*some.columns)


def furthest_answers(rows: DataFrame) -> DataFrame:
    """Of each life its strict answer at the highest position: (run, process, incarnation, index)."""
    tops = rows.where(strict()).groupBy(*LIFE).agg(fn.max_by("index", "order").alias("index"))
    return tops.select(*ROW)
