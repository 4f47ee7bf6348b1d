"""The examples with streams, on real loggers."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from examples.spark.prices import alerts, latest, newest, recent
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.streams import Desk, desk, stream

PATIENCE = 120.0


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


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


def test_state_of_items_that_are_over_is_dropped(
    streaming: SparkSession, prices: Desk, tmp_path: Path
) -> None:
    """Items come and go, as orders do: state has those of a span of time, and time moves in an idle group."""
    rows = recent(stream(streaming, prices.group, heartbeat="200ms"), keep="1 second", late="0 seconds")
    states: dict[int, dict[str, int]] = {}
    query = (
        rows.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "a"))
        .start()
    )

    def are_over(items: int) -> bool:
        """Whether so many were in the state, and none is now."""
        assert query.exception() is None
        for batch in query.recentProgress:
            if batch["stateOperators"]:
                [states[batch["batchId"]]] = batch["stateOperators"]
        seen = sum(each["numRowsUpdated"] for each in states.values())
        return seen >= items and not states[max(states)]["numRowsTotal"]

    try:
        for wave in range(1, 4):
            prices.publish(*[(f"order {wave} {number}", b"open") for number in range(100)])
            until(partial(are_over, wave * 100))
        assert max(each["numRowsTotal"] for each in states.values()) <= 100, "of 300 items"
    finally:
        query.stop()


def test_a_table_is_kept_without_state(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    """Each batch is put into it; an item with an empty message is removed."""
    prices.publish(*[(f"i{number % 7}", b"%d" % number) for number in range(140)], ("i3", b""), (None, b"?"))
    prices.publish(("i4", b""), ("i4", b"back"))
    table: dict[str, bytes] = {}

    def put(batch: DataFrame, _number: int) -> None:
        for row in newest(batch).collect():
            table[row["item"]] = bytes(row["payload"])
            if row["removed"]:
                del table[row["item"]]

    query = (
        stream(streaming, prices.group, maxRowsPerTrigger=60)
        .writeStream.foreachBatch(put)
        .option("checkpointLocation", str(tmp_path / "a"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert table == {f"i{number % 7}": b"%d" % number for number in (133, 134, 135, 138, 139)} | {
        "i4": b"back",
    }
    assert query.lastProgress is not None
    assert query.lastProgress["stateOperators"] == []


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
