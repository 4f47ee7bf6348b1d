"""Obsolescence distance in Spark: how far apart a message is from the next one that makes it obsolete.

`at` is a position (`positions.py`). Only updates overwrite, only updates of the same key are overwritten, and
every message counts as a step. The updates of a key are one task's work, unless the key is hot: then they
are cut into slices, and the distances over the edges of slices are added.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import TEXT, WHOLE, small_frame

HOT = 12_000_000
"""A key with so many updates is cut. No result depends on it."""

EXACT_BITS = 11
"""Distances below 2^11 are counted one by one, those above in bins, less than a thousandth wide."""

HASH_BITS = 64

TOP = 10
"""So many of the items that are written most are named."""

_SAMPLED = 1_000_000


def hot_keys(rows: DataFrame, updates: int, *, hot: int = HOT) -> list[Row]:
    """The (stream, key) that have more than about `hot` of so many updates, by a sample."""
    if updates < 2 * hot:
        return []
    share = min(1.0, _SAMPLED / updates)
    counted = (
        _updates(rows).sample(fraction=share, seed=0).groupBy("stream", "key").agg(fn.count("*").alias("n"))
    )
    return counted.where(fn.col("n") > hot * share).select("stream", "key").collect()


def keyed_updates(
    rows: DataFrame,
    partitions: int,
    hot: Sequence[Row] = (),
    *,
    slice_: int = HOT,
    hash_bits: int = HASH_BITS,
) -> DataFrame:
    """(stream, id, at) of the updates, and `slice` if keys are hot: those of a slice of a key are together.

    A key is known by `hash_bits` of a hash, for numbers sort faster than names; or, if that is 0, by name.
    """
    name = fn.shiftrightunsigned(fn.xxhash64("stream", "key"), HASH_BITS - hash_bits)
    mine = _updates(rows).withColumn("id", name if hash_bits else fn.struct("stream", "key"))
    if not hot:
        return mine.select("stream", "id", "at").repartition(partitions, "id")
    listed = small_frame(rows.sparkSession, {"stream": TEXT, "key": TEXT}, hot).withColumn(
        "hot", fn.lit(True)
    )
    number = fn.when(fn.col("hot"), fn.expr(f"at div {slice_}")).otherwise(fn.lit(0))
    cut = mine.join(fn.broadcast(listed), ["stream", "key"], "left").withColumn("slice", number)
    return cut.select("stream", "id", "slice", "at").repartition(partitions, "id", "slice")


def distances(updates: DataFrame) -> DataFrame:
    """(stream, distance, n): how many updates are so far from the next of their key.

    If two keys have the same hash, this finds more distances than there are updates less keys. Whoever
    calls it must compare, and begin again with names.
    """
    keys = [name for name in ("id", "slice") if name in updates.columns]
    step = fn.col("at") - fn.lag("at").over(Window.partitionBy(*keys).orderBy("at"))
    found = updates.select("stream", step.alias("distance"))
    if "slice" in keys:
        found = found.union(_over_edges(updates))
    counted = found.where(fn.col("distance").isNotNull()).groupBy("stream", "distance")
    return counted.agg(fn.count("*").alias("n")).select("stream", "distance", "n")


def items(rows: DataFrame) -> DataFrame:
    """(stream, key, updates): how often each item is written."""
    counted = _updates(rows).groupBy("stream", "key").agg(fn.count("*").alias("updates"))
    return counted.select("stream", "key", "updates")


def frequencies(item: DataFrame) -> DataFrame:
    """(stream, updates, keys): how many items are written so often."""
    return (
        item.groupBy("stream", "updates").agg(fn.count("*").alias("keys")).select("stream", "updates", "keys")
    )


def top_items(item: DataFrame) -> DataFrame:
    """(stream, key, updates) of the items that are written most."""
    ranking = Window.partitionBy("stream").orderBy(fn.desc("updates"), "key")
    ranked = item.withColumn("rank", fn.row_number().over(ranking)).where(fn.col("rank") <= TOP)
    return ranked.select("stream", "key", "updates")


def bins(found: DataFrame) -> DataFrame:
    """(stream, low, high, n): distances counted in bins, few enough for the driver."""
    low, high = bin_edges(fn.col("distance"))
    binned = found.groupBy("stream", low.alias("low"), high.alias("high")).agg(fn.sum("n").alias("n"))
    return binned.select("stream", "low", "high", "n")


def inside_bins(found: DataFrame, wanted: Iterable[tuple[str, int, int]]) -> DataFrame:
    """(stream, distance, n): the distances inside some bins (stream, low, high)."""
    listed = small_frame(found.sparkSession, {"stream": TEXT, "low": WHOLE, "high": WHOLE}, wanted)
    low, _ = bin_edges(fn.col("distance"))
    joined = found.withColumn("low", low).join(fn.broadcast(listed), ["stream", "low"])
    return joined.select("stream", "distance", "n")


def bin_edges(distance: Column) -> tuple[Column, Column]:
    """The smallest and the largest distance of the bin that one is in."""
    width = fn.greatest(fn.length(fn.bin(distance)) - EXACT_BITS, fn.lit(0))
    low = fn.call_function("shiftleft", fn.call_function("shiftright", distance, width), width)
    return low, low + fn.call_function("shiftleft", fn.lit(1).cast("long"), width) - 1


def _updates(rows: DataFrame) -> DataFrame:
    return rows.where(fn.col("kind") == "update").select("stream", "key", "at")


def _over_edges(updates: DataFrame) -> DataFrame:
    """(stream, distance) between the last update of a slice and the first of the next slice that has one."""
    slices = updates.groupBy("stream", "id", "slice").agg(
        fn.min("at").alias("first"), fn.max("at").alias("last")
    )
    before = fn.lag("last").over(Window.partitionBy("id").orderBy("slice"))
    return slices.select("stream", (fn.col("first") - before).alias("distance"))
