"""A sink in trouble: the disk of its logger is full, and two drivers run one checkpoint."""

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline.killing import QUICKLY, Driver, Load, grown, judge
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk, stream

PATIENCE = 120.0


def test_a_full_disk_ends_the_query_and_nothing_is_lost_or_twice(
    streaming: SparkSession, prices: Desk, tmp_path: Path
) -> None:
    """The logger ends, the query says that nobody answers; with room, both go on where they were."""
    prices.events(0, 3000)
    frame = stream(streaming, prices.group, maxRowsPerTrigger=500).selectExpr(
        "lpad(cast(payload as string), 100, '0') as payload"
    )
    with desk(tmp_path / "out", *FORGETS_NOTHING) as out:
        out.kill()
        out.start(blocks=150)

        def query() -> StreamingQuery:
            writer = frame.writeStream.format("semcast").option("checkpointLocation", str(tmp_path / "a"))
            return writer.option("timeout", "3s").trigger(availableNow=True).start(out.group)

        with pytest.raises(StreamingQueryException, match=r"no logger of .* answered for 3 s"):
            query().awaitTermination()
        code, told = out.over()
        assert (code, str(out.folder) in told) == (3, True), told
        out.start()
        there = len(out.logged())
        assert 0 < there < 3000, there
        assert there % 500 == 0, "batches are there whole"
        query().awaitTermination()
        assert Counter(out.logged()) == Counter(b"%0100d" % number for number in range(3000))


def test_two_drivers_on_one_checkpoint_publish_nothing_twice(tmp_path: Path) -> None:
    """Spark ends one of them; whichever it is, every batch has one key."""
    with desk(tmp_path / "in", *FORGETS_NOTHING) as prices, desk(tmp_path / "out", *FORGETS_NOTHING) as out:
        order = {
            "from": prices.group,
            "to": out.group,
            "checkpoint": str(tmp_path / "checkpoint"),
            "master": "local[1]",
            "conf": {"spark.driver.extraJavaOptions": QUICKLY},
        }
        drivers = [Driver(order), Driver(order)]
        load = Load(prices.group)
        try:
            there = grown(out, 0, PATIENCE)
            while all(driver.running for driver in drivers):
                there = grown(out, there, PATIENCE)
                time.sleep(0.1)
            [left] = [driver for driver in drivers if driver.running]
            grown(out, there, PATIENCE)
            assert left.running
            judge(out, load.stop(), PATIENCE)
        finally:
            load.stop()
            for driver in drivers:
                driver.kill()
