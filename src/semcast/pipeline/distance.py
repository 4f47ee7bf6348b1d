"""Obsolescence distance in Spark: how far apart a message is from the next one that makes it obsolete.

`at` is a position (`positions.py`). Only updates overwrite, only updates of the same key are overwritten, and
every message counts as a step. The updates of a key are one task's work, unless the key is hot: then they
are cut into slices, and the distances over the edges of slices are added.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

HOT = 12_000_000
"""A key with so many updates is cut. No result depends on it."""

EXACT_BITS = 11
"""Distances below 2^11 are counted one by one, those above in bins of less than a thousandth of their size."""

TOP = 10
"""So many of the items that are written most are named."""

_SAMPLED = 1_000_000


def hot_keys(rows: DataFrame, updates: int, *, hot: int = HOT) -> list[Row]:
    """The (stream, key) that have more than about `hot` of so many updates, by a sample."""
    if updates < 2 * hot:
        return []
    share = min(1.0, _SAMPLED / updates)
    counted = _updates(rows).sample(share, seed=0).groupBy("stream", "key").agg(F.count("*").alias("n"))
    return counted.where(F.col("n") > hot * share).select("stream", "key").collect()


def keyed_updates(
    rows: DataFrame, partitions: int, hot: Sequence[Row] = (), *, slice_: int = HOT
) -> DataFrame:
    """(stream, key, at) of the updates, and `slice` if there are hot keys: those of a key in one partition."""
    mine = _updates(rows)
    if not hot:
        return mine.repartition(partitions, "stream", "key")
    listed = rows.sparkSession.createDataFrame(hot, "stream string, key string").withColumn("hot", F.lit(True))
    number = F.when(F.col("hot"), F.expr(f"at div {slice_}")).otherwise(F.lit(0))
    cut = mine.join(F.broadcast(listed), ["stream", "key"], "left").withColumn("slice", number)
    return cut.select("stream", "key", "slice", "at").repartition(partitions, "stream", "key", "slice")


def distances(updates: DataFrame) -> DataFrame:
    """(stream, distance, n): how many updates are so far from the next of their key."""
    keys = [name for name in updates.columns if name != "at"]
    step = F.col("at") - F.lag("at").over(Window.partitionBy(*keys).orderBy("at"))
    found = updates.select("stream", step.alias("distance"))
    if "slice" in keys:
        found = found.union(_over_edges(updates))
    counted = found.where(F.col("distance").isNotNull()).groupBy("stream", "distance")
    return counted.agg(F.count("*").alias("n")).select("stream", "distance", "n")


def items(updates: DataFrame) -> DataFrame:
    """(stream, key, updates): how often each item is written.

    It counts `at`, so that Spark sees the same columns as in `distances` and shuffles them once.
    """
    return (
        updates.groupBy("stream", "key").agg(F.count("at").alias("updates")).select("stream", "key", "updates")
    )


def tallies(distance: DataFrame, item: DataFrame) -> DataFrame:
    """(stream, what, value, key, n): all that is counted of the keys of a trace, in one job.

    What is `distance`: n messages at distance `value`. `frequency`: n keys with `value` updates. `top`: one of
    the keys that are written most, with `value` updates.
    """
    nameless = F.lit(None).cast("string").alias("key")
    frequency = item.groupBy("stream", "updates").agg(F.count("*").alias("n"))
    ranking = Window.partitionBy("stream").orderBy(F.desc("updates"), "key")
    top = item.withColumn("rank", F.row_number().over(ranking)).where(F.col("rank") <= TOP)
    return (
        distance.select("stream", F.lit("distance").alias("what"), F.col("distance").alias("value"), nameless, "n")
        .union(frequency.select("stream", F.lit("frequency"), "updates", nameless, "n"))
        .union(top.select("stream", F.lit("top"), "updates", "key", F.lit(1).cast("long")))
        .select("stream", "what", "value", "key", "n")
    )


def bins(tally: DataFrame) -> DataFrame:
    """(stream, low, high, n): distances counted in bins, few enough for the driver."""
    low, high = bin_edges(F.col("value"))
    of_distance = tally.where(F.col("what") == "distance")
    return of_distance.groupBy("stream", low.alias("low"), high.alias("high")).agg(F.sum("n").alias("n"))


def inside_bins(tally: DataFrame, wanted: Sequence[tuple[str, int, int]]) -> DataFrame:
    """(stream, value, n): the distances inside some (stream, low, high)."""
    listed = _frame(tally.sparkSession, wanted, "stream string, low long, high long")
    low, _ = bin_edges(F.col("value"))
    of_distance = tally.where(F.col("what") == "distance").withColumn("low", low)
    return of_distance.join(F.broadcast(listed), ["stream", "low"]).select("stream", "value", "n")


def bin_edges(distance: Column) -> tuple[Column, Column]:
    """The smallest and the largest distance of the bin that one is in."""
    width = F.greatest(F.length(F.bin(distance)) - EXACT_BITS, F.lit(0))
    low = F.call_function("shiftleft", F.call_function("shiftright", distance, width), width)
    return low, low + F.call_function("shiftleft", F.lit(1).cast("long"), width) - 1


def _updates(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("kind") == "update").select("stream", "key", "at")


def _over_edges(updates: DataFrame) -> DataFrame:
    """(stream, distance) between the last update of a slice and the first of the next slice that has one."""
    slices = updates.groupBy("stream", "key", "slice").agg(F.min("at").alias("first"), F.max("at").alias("last"))
    before = F.lag("last").over(Window.partitionBy("stream", "key").orderBy("slice"))
    return slices.select("stream", (F.col("first") - before).alias("distance"))


def _frame(spark: SparkSession, rows: Sequence[tuple[str, int, int]], schema: str) -> DataFrame:
    return spark.createDataFrame(list(rows), schema)
