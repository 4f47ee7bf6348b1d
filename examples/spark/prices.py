"""A group's log in Spark: live tables of the latest values, and a stream that is joined and published back.

    semcast logger /tmp/prices --group prices &
    python examples/spark/prices.py prices                # prints the latest price of every item
    python examples/spark/prices.py prices --to alerts    # publishes prices above a limit into another group

The group needs a logger (docs/logs.md); so does the one that is published into.
"""

import argparse
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.pipeline.session import spark_session
from semcast.pipeline.stream import register, run_to_end, without_heartbeats


def latest(rows: DataFrame) -> DataFrame:
    """The latest value of every item: one row of state for each item that there ever was."""
    return (
        rows.where("item is not null")
        .groupBy("item")
        .agg(fn.max_by("payload", "position").alias("payload"), fn.max("position").alias("position"))
    )


def recent(rows: DataFrame, keep: str = "1 hour", late: str = "10 seconds") -> DataFrame:
    """The latest value of every item in each span of time: state of spans that are over is dropped.

    Where items come and go, state stays bounded: that of an item of which nothing is heard goes with its
    span. The source needs `heartbeat`, so that time goes on in a group that is idle.
    """
    timed = rows.withWatermark("at", late)
    return (
        without_heartbeats(timed, "item is not null")
        .groupBy(fn.window("at", keep).alias("span"), "item")
        .agg(fn.max_by("payload", "position").alias("payload"), fn.max("position").alias("position"))
    )


def newest(batch: DataFrame) -> DataFrame:
    """Of one batch, the latest value of every item, for `foreachBatch`: no state at all.

    Positions grow from batch to batch, so each of these rows is later than what a table has of its item. An
    empty message is a tombstone: its item is to be removed from the table.
    """
    return (
        batch.where("item is not null")
        .groupBy("item")
        .agg(fn.max_by("payload", "position").alias("payload"), fn.max("position").alias("position"))
        .withColumn("removed", fn.length("payload") == 0)
    )


def alerts(rows: DataFrame, limits: DataFrame) -> DataFrame:
    """Prices above the limit of their item, as messages about it: later ones replace earlier ones."""
    priced = rows.select("item", fn.col("payload").cast("string").cast("double").alias("price"))
    return (
        priced.join(limits, "item")
        .where("price > most")
        .select("item", fn.format_string("%.2f > %.2f", "price", "most").alias("payload"))
    )


def main() -> None:
    """A program that runs until it is stopped: with Ctrl-C."""
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    parser.add_argument("--to", help="publish alerts into this group")
    parser.add_argument("--checkpoint", default="", help="folder: a program that starts again goes on there")
    args = parser.parse_args()
    spark: SparkSession = spark_session("prices")
    register(spark)
    rows = spark.readStream.format("semcast").load(args.group)
    if args.to:
        limits = spark.createDataFrame([("IBM", 160.0), ("ACME", 10.0)], "item string, most double")
        writer = alerts(rows, limits).writeStream.format("semcast").option("path", args.to)
    else:
        table = latest(rows).selectExpr("item", "cast(payload as string) as price", "position")
        writer = table.writeStream.format("console").outputMode("complete")
    if args.checkpoint:
        writer = writer.option("checkpointLocation", args.checkpoint)
    run_to_end(writer.start())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # while Spark starts
        main()
