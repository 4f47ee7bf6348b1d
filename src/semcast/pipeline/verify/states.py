"""Buffers, the states of applications, and processes that act after they crashed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import GONE, Kind
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.violations import violations
from semcast.specs.crash import ACTS

STATES = ("same_state", "same_state_of_correct_senders")


def buffer_violations(events: DataFrame, limits: DataFrame) -> DataFrame:
    """High-water marks above the limit of their run; `limits` is (run, buffer_limit)."""
    held = fn.col("last") - fn.col("seq") + 1
    above = (
        of_kind(events, Kind.BUFFER).join(fn.broadcast(limits), "run").where(held > fn.col("buffer_limit"))
    )
    reason = fn.concat(fn.lit("held "), held, fn.lit(" messages, the limit is "), fn.col("buffer_limit"))
    found = above.select(
        "run",
        "process",
        "sender",
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
        "index",
        reason.alias("reason"),
    )
    return violations(found, "buffer_bound", fn.col("reason"), index=fn.col("index"))


def crash_violations(events: DataFrame) -> DataFrame:
    """What processes did after they crashed or left."""
    ends = (
        of_kind(events, *GONE).groupBy("run", "process").agg(fn.min(fn.struct("index", "kind")).alias("gone"))
    )
    late = (
        of_kind(events, *ACTS)
        .join(fn.broadcast(ends.select("run", "process", "gone")), ["run", "process"])
        .where(fn.col("index") > fn.col("gone.index"))
    )
    message = fn.col("sender").isNotNull()
    found = late.select(
        "run",
        "process",
        "sender",
        fn.when(message, fn.col("seq")).otherwise(0).alias("first"),
        fn.when(message, fn.col("last")).otherwise(0).alias("last"),
        "index",
        fn.concat(fn.lit("has a "), "kind", fn.lit(" after its "), "gone.kind").alias("reason"),
    )
    return violations(found, "nothing_after_crash", fn.col("reason"), index=fn.col("index"))


def final_states(events: DataFrame, roster: DataFrame) -> DataFrame:
    """The last state that each correct process has of each sender: (run, process, sender, digest, index)."""
    correct = roster.where("correct").select("run", "process")
    return (
        of_kind(events, Kind.APPLY)
        .where("view is null")  # others are about the beginning of a view
        .join(fn.broadcast(correct), ["run", "process"])
        .groupBy("run", "process", "sender")
        .agg(fn.max(fn.struct("index", "annotation.item")).alias("final"))
        .select("run", "process", "sender", fn.col("final.item").alias("digest"), fn.col("final.index"))
    )


def state_evidence(states: DataFrame, roster: DataFrame) -> DataFrame:
    """For which runs and properties there is any state: (run, property)."""
    return _by_property(states, roster).select("run", "property").distinct()


def state_violations(states: DataFrame, roster: DataFrame) -> DataFrame:
    """The senders of whom correct processes ended in different states."""
    differing = (
        _by_property(states, roster)
        .groupBy("run", "property", "sender")
        .agg(fn.count_distinct("digest").alias("states"), fn.min(fn.struct("process", "index")).alias("one"))
        .where("states > 1")
    )
    found = differing.select(
        "run",
        "property",
        "sender",
        "states",
        fn.col("one.process").alias("process"),
        fn.col("one.index").alias("index"),
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
    )
    reason = fn.concat(fn.col("states"), fn.lit(" different states at correct processes"))
    return violations(found, fn.col("property"), reason, index=fn.col("index"))


def _by_property(states: DataFrame, roster: DataFrame) -> DataFrame:
    everybody, correct = STATES
    authors = roster.where("correct").select("run", fn.col("process").alias("sender"))
    of_correct = states.join(fn.broadcast(authors), ["run", "sender"], "left_semi")
    columns = ("run", "process", "sender", "digest", "index")
    return (
        states.select(*columns, fn.lit(everybody).alias("property"))
        .union(of_correct.select(*columns, fn.lit(correct).alias("property")))
        .select(*columns, "property")
    )
