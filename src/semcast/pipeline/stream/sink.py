"""Rows of Spark as messages of a log: every batch of a query is published once, whole.

Tasks give their rows to *stages* of the logger. When all tasks of a batch are done, one word publishes their
stages, with the key (query, batch). The logger has key and messages on disk together: a driver that does not
know whether its batch was published does it again, and nothing is logged twice. A query with a new checkpoint
is another query, whose batches are its own.

With the option `keys`, payloads begin with a key (`semcast.patterns.repeats`): the query, the batch and the
row, so that members can tell what comes twice after the logger has lost its disk. A row is numbered by its
partition and its place there; where Spark may give rows in another order when it does a batch again, the
program numbers them itself, in a column `row`.

Spark makes a writer for each batch and each task; `commit` knows the batch and not the query, so tasks say
which it is. Stages of tasks that failed, or ran twice, are not published, and the logger gives them up.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.logclient import LogError
from semcast.patterns.repeats import key_head, row_number
from semcast.pipeline.stream.connection import connection, connection_to, identity
from semcast.pipeline.stream.options import SinkOptions, Where

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
_TOKEN = 24
"""Characters that tell the stages of a query apart. What tasks left that failed goes with its next batch."""


_PLAIN = SinkOptions()


@dataclass
class Staged(WriterCommitMessage):
    """What a task has staged."""

    log: str
    query: str
    partition: int
    stage: str
    pieces: int


def check_columns(schema: StructType, options: SinkOptions = _PLAIN) -> None:
    """Raise ConfigurationError unless rows can be messages."""
    kinds = {field.name: field.dataType for field in schema.fields}
    payload, item = kinds.pop("payload", None), kinds.pop("item", StringType())
    row = kinds.pop("row", LongType()) if options.keys else LongType()
    numbers = isinstance(row, LongType | IntegerType)
    texts = isinstance(payload, BinaryType | StringType) and isinstance(item, StringType)
    if not texts or not numbers or kinds:
        hint = " (a column row needs the option keys)" if "row" in kinds else ""
        more = ", row (bigint)" if options.keys else ""
        raise ConfigurationError(
            "rows to publish have the columns payload (binary or string) and, if they are about items, item"
            f" (string){more}, and no others{hint}: select them; these have {', '.join(schema.fieldNames())}"
        )


class _Rows:
    """Gives rows to a logger.

    Args:
        where: which log.
        options: how they become messages.
        job: whose rows they are; without, those of a query, which tasks know.
    """

    def __init__(self, where: Where, options: SinkOptions, job: str = "") -> None:
        self.where = where
        self._options = options
        self._job = job

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged | None:
        """In a task: all its rows; None if it has none."""
        context = TaskContext.get()
        assert context is not None, "only tasks write"
        query = self._job or context.getLocalProperty(_QUERY) or ""
        log, stage, pieces = None, f"{query}/{uuid4().hex[:_TOKEN]}", 0
        keys = self._keys(context, query) if self._options.keys else None
        for batch in batches:
            if not batch.num_rows:
                continue
            if log is None:
                log = connection(self.where)
            payloads, items = _columns(batch)
            if keys is not None:
                payloads = keys.put(batch, payloads)
            pieces = log.stage(stage, payloads, items, first=pieces)
        if keys is not None:
            keys.check()
        if log is None:
            return None
        if not self.where.logger and len(log.loggers) > 1:
            names = ", ".join(sorted(log.loggers))
            raise ConfigurationError(
                f'{self.where.group} has several loggers, {names}: say which one, .option("logger", "...");'
                " each knows only its own batches"
            )
        return Staged(identity(log), query, context.partitionId(), stage, pieces)

    def _keys(self, context: TaskContext, query: str) -> "_Keys":
        batch = str(self._options.batch) if self._job else context.getLocalProperty(_BATCH)
        if not query or batch is None:
            raise LogError("Spark does not say which query and batch this is: rows cannot have keys")
        return _Keys(UUID(query), int(batch), context.partitionId())

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


class _Keys:
    """Of the rows of one task."""

    def __init__(self, query: UUID, batch: int, partition: int) -> None:
        self._query = query
        self._batch = batch
        self._partition = partition
        self._next = 0
        self._given: list[np.ndarray] = []

    def put(self, batch: pa.RecordBatch, payloads: Sequence[bytes]) -> list[bytes]:
        """Rows with their keys in front: by place, or with the numbers that the program gives."""
        if "row" in batch.schema.names:
            head = key_head(self._query, self._batch, None)
            rows: Iterable[int] = self._numbers(batch.column("row"))
        else:
            head = key_head(self._query, self._batch, self._partition)
            rows = range(self._next, self._next + len(payloads))
            self._next += len(payloads)
        return [head + row_number(row) + payload for row, payload in zip(rows, payloads, strict=True)]

    def _numbers(self, column: pa.Array) -> list[int]:
        if column.null_count:
            raise ValueError(f"{column.null_count} rows have no number: row is null")
        numbers = column.to_numpy(zero_copy_only=False).astype(np.int64)
        self._given.append(numbers)
        return list(map(int, numbers))

    def check(self) -> None:
        """When all rows are there. Raises ValueError if the program gave two of them one number."""
        if not self._given:
            return
        every = np.sort(np.concatenate(self._given))
        twice = every[1:][every[1:] == every[:-1]]
        if len(twice):
            raise ValueError(
                f"two rows have the number {twice[0]}: members would take one for a repeat of the other"
            )


class LogStreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def __init__(self, where: Where, options: SinkOptions = _PLAIN) -> None:
        self._rows = _Rows(where, options)

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
    """For `df.write`: one batch. Without `query` and `batch` it has a key that nobody asks for later."""

    def __init__(self, where: Where, options: SinkOptions = _PLAIN) -> None:
        self._batch = "" if options.query is None else str(options.batch)
        self._rows = _Rows(where, options, str(options.query or uuid4()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return self._rows.stage(iterator) or WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        self._rows.publish(messages, self._batch)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A task failed for good."""
        self._rows.give_up(messages)
