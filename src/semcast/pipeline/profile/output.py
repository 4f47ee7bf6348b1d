"""The tables of a profile, in Parquet: `summary`, `histogram` and `items`."""

from itertools import accumulate

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import REAL, TEXT, WHOLE, small_frame
from semcast.pipeline.profile.merge import EXACT_BITS
from semcast.pipeline.profile.profiling import Profile
from semcast.pipeline.profile.summary import StreamProfile
from semcast.pipeline.writing import write_table

_SUMMARY = {
    "stream": TEXT,
    "messages": WHOLE,
    "commits": WHOLE,
    "bytes": WHOLE,
    "seconds": REAL,
    "made_obsolete": WHOLE,
    "never_obsolete_share": REAL,
    "d_median": WHOLE,
    "d_p90": WHOLE,
    "d_max": WHOLE,
    "r10": REAL,
    "r20": REAL,
    "r30": REAL,
    "keys": WHOLE,
    "keys_for_half": WHOLE,
    "top_key_share": REAL,
    "top10_keys_share": REAL,
    "bursts": WHOLE,
    "burst_mean": REAL,
    "burst_max": WHOLE,
    "purge": REAL,
    "buffer": WHOLE,
}


def write_tables(profile: Profile, folder: str) -> list[str]:
    """Write all tables, over those of an earlier profile; returns their paths."""
    tables = {"summary": summary(profile), "histogram": histogram(profile), "items": item_table(profile)}
    paths = []
    for name, table in tables.items():
        paths.append(f"{folder}/{name}.parquet")
        write_table(table, paths[-1])
    return paths


def summary(profile: Profile) -> DataFrame:
    """A row for each stream."""
    rows = [_summary_row(stream) for stream in profile.streams]
    return small_frame(profile.merged.sparkSession, _SUMMARY, rows).select(*_SUMMARY)


def histogram(profile: Profile) -> DataFrame:
    """(stream, distance, messages, r): how many messages have that distance, and R_N for N = distance.

    The driver knows how many messages are below each bin; only inside of a bin is anything added up in order.
    """
    below = [
        (stream.stream, each.low, total - each.n, stream.messages)
        for stream in profile.streams
        for each, total in zip(
            stream.distances.bins, accumulate(each.n for each in stream.distances.bins), strict=True
        )
    ]
    columns = {"stream": TEXT, "low": WHOLE, "below": WHOLE, "all": WHOLE}
    starts = small_frame(profile.merged.sparkSession, columns, below)
    inside = fn.sum("n").over(Window.partitionBy("stream", "low").orderBy("distance"))
    return (
        profile.distances()
        .withColumn("low", _bin_low(fn.col("distance")))
        .withColumn("inside", inside)
        .join(fn.broadcast(starts), ["stream", "low"])
        .select(
            "stream",
            "distance",
            fn.col("n").alias("messages"),
            ((fn.col("below") + fn.col("inside")) / fn.col("all")).alias("r"),
        )
        .sort("stream", "distance")
    )


def _bin_low(distance: Column) -> Column:
    """As `merge.bin_lows` has it."""
    width = fn.greatest(fn.length(fn.bin(distance)) - EXACT_BITS, fn.lit(0))
    return fn.call_function("shiftleft", fn.call_function("shiftright", distance, width), width)


def item_table(profile: Profile) -> DataFrame:
    """(stream, key, updates, share): how often each item is written, and its share of all updates."""
    updates = small_frame(
        profile.merged.sparkSession,
        {"stream": TEXT, "all": WHOLE},
        [(stream.stream, stream.items.updates) for stream in profile.streams],
    )
    return (
        profile.items()
        .join(fn.broadcast(updates), "stream")
        .select("stream", "key", "updates", (fn.col("updates") / fn.col("all")).alias("share"))
        .sort("stream", fn.desc("updates"), "key")
    )


def _summary_row(profile: StreamProfile) -> tuple[object, ...]:
    distances, items, bursts = profile.distances, profile.items, profile.bursts
    return (
        profile.stream,
        profile.messages,
        profile.commits,
        profile.bytes,
        profile.seconds,
        distances.obsolete,
        profile.never_obsolete_share,
        profile.d_median,
        profile.d_p90,
        profile.d_max,
        *(profile.purge_ratio(n) for n in (10, 20, 30)),
        items.keys,
        items.keys_for_half,
        items.top_share,
        items.top10_share,
        bursts.bursts,
        bursts.mean,
        bursts.largest,
        profile.purge,
        profile.buffer,
    )
