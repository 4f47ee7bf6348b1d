"""A log as a source in Spark: what is read, from where, and what is refused."""

import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from tests.live.test_live_logger import PATIENCE
from tests.pipeline.streams import Desk, collected, desk, payloads, stream

from semcast.cli.main import main
from semcast.core import MemberId
from semcast.group.errors import ConfigurationError
from semcast.group.logclient import OtherLogError
from semcast.group.logpages import LogRun
from semcast.pipeline.stream import without_heartbeats
from semcast.pipeline.stream.connection import connection, connection_to, disconnect, identity
from semcast.pipeline.stream.options import source_options, where
from semcast.pipeline.stream.rows import SCHEMA, heartbeat_row, rows_of


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_a_batch_reads_from_one_position_to_another(
    streaming: SparkSession, prices: Desk, tmp_path: Path
) -> None:
    def read(**options: object) -> list[Row]:
        reader = streaming.read.format("semcast")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return reader.load(prices.group).orderBy("position").collect()

    assert read() == []
    prices.events(0, 30)
    between = datetime.now(UTC)
    prices.publish(("eu.x", b"1"), ("us.x", b"2"), ("eu.x", b"3"), (None, b"event"))
    rows = read()
    assert payloads(rows) == [*numbers(0, 30), b"2", b"3", b"event"], "a later one of eu.x replaced 1"
    assert [row["position"] for row in rows] == [*range(30), 31, 32, 33]
    assert {row["sender"] for row in rows} == {"feed"}
    assert [row["item"] for row in rows][-3:] == ["us.x", "eu.x", None]
    assert payloads(read(start=10, end=12)) == numbers(10, 12)
    assert payloads(read(start=between.isoformat())) == [b"2", b"3", b"event"]
    assert payloads(read(end=between.isoformat())) == numbers(0, 30)
    assert payloads(read(start=30, filter="eu.")) == [b"3", b"event"], "what is about no item passes"
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)


def test_a_query_goes_on_where_it_was(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    """Every message once, however the batches are cut, and from the checkpoint on."""
    prices.events(0, 250)
    frame = stream(streaming, prices.group, maxRowsPerTrigger=100)
    assert payloads(collected(frame, tmp_path / "a")) == numbers(0, 250)
    prices.events(250, 30)
    prices.kill()
    prices.start()
    assert payloads(collected(frame, tmp_path / "a")) == numbers(250, 280)
    assert collected(frame, tmp_path / "a") == []
    whole = stream(streaming, prices.group, start=270)
    assert payloads(collected(whole, tmp_path / "b")) == numbers(270, 280), "another checkpoint begins anew"


def test_what_was_trimmed_is_told_apart_from_what_was_replaced(
    streaming: SparkSession, tmp_path: Path
) -> None:
    with desk(tmp_path / "log") as prices:
        prices.publish(*[("x", b"%d" % number) for number in range(20)], (None, b"a"), (None, b"b"))
        frame = stream(streaming, prices.group)
        assert payloads(collected(frame, tmp_path / "a")) == [b"19", b"a", b"b"], "that is no loss"
        prices.events(0, 50)
        prices.kill()
        assert main(["log", "trim", str(tmp_path / "log"), "--keep", "3"]) == 0
        prices.start()
        with pytest.raises(StreamingQueryException, match="were trimmed before they were read"):
            collected(frame, tmp_path / "a")
        lenient = stream(streaming, prices.group, failOnDataLoss="false")
        assert payloads(collected(lenient, tmp_path / "a")) == numbers(47, 50)
        assert collected(lenient, tmp_path / "a") == []


def test_a_log_of_another_identity_is_refused(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    prices.events(0, 5)
    frame = stream(streaming, prices.group)
    assert len(collected(frame, tmp_path / "a")) == 5
    prices.kill()
    shutil.rmtree(prices.folder)
    prices.start()
    prices.events(0, 9)
    with pytest.raises(StreamingQueryException, match="a position means nothing in another log"):
        collected(frame, tmp_path / "a")
    assert payloads(collected(frame, tmp_path / "b")) == numbers(0, 9), "with a new checkpoint"


def test_a_query_outlives_its_logger(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    found: list[bytes] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(payloads(batch.collect()))

    prices.events(0, 20)
    query = (
        stream(streaming, prices.group, maxRowsPerTrigger=7)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "a"))
        .start()
    )
    try:
        _until(lambda: len(found) > 7)
        prices.kill()
        time.sleep(1)
        prices.start()
        prices.events(20, 20)
        _until(lambda: len(found) >= 40)
    finally:
        query.stop()
    assert found == numbers(0, 40)


def test_an_idle_group_moves_the_watermark(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    prices.events(0, 3)
    rows = stream(streaming, prices.group, heartbeat="300ms").withWatermark("at", "1 second")
    counts = (
        without_heartbeats(rows)
        .selectExpr("window(at, '1 second') as window", "payload")
        .groupBy("window")
        .count()
    )
    found: list[int] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(row["count"] for row in batch.collect())

    query = (
        counts.writeStream.foreachBatch(keep)
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "a"))
        .start()
    )
    try:
        _until(lambda: sum(found) == 3)
    finally:
        query.stop()
    assert sum(found) == 3, "a window is closed though nothing came after it"


