"""The examples with streams, on real loggers."""

from pathlib import Path

from examples.spark.prices import alerts, latest, recent
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.streams import Desk, desk, stream


def test_a_table_of_the_latest_values(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    """State is one row for each item, however many updates there are."""
    prices.publish(*[(f"i{number % 7}", b"%d" % number) for number in range(140)])
    table: dict[str, bytes] = {}

    def keep(batch: DataFrame, _number: int) -> None:
        table.update({row["item"]: bytes(row["payload"]) for row in batch.collect()})

    for checkpoint, frame in (("a", latest), ("b", recent)):
        table.clear()
        query = (
            frame(stream(streaming, prices.group, maxRowsPerTrigger=60))
            .writeStream.foreachBatch(keep)
            .outputMode("update")
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert table == {f"i{number % 7}": b"%d" % number for number in range(133, 140)}
        [state] = query.recentProgress[-1]["stateOperators"]
        assert state["numRowsTotal"] == 7


def test_a_stream_is_joined_and_published_back(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    limits = streaming.createDataFrame([("IBM", 160.0)], "item string, most double")
    with desk(tmp_path / "out") as out:
        prices.publish(("IBM", b"159.2"), ("ACME", b"900"), ("IBM", b"161.5"))
        query = (
            alerts(stream(streaming, prices.group, mode="latest"), limits)
            .writeStream.format("semcast")
            .option("checkpointLocation", str(tmp_path / "a"))
            .trigger(availableNow=True)
            .start(out.group)
        )
        query.awaitTermination()
        assert out.logged() == [b"161.50 > 160.00"]
