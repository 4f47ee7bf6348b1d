"""Loggers, publishers and queries for tests of streams."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from tests.live.test_live_logger import PATIENCE, Process

from semcast import blocking

FORGETS_NOTHING = ("--retention", "limits", "--messages", "10000000")


class Desk:
    """A group with a logger, which is killed and started again on its folder.

    Args:
        folder: of the logger.
        more: what else its command line says.
    """

    def __init__(self, folder: Path, *more: str) -> None:
        self.group = f"stream-{uuid.uuid4().hex}"
        self.folder = folder
        self._more = ("--name", "log1", *more)
        self._process: Process | None = None
        self.start()

    def start(self, blocks: int = 0) -> None:
        """On a disk that has room for files of so many kilobytes, about, if that is said."""
        assert self._process is None
        self._process = Process(self.folder, self.group, *self._more, blocks=blocks)
        self._process.says()

    def over(self) -> tuple[int, str]:
        """It ends by itself: its exit code, and what it said."""
        assert self._process is not None
        process, self._process = self._process, None
        return process.over()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def publish(self, *messages: tuple[str | None, bytes]) -> None:
        """As a member, in order; returns when all are on disk."""
        given: dict[str, Any] = {"stack": "gossip", "name": "feed", "receive": False}
        with blocking.join(self.group, **given) as group:
            for item, payload in messages[:-1]:
                group.send(payload, item=item, timeout=PATIENCE)
            item, payload = messages[-1]
            group.send(payload, item=item, timeout=PATIENCE, logged=True)

    def events(self, first: int, count: int) -> None:
        """Messages that say a number each, and that nothing replaces."""
        self.publish(*[(None, b"%d" % number) for number in range(first, first + count)])

    def logged(self) -> list[bytes]:
        """What is in the log."""
        with blocking.log(self.group, timeout=PATIENCE) as log:
            pages = log.scan(log.ends().first, 1 << 40)
            return [entry.message.payload for page in pages for entry in page.entries]


@contextmanager
def desk(folder: Path, *more: str) -> Iterator[Desk]:
    made = Desk(folder, *more)
    try:
        yield made
    finally:
        made.kill()


def stream(spark: SparkSession, group: str, **options: object) -> DataFrame:
    reader = spark.readStream.format("semcast")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(group)


def collected(frame: DataFrame, checkpoint: Path) -> list[Row]:
    """What a query gives until it has read all that is there, batch by batch."""
    found: list[Row] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(batch.collect())

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


def payloads(rows: Sequence[Row]) -> list[bytes]:
    return [bytes(row["payload"]) for row in rows if row["payload"] is not None]
