"""Rows of Spark as messages of a log: every batch of a query is published once, whole.

Tasks give their rows to *stages* of the logger. When all tasks of a batch are done, one word publishes their
stages, with the key (query, batch). The logger has key and messages on disk together: a driver that does not
know whether its batch was published does it again, and nothing is logged twice. A query with a new checkpoint
is another query, whose batches are its own.

Spark makes a writer for each batch and each task; `commit` knows the batch and not the query, so tasks say
which it is. Stages of tasks that failed, or ran twice, are not published, and the logger gives them up.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StringType, StructType

from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.logclient import LogError
from semcast.pipeline.stream.connection import connection, connection_to, identity
from semcast.pipeline.stream.options import Where

_QUERY = "sql.streaming.queryId"
_TOKEN = 24
"""Characters that tell the stages of a query apart. What tasks left that failed goes with its next batch."""


@dataclass
class Staged(WriterCommitMessage):
    """What a task has staged."""

    log: str
    query: str
    partition: int
    stage: str
    pieces: int


def check_columns(schema: StructType) -> None:
    """Raise ConfigurationError unless rows can be messages."""
    kinds = {field.name: field.dataType for field in schema.fields}
    payload, item = kinds.pop("payload", None), kinds.pop("item", StringType())
    if not isinstance(payload, BinaryType | StringType) or not isinstance(item, StringType) or kinds:
        raise ConfigurationError(
            "rows to publish have the columns payload (binary or string) and, if they are about items, item"
            f" (string), and no others: select them; these have {', '.join(schema.fieldNames())}"
        )


class _Rows:
    """Gives rows to a logger.

    Args:
        where: which log.
        job: whose rows they are; without, those of a query, which tasks know.
    """

    def __init__(self, where: Where, job: str = "") -> None:
        self.where = where
        self._job = job

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged | None:
        """In a task: all its rows; None if it has none."""
        context = TaskContext.get()
        assert context is not None, "only tasks write"
        query = self._job or context.getLocalProperty(_QUERY) or ""
        log, stage, pieces = None, f"{query}/{uuid.uuid4().hex[:_TOKEN]}", 0
        for batch in batches:
            if not batch.num_rows:
                continue
            if log is None:
                log = connection(self.where)
            pieces = log.stage(stage, *_columns(batch), first=pieces)
        if log is None:
            return None
        if not self.where.logger and len(log.loggers) > 1:
            names = ", ".join(sorted(log.loggers))
            raise ConfigurationError(
                f'{self.where.group} has several loggers, {names}: say which one, .option("logger", "...");'
                " each knows only its own batches"
            )
        return Staged(identity(log), query, context.partitionId(), stage, pieces)

    def publish(self, messages: Sequence[WriterCommitMessage | None], batch: str) -> None:
        """In the driver: all that tasks have staged, in the order of partitions.

        The logger knows the last batch of a query for as long as there are not thousands of other queries.
        """
        staged = _staged(messages)
        if not staged:
            return
        if len({(each.log, each.query) for each in staged}) > 1:
            raise LogError(f"tasks of one batch found several logs of {self.where.group}")
        log = connection_to(self.where, staged[0].log)
        key = f"{staged[0].query}/{batch}" if batch else staged[0].query
        log.publish_staged(key.encode(), [(each.stage, each.pieces) for each in staged])

    def give_up(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What was staged is not published; a logger that is away forgets it by itself."""
        staged = _staged(messages)
        if staged:
            with suppress(GroupError):
                connection_to(self.where, staged[0].log).abandon([each.stage for each in staged])


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    found = [each for each in messages if isinstance(each, Staged)]
    return sorted(found, key=lambda each: each.partition)


def _columns(batch: pa.RecordBatch) -> tuple[list[bytes], list[str | None] | None]:
    payload = batch.column("payload")
    if payload.null_count:
        raise ValueError(f"{payload.null_count} rows have no payload: an empty one is b''")
    items = batch.column("item").to_pylist() if "item" in batch.schema.names else None
    if items is not None and "" in items:
        raise ValueError("an item is '': rows that are about no item have null")
    return pc.cast(payload, pa.binary()).to_pylist(), items


class LogStreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def __init__(self, where: Where) -> None:
        self._rows = _Rows(where)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return self._rows.stage(iterator) or WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """All tasks of a batch are done."""
        self._rows.publish(messages, str(batchId))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """A task failed for good."""
        self._rows.give_up(messages)


class LogBatchWriter(DataSourceArrowWriter):
    """For `df.write`: one batch, with a key of its own that nobody asks for later."""

    def __init__(self, where: Where) -> None:
        self._rows = _Rows(where, uuid.uuid4().hex)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return self._rows.stage(iterator) or WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        self._rows.publish(messages, "")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A task failed for good."""
        self._rows.give_up(messages)
