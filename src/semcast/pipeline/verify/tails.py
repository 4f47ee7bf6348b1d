"""Recordings that are cut off: what their senders may have sent after that is held against nobody."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.history import Kind, RunInfo
from semcast.pipeline.frames import MEMBER, TEXT, small_frame
from semcast.pipeline.verify.events import of_kind


def cut_off(spark: SparkSession, infos: Mapping[str, RunInfo]) -> DataFrame:
    """Whose recordings are cut off: (run, sender)."""
    rows = [(run, (who.name, who.incarnation)) for run, info in infos.items() for who in info.cut_off]
    return small_frame(spark, {"run": TEXT, "sender": MEMBER}, rows)


def tails(cut_off: DataFrame, totals: DataFrame) -> DataFrame:
    """The last message that each of them is known to have sent, 0 if none: (run, sender, tail)."""
    sent = totals.where(fn.col("kind") == Kind.MULTICAST.value)
    last = sent.select("run", fn.col("process").alias("sender"), fn.col("latest").alias("tail"))
    return cut_off.join(last, ["run", "sender"], "left").select(
        "run", "sender", fn.coalesce("tail", fn.lit(0)).alias("tail")
    )


def untold(events: DataFrame, tails: DataFrame) -> DataFrame:
    """A message of each run that must have been sent where a recording is cut off: (run, sender, seq)."""
    purges = of_kind(events, Kind.PURGE).select("run", fn.explode_outer("annotation.ids").alias("by"))
    named = (
        of_kind(events, Kind.DELIVER, Kind.PURGE)
        .select("run", "sender", "last")
        .union(
            purges.where("by is not null").select(
                "run",
                fn.struct(fn.col("by.sender").alias("name"), fn.col("by.incarnation").alias("incarnation")),
                "by.seq",
            )
        )
    )
    beyond = named.join(fn.broadcast(tails), ["run", "sender"]).where("last > tail")
    first = beyond.groupBy("run").agg(fn.min(fn.struct("sender", "last")).alias("first"))
    return first.select("run", "first.sender", fn.col("first.last").alias("seq"))


def told(made_up: DataFrame, tails: DataFrame) -> DataFrame:
    """Rows with run, sender and first, without those where a recording is cut off."""
    known = made_up.join(fn.broadcast(tails), ["run", "sender"], "left")
    return known.where("tail is null or first <= tail").select(*made_up.columns)
