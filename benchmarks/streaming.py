"""Streams between a log and Spark: rows a second out of a log and into one, and from `send` to a row.

Loggers are processes of their own. Rates are of the second query of a session: the first one starts Python.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.cpu import load
from benchmarks.rows import Row, against
from semcast import blocking
from semcast.pipeline.session import spark_session
from semcast.pipeline.stream import register

COUNT = int(os.environ.get("SEMCAST_BENCH_STREAMED", "1_000_000"))
PUBLISHED = COUNT // 4
SIZE = 64
TRIGGER = 0.2
"""Seconds between two batches, for the time from `send` to a row."""
ASKED = 12


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder, _logger(folder, "in") as log:
        _fill(log, COUNT)
        read = _read(log)
        spark = spark_session("semcast bench", master="local[2]", shuffle_partitions=2)
        try:
            register(spark)
            source = _source(spark, log)
            source = max(source, _source(spark, log))
            with _logger(folder, "out") as out, _logger(folder, "floor") as floor:
                published = _publish(floor)
                sink = _sink(spark, log, out)
                sink = max(sink, _sink(spark, log, out))
            late = _late(spark, log)
        finally:
            spark.stop()
    return [
        against(f"source, {SIZE} B / one program that reads, {load()}", source, "rows/s", read, ">= 200,000"),
        against(
            f"sink, {SIZE} B, synced / one program that publishes", sink, "rows/s", published, ">= 50,000"
        ),
        against(
            f"send to a row in Spark, median / a trigger of {TRIGGER:g} s",
            statistics.median(late),
            "s",
            TRIGGER,
            "<= 1 + 100 ms",
        ),
    ]


@contextmanager
def _logger(folder: str, name: str) -> Iterator[str]:
    """A group with a logger that keeps everything."""
    group = f"bench-stream-{token_hex(4)}"
    words = [sys.executable, "-m", "semcast", "logger", str(Path(folder) / name), "--group", group]
    keep = ["--retention", "limits", "--messages", "100000000", "--json"]
    with subprocess.Popen([*words, *keep], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield group
        finally:
            process.kill()


def _fill(group: str, count: int) -> None:
    given: dict[str, Any] = {"stack": "gossip", "name": "feed", "receive": False}
    with blocking.join(group, **given) as member:
        for _ in range(0, count - 1, 1000):
            member.send_many([b"x" * SIZE] * min(1000, count - 1))
        member.send(b"x" * SIZE, logged=True)


def _read(group: str) -> float:
    with blocking.log(group) as log:
        began = time.perf_counter()
        rows = sum(len(run.payloads) for page in log.scan_runs(0, 1 << 40) for run in page.runs)
        return rows / (time.perf_counter() - began)


def _publish(group: str) -> float:
    """By one program, in batches as large as those of the sink."""
    with blocking.log(group) as log:
        began = time.perf_counter()
        for number in range(4):
            log.publish(b"%d" % number, [b"x" * SIZE] * (PUBLISHED // 4))
        return 4 * (PUBLISHED // 4) / (time.perf_counter() - began)


def _rate(query: StreamingQuery) -> float:
    """Rows a second of its batches."""
    query.awaitTermination()
    batches = [each for each in query.recentProgress if each["numInputRows"]]
    took = float(sum(each["durationMs"]["triggerExecution"] for each in batches)) / 1000
    return float(sum(each["numInputRows"] for each in batches)) / took


def _source(spark: SparkSession, group: str) -> float:
    with tempfile.TemporaryDirectory() as checkpoint:
        rows = spark.readStream.format("semcast").load(group)
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        return _rate(writer.trigger(availableNow=True).start())


def _sink(spark: SparkSession, group: str, out: str) -> float:
    """What it reads comes from a log, too."""
    with tempfile.TemporaryDirectory() as checkpoint:
        reader = spark.readStream.format("semcast").option("start", COUNT - PUBLISHED)
        rows = reader.option("maxRowsPerTrigger", PUBLISHED // 4).load(group).select("payload")
        writer = rows.writeStream.format("semcast").option("checkpointLocation", checkpoint)
        return _rate(writer.trigger(availableNow=True).start(out))


def _late(spark: SparkSession, group: str) -> list[float]:
    """Seconds from `send` to a row in Spark, of messages that are sent at any moment of a trigger."""
    arrived: dict[bytes, float] = {}

    def keep(batch: DataFrame, _number: int) -> None:
        now = batch.collect()
        arrived.update({bytes(row["payload"]): time.time() for row in now})

    sent: dict[bytes, float] = {}
    given: dict[str, Any] = {"stack": "gossip", "name": "clock", "receive": False}
    with tempfile.TemporaryDirectory() as checkpoint, blocking.join(group, **given) as member:
        rows = spark.readStream.format("semcast").option("start", "new").load(group)
        writer = (
            rows.select("payload").writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
        )
        query = writer.trigger(processingTime=f"{round(TRIGGER * 1000)} milliseconds").start()
        try:
            time.sleep(5)  # it begins with what comes
            for number in range(ASKED):
                payload = b"%d" % number
                sent[payload] = time.time()
                member.send(payload)
                end = time.time() + 30
                while payload not in arrived and time.time() < end:
                    time.sleep(0.01)
                time.sleep(0.037)
        finally:
            query.stop()
    return [arrived[payload] - at for payload, at in sent.items() if payload in arrived][3:]
