"""A few violations of each property, one message each, with the events that show them."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import Kind

_CASE = ["run", "property", "process", "sender", "seq", "index", "reason"]


def sample(violations: DataFrame, most: int) -> DataFrame:
    """The first cases of each run and property: at most `most` of them."""
    first = Window.partitionBy("run", "property").orderBy("process", "sender", "index", "first")
    single = Window.partitionBy("run", "property").orderBy("process", "sender", "index", "seq")
    end = fn.least(fn.col("last"), fn.col("first") + most - 1)
    return (
        violations.withColumn("place", fn.row_number().over(first))
        .where(fn.col("place") <= most)
        .withColumn("seq", fn.explode(fn.sequence("first", end)))
        .withColumn("place", fn.row_number().over(single))
        .where(fn.col("place") <= most)
        .select(*_CASE, "place")
    )


def with_events(sample: DataFrame, events: DataFrame) -> DataFrame:
    """Each case with its event: (*case, event), null where there is none.

    A case without an event of its own gets the multicast of its message, or else a delivery; one about
    integrity gets the last delivery at its process.
    """
    told = events.select("run", "process", "index", "at_ns", "kind", "sender", "seq", "last").alias("e")
    at_fault = told.join(
        fn.broadcast(sample.where("index is not null").alias("c")), _same("run", "process", "index")
    )
    here = (fn.col("c.property") != "integrity") | (
        (fn.col("e.process") == fn.col("c.process")) & (fn.col("e.kind") == Kind.DELIVER.value)
    )
    about = told.where(fn.col("kind").isin(Kind.MULTICAST.value, Kind.DELIVER.value)).join(
        fn.broadcast(sample.where("index is null").alias("c")),
        _same("run", "sender") & fn.col("c.seq").between(fn.col("e.seq"), fn.col("e.last")) & here,
    )
    later = fn.when(fn.col("c.property") == "integrity", -fn.col("e.index")).otherwise(fn.col("e.index"))
    columns = (
        "c.run",
        "c.property",
        "c.place",
        fn.struct("e.process", "e.index", "e.at_ns", "e.kind").alias("event"),
        fn.struct(fn.col("e.kind") != Kind.MULTICAST.value, fn.col("e.process"), later).alias("rank"),
    )
    found = (
        at_fault.select(*columns)
        .union(about.select(*columns))
        .groupBy("run", "property", "place")
        .agg(fn.min_by("event", "rank").alias("event"))
    )
    return (
        sample.join(fn.broadcast(found), ["run", "property", "place"], "left")
        .orderBy("run", "property", "place")
        .select(*_CASE, "event")
    )


def _same(*names: str) -> Column:
    """Whether an event and a case have the same values there."""
    return reduce(Column.__and__, [fn.col(f"e.{name}") == fn.col(f"c.{name}") for name in names])
