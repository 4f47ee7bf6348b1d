"""Processes and senders as numbers."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.folds import (
    INDEX,
    STEPS,
)
from semcast.pipeline.verify.stays import Who


def people_table(spark: SparkSession, people: Sequence[Who]) -> DataFrame:
    """Processes and senders with their numbers: (run, member, who)."""
    rows = [(run, (who.name, who.incarnation), number) for number, (run, who) in enumerate(people)]
    return small_frame(spark, {"run": TEXT, "member": MEMBER, "who": WHOLE}, rows)


def steps(moves: DataFrame) -> DataFrame:
    """Of each piece the index of its first delivery, if any, and its latest time: (piece, first, at)."""
    return (
        moves.where(fn.col("what") == STEPS)
        .groupBy("piece")
        .agg(fn.min("first").alias("first"), fn.max("last").alias("at"))
        .select("piece", fn.when(fn.col("first") < INDEX, fn.col("first")).alias("first"), "at")
    )


def with_number(rows: DataFrame, people: DataFrame, column: str) -> DataFrame:
    """With `who`, the number of the member in a column."""
    return _joined(rows, people.select(_key("member"), "who"), column)


def with_author(rows: DataFrame, people: DataFrame) -> DataFrame:
    """With `author`, the number of the sender."""
    return _joined(rows, people.select(_key("member"), fn.col("who").alias("author")), "sender")


def _joined(rows: DataFrame, numbers: DataFrame, column: str) -> DataFrame:
    """By a hash of run and member: Spark finds a number far sooner than names."""
    return rows.join(fn.broadcast(numbers), _key(column) == fn.col("key")).drop("key")


def _key(member: str) -> Column:
    return fn.xxhash64("run", member).alias("key")
