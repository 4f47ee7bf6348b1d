"""Rows published into a log: every batch whole and once, also when it is done again."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from tests.live.test_live_logger import Process
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk, stream

from semcast import blocking
from semcast.group.errors import ConfigurationError
from semcast.group.logclient import LogStageError
from semcast.pipeline.stream.connection import connection, disconnect
from semcast.pipeline.stream.options import where
from semcast.pipeline.stream.sink import LogBatchWriter, LogStreamWriter, check_columns


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


class Task:
    """What a task knows of itself."""

    def __init__(self, partition: int, query: str | None) -> None:
        self._partition = partition
        self.said = {"sql.streaming.queryId": query, "streaming.sql.batchId": None}

    def partitionId(self) -> int:  # noqa: N802
        return self._partition

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.said[name]


def written(
    patch: pytest.MonkeyPatch,
    writer: LogStreamWriter | LogBatchWriter,
    query: str | None,
    *parts: list[bytes],
) -> list[Any]:
    """What the tasks of a batch say, the last partition first."""
    said = []
    for number, payloads in reversed(list(enumerate(parts))):
        patch.setattr(TaskContext, "get", lambda number=number: Task(number, query))
        rows = pa.RecordBatch.from_pydict({"payload": pa.array(payloads, pa.binary())})
        said.append(writer.write(iter([rows])))
    return said


def test_a_batch_is_known_by_its_query_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark: tasks that ran twice, drivers that commit twice, and a batch that is given up."""
    with desk(tmp_path / "log") as out:
        which = where({"path": out.group}, "stream")
        try:
            writer = LogStreamWriter(which)
            first = written(monkeypatch, writer, "q", [b"1", b"2"], [], [b"3"])
            again = written(monkeypatch, writer, "q", [b"1", b"2"], [], [b"3"])
            writer.commit([*first, None], 0)
            assert out.logged() == [b"1", b"2", b"3"], "in the order of partitions"
            LogStreamWriter(which).commit(again, 0)
            writer.commit(written(monkeypatch, writer, "q", []), 1)
            assert out.logged() == [b"1", b"2", b"3"], "known, and nothing"
            lost = written(monkeypatch, writer, "q", [b"4"])
            writer.abort(lost, 1)
            with pytest.raises(LogStageError, match="1 of 1 pieces"):
                writer.commit(lost, 1)
            writer.commit(written(monkeypatch, writer, "q", [b"4"]), 1)
            writer.commit(written(monkeypatch, writer, "r", [b"5"]), 1)
            once = LogBatchWriter(which)
            once.commit(written(monkeypatch, once, None, [b"6"], [b"7"]))
            assert out.logged() == [b"%d" % number for number in range(1, 8)]
        finally:
            disconnect(which)


def test_a_group_with_several_loggers_wants_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = f"two {uuid.uuid4().hex}"
    both = ("--with", "log1,log2")
    loggers = [Process(tmp_path / name, group, "--name", name, *both) for name in ("log1", "log2")]
    which = where({"path": group}, "stream")
    try:
        for each in loggers:  # they wait for each other
            each.says()
        writer = LogStreamWriter(which)
        while len(connection(which).loggers) < 2:  # until the other has answered, too
            time.sleep(0.01)
        with pytest.raises(ConfigurationError, match="several loggers, log1, log2: say which one"):
            written(monkeypatch, writer, "q", [b"1"])
        named = LogStreamWriter(where({"path": group, "logger": "log2"}, "stream"))
        named.commit(written(monkeypatch, named, "q", [b"1"]), 0)
    finally:
        disconnect(which)
        for each in loggers:
            each.kill()
