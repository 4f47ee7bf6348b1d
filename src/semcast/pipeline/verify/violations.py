"""What breaks a property, as rows: the same columns for every property.

A row stands for the messages `first` to `last` of `sender` at `process`, each broken `times` over; where no
message is meant both are 0. `index` is the event of `process` that is at fault, null where one is missing.
"""

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.specs import Verdict

_TYPES = {
    "run": TEXT,
    "property": TEXT,
    "process": MEMBER,
    "sender": MEMBER,
    "first": WHOLE,
    "last": WHOLE,
    "times": WHOLE,
    "index": WHOLE,
    "reason": TEXT,
}
COLUMNS = tuple(_TYPES)
OUTPUT = pa.schema(
    [
        ("run", TEXT),
        ("property", TEXT),
        ("process", TEXT),
        ("incarnation", WHOLE),
        ("index", WHOLE),
        ("sender", TEXT),
        ("sender_incarnation", WHOLE),
        ("seq", WHOLE),
        ("count", WHOLE),
        ("times", WHOLE),
        ("reason", TEXT),
    ]
)
"""Violations as they are written: in the column names of histories."""


NOBODY = ("-", 0)
"""The process of a violation that no event shows: something is missing, and the reason says what."""

Violation = tuple[str, str, tuple[str, int], tuple[str, int] | None, int, int, int, int | None, str]
"""One that the driver knows of, in the order of the columns."""


def known_violations(spark: SparkSession, rows: Iterable[Violation] = ()) -> DataFrame:
    """Violations that the driver knows of, in the order of the columns."""
    return small_frame(spark, _TYPES, rows)


def output(found: DataFrame) -> DataFrame:
    """Violations with the columns of OUTPUT."""
    return found.select(
        "run",
        "property",
        fn.col("process.name").alias("process"),
        fn.col("process.incarnation").alias("incarnation"),
        "index",
        fn.col("sender.name").alias("sender"),
        fn.col("sender.incarnation").alias("sender_incarnation"),
        fn.col("first").alias("seq"),
        (fn.col("last") - fn.col("first") + 1).alias("count"),
        "times",
        "reason",
    )


def output_row(violation: Violation) -> dict[str, object]:
    """The same of one that the driver knows of."""
    run, name, process, sender, first, last, times, index, reason = violation
    who, sent_by = process, sender or (None, None)
    count = last - first + 1
    values = (run, name, *who, index, *sent_by, first, count, times, reason)
    return dict(zip(OUTPUT.names, values, strict=True))


def told_by(run: str, verdict: Verdict) -> Violation:
    """The cases of a checker in memory as one violation: the first of them, as often as there are cases."""
    reason = verdict.detail.partition("; ")[0]
    if not verdict.offending:
        return run, verdict.property, NOBODY, None, 0, 0, verdict.count, None, reason
    event = verdict.offending[0]
    process = event.process.name, event.process.incarnation
    return run, verdict.property, process, None, 0, 0, verdict.count, event.index, reason


def violations(
    found: DataFrame,
    name: str | Column,
    reason: str | Column,
    *,
    times: Column | None = None,
    index: Column | None = None,
) -> DataFrame:
    """Rows with run, process, sender, first and last as violations of one property."""
    rows = found.select("run", "process", "sender", *offence(name, reason, times, index))
    return rows.select(*COLUMNS)


def offence(
    name: str | Column, reason: str | Column, times: Column | None, index: Column | None
) -> list[Column]:
    """What is broken, by which messages, how often, where and why: of rows with first and last."""
    return [
        (fn.lit(name) if isinstance(name, str) else name).alias("property"),
        fn.col("first").cast("long").alias("first"),
        fn.col("last").cast("long").alias("last"),
        (fn.lit(1) if times is None else times).cast("long").alias("times"),
        (fn.lit(None) if index is None else index).cast("long").alias("index"),
        (fn.lit(reason) if isinstance(reason, str) else reason).alias("reason"),
    ]


def together(some: list[DataFrame]) -> DataFrame:
    """The violations of several properties."""
    return reduce(DataFrame.union, some).select(*COLUMNS)


def counts(found: DataFrame) -> DataFrame:
    """How often each property of each run is broken, counted in single messages."""
    broken = (fn.col("last") - fn.col("first") + 1) * fn.col("times")
    return (
        found.groupBy("run", "property").agg(fn.sum(broken).alias("count")).select("run", "property", "count")
    )


def name_of(member: str) -> Column:
    """A member as people read it: its name, and its incarnation if it is not the first."""
    incarnation = fn.col(f"{member}.incarnation")
    suffix = fn.when(incarnation == 0, fn.lit("")).otherwise(
        fn.concat(fn.lit("#"), incarnation.cast("string"))
    )
    return fn.concat(fn.col(f"{member}.name"), suffix)


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