def test_no_logger_is_said_in_time(streaming: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException, match=r"no logger of nobody answered for 0\.2 s"):
        collected(stream(streaming, "nobody", timeout="200ms"), tmp_path / "a")


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


# Without Spark


def test_a_process_may_live_longer_than_a_log(prices: Desk) -> None:
    """The connections that it keeps are made anew, and positions of the old log are refused."""
    which = where({"path": prices.group}, "source")
    named = where({"path": prices.group, "logger": "log1"}, "source")
    try:
        prices.events(0, 5)
        old = identity(connection(which))
        assert connection_to(which, old).ends().next == 5
        prices.kill()
        shutil.rmtree(prices.folder)
        prices.start()
        with pytest.raises(OtherLogError, match="a position means nothing in another log"):
            connection_to(which, old)
        new = identity(connection(which))
        assert new != old
        assert connection_to(which, new).ends().next == 0
        assert connection(which) is connection(which)
    finally:
        disconnect(which)
        disconnect(named)


def test_options_that_mean_nothing_are_refused() -> None:
    for options, why in (
        ({}, "which group"),
        ({"path": "g", "maxRowPerTrigger": "1"}, "did you mean maxRowsPerTrigger"),
        ({"path": "g", "timeout": "soon"}, "timeout = 'soon' is not a duration"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            where(options, "source")
    for options, why in (
        ({"start": "yesterday"}, "a time such as"),
        ({"end": "all"}, "end = 'all': a position or"),
        ({"mode": "newest"}, "mode = 'newest': there are log, latest"),
        ({"maxRowsPerTrigger": "0"}, "a number of 1 or more"),
        ({"filter": "x" * 65}, "64 characters at most"),
        ({"failOnDataLoss": "maybe"}, "there are true, false"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            source_options(options)
    found = where({"path": "g", "keyFile": "k", "peers": "a:1,b:2"}, "stream")
    assert found.settings == (("key_file", "k"), ("peers", "a:1,b:2"))
    assert source_options({"start": "2026-11-18T08:00"}).start == datetime(2026, 11, 18, 8, tzinfo=UTC)


def test_rows_that_later_ones_replace_may_be_left_out() -> None:
    p, q = MemberId("p"), MemberId("q")
    runs = [
        LogRun(3, 5000, p, 1, [b"a", b"b", b"c", b"d"], [0, 1, 2, 4], ["x", "y", None, "x"], {}),
        LogRun(9, 7000, q, 1, [b"e"], range(1), ["x"], {}),
        LogRun(10, 7000, q, 2, [b"f", b"g"], range(2), None, {}),
    ]
    whole = rows_of(runs)
    assert whole.schema == SCHEMA
    assert whole["position"].to_pylist() == [3, 4, 5, 7, 9, 10, 11]
    assert whole["seq"].to_pylist() == [1, 2, 3, 5, 1, 2, 3]
    assert whole["sender"].to_pylist() == ["p"] * 4 + ["q"] * 3
    assert [at.microsecond for at in whole["at"].to_pylist()] == [5] * 4 + [7] * 3
    latest = rows_of(runs, "latest")
    assert latest["payload"].to_pylist() == [b"b", b"c", b"d", b"e", b"f", b"g"], "only of the same sender"
    beat = heartbeat_row(12, 9000)
    assert (beat["position"].to_pylist(), beat["payload"].to_pylist()) == ([12], [None])
    assert beat.schema == SCHEMA
