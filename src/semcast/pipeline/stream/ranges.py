"""Positions from one to another, and how executors read them."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from semcast.group.logclient import LogError, LogOffsetError
from semcast.group.logpages import LogRun
from semcast.pipeline.stream.connection import connection_to
from semcast.pipeline.stream.options import SourceOptions, Where
from semcast.pipeline.stream.rows import KEYED, SCHEMA, heartbeat_row, rows_of, with_keys

_LEAST = 8192
"""Positions that are worth a task of their own."""
_BATCH = 1 << 15
"""Rows of one Arrow batch, about."""
_BYTES = 1 << 24
_LOG = logging.getLogger("semcast.stream")


class DataLossError(LogError):
    """Messages that a query had not read were trimmed."""


class ShorterLogError(LogError):
    """The log ends before what a query has read of it."""


def ended_before(where: Where, end: int, position: int) -> ShorterLogError:
    """What to say of a logger whose disk is an older copy: it gives positions again that were read."""
    return ShorterLogError(
        f"the log of {where.group} ends at position {end}, and this query has positions up to {position}"
        " of it: its logger has an older copy of its disk, and gives positions again. Begin again with a"
        " new checkpoint, or put the newer disk back"
    )


@dataclass
class Range(InputPartition):
    """Positions of one log, from `lo` to before `hi`."""

    log: str
    lo: int
    hi: int


@dataclass
class Beat(InputPartition):
    """A row that tells the time."""

    position: int
    at: int


def cut(log: str, lo: int, hi: int, most: int) -> list[Range]:
    """As ranges for several tasks, if there is enough for them.

    >>> [(each.lo, each.hi) for each in cut("log#1", 10, 30_010, 2)]
    [(10, 15010), (15010, 30010)]
    >>> len(cut("log#1", 0, 100, 8)), cut("log#1", 5, 5, 8)
    (1, [])
    """
    if lo >= hi:
        return []
    tasks = max(1, min(most or os.cpu_count() or 1, (hi - lo) // _LEAST))
    edges = [lo + (hi - lo) * number // tasks for number in range(tasks + 1)]
    return [Range(log, begin, end) for begin, end in pairwise(edges)]


def read(where: Where, options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, in an executor.

    They are the same whoever reads them, and when, but for messages that others replaced meanwhile: those are
    in a later range.
    """
    if isinstance(partition, Beat):
        yield heartbeat_row(partition.position, partition.at, KEYED if options.keys else SCHEMA)
        return
    assert isinstance(partition, Range)
    batches = _batches(where, options, partition)
    yield from map(with_keys, batches) if options.keys else batches


def _batches(where: Where, options: SourceOptions, partition: Range) -> Iterator[pa.RecordBatch]:
    runs: list[LogRun] = []
    rows = size = 0
    for run in _runs(where, options, partition):
        runs.append(run)
        rows += len(run.payloads)
        size += sum(map(len, run.payloads))
        if rows >= _BATCH or size >= _BYTES:
            yield rows_of(runs, options.mode)
            runs, rows, size = [], 0, 0
    if runs:
        yield rows_of(runs, options.mode)


def _runs(where: Where, options: SourceOptions, partition: Range) -> Iterator[LogRun]:
    log, lo = connection_to(where, partition.log), partition.lo
    while lo < partition.hi:
        end = log.ends().next
        if end < partition.hi:
            raise ended_before(where, end, partition.hi)
        try:
            for page in log.scan_runs(lo, partition.hi, prefix=options.filter):
                if page.trimmed:
                    lost(options, f"{page.trimmed} messages before position {page.next} were trimmed")
                yield from page.runs
                lo = page.next
        except LogOffsetError:
            first = min(log.ends().first, partition.hi)
            if first <= lo:
                raise
            lost(options, f"messages at positions {lo} to {first - 1} were trimmed")
            lo = first


def lost(options: SourceOptions, what: str) -> None:
    """Messages are gone that nothing replaced: an error, or a line in the log."""
    told = f"{what} before they were read, and nothing replaced them"
    if options.fail_on_data_loss:
        raise DataLossError(
            f"{told}. Keep more in the log (semcast logger --retention), or go on without them:"
            ' .option("failOnDataLoss", "false")'
        )
    _LOG.warning("%s", told)
