"""What is told of distances and items: few numbers, counted in Spark."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import TEXT, WHOLE, small_frame

EXACT_BITS = 11
"""Distances below 2^11 are counted one by one, those above in bins, less than a thousandth wide."""

TOP = 10
"""So many of the items that are written most are named."""


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
