"""Rows published into a log: every batch whole and once, also when it is done again."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk, stream

from semcast import blocking
from semcast.group.errors import ConfigurationError
from semcast.pipeline.stream.sink import check_columns


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path / "out", *FORGETS_NOTHING) as made:
        yield made


def publish(frame: DataFrame, out: Desk, checkpoint: Path, **options: Any) -> None:
    """Until all that is there has been read."""
    writer = frame.writeStream.format("semcast").option("checkpointLocation", str(checkpoint))
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.trigger(availableNow=True).start(out.group).awaitTermination()


def test_a_stream_is_published_once(streaming: SparkSession, prices: Desk, out: Desk, tmp_path: Path) -> None:
    """Also when the query forgets that a batch was done, and what is staged is larger than a question."""
    prices.events(0, 9000)
    frame = stream(streaming, prices.group, maxRowsPerTrigger=4500).selectExpr(
        "concat(payload, cast('!' as binary)) as payload", "cast(null as string) as item"
    )
    expected = Counter(b"%d!" % number for number in range(9000))
    with blocking.subscribe(out.group, start="all") as members:
        publish(frame, out, tmp_path / "a")
        assert Counter(out.logged()) == expected
        last = tmp_path / "a" / "commits" / "1"
        last.unlink()
        (tmp_path / "a" / "commits" / ".1.crc").unlink(missing_ok=True)
        publish(frame, out, tmp_path / "a")
        assert Counter(out.logged()) == expected, "its key was known"
        got: Counter[bytes] = Counter()
        for batch in members.batches(timeout=30):
            got.update(message.payload for message in batch)
            if len(got) == 9000:
                break
        assert got == expected, "members are given each once"
    prices.events(9000, 10)
    publish(frame, out, tmp_path / "a")
    publish(frame.where("payload = cast('9003!' as binary)"), out, tmp_path / "b")
    again = expected + Counter(b"%d!" % number for number in range(9000, 9010)) + Counter([b"9003!"])
    assert Counter(out.logged()) == again, "a new checkpoint is another query"


def test_a_table_is_published(streaming: SparkSession, out: Desk) -> None:
    table = streaming.createDataFrame([("x", "1"), (None, "2")], "item string, payload string")
    table.coalesce(1).write.format("semcast").mode("append").save(out.group)
    assert out.logged() == [b"1", b"2"]
    for bad, why in (
        ([("x", None)], "have no payload"),
        ([("", "1")], "an item is ''"),
        ([("x" * 300, "1")], "300 characters"),
    ):
        with pytest.raises(PySparkException, match=why):
            streaming.createDataFrame(bad, "item string, payload string").write.format("semcast").mode(
                "append"
            ).save(out.group)
    with pytest.raises(PySparkException, match="never overwritten"):
        table.write.format("semcast").mode("overwrite").save(out.group)
    assert out.logged() == [b"1", b"2"], "what failed left nothing"


def test_columns_that_would_be_lost_are_refused() -> None:
    check_columns(StructType().add("payload", BinaryType()))
    check_columns(StructType().add("item", StringType()).add("payload", StringType()))
    for wrong in (
        StructType().add("item", StringType()),
        StructType().add("payload", LongType()),
        StructType().add("payload", StringType()).add("price", LongType()),
    ):
        with pytest.raises(ConfigurationError, match="rows to publish have the columns payload"):
            check_columns(wrong)
