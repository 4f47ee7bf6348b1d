"""A log as a source of rows: a stream that begins at its checkpoint, or a batch from one position to another.

An offset is `{"log": identity, "position": n}`: everything before `n` has been read. `began` is the position
with which the query began; with heartbeats `beat` is the time in microseconds that a row without a message
told.

Spark has the ends of batches in its checkpoint, and where the first one began only in memory: a query that is
killed in its first batch asks `initialOffset` again, when `new`, or what is left of a log that was trimmed,
begins elsewhere. So ends say where it began.

What Spark calls when (PySpark 4.3): `latestOffset` must obey its limit, and with AvailableNow stop at the
end that `prepareForTriggerAvailableNow` saw; `commit` comes one batch late and never for the last, `stop`
perhaps never. So nothing is trimmed here, and no connection is closed: that of a process ends with it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from semcast.blocking_log import BlockingLog
from semcast.group.logpages import LogEnds
from semcast.pipeline.stream.connection import connection, connection_to, identity
from semcast.pipeline.stream.options import SourceOptions, Start, Where
from semcast.pipeline.stream.ranges import Beat, Range, cut, ended_before, lost, read

Offset = dict[str, Any]
_MICRO = 1000


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Of one query, in a process beside the driver; `read` is called in executors, on a copy."""

    def __init__(self, where: Where, options: SourceOptions) -> None:
        self._where = where
        self._options = options
        self._now = False  # whether only what was there at the beginning is read
        self._ceiling: int | None = None
        self._log = ""

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a query without a checkpoint begins."""
        log = connection(self._where)
        return {"log": identity(log), "position": _position(log, self._options.start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What `maxRowsPerTrigger` says."""
        return ReadMaxRows(self._options.max_rows) if self._options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is the end now, and then stop."""
        self._now = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Where the next batch ends: everything before that is on the logger's disk."""
        begin = int(start["position"])
        began = int(start.get("began", begin))
        self._log = str(start["log"])
        ends = connection_to(self._where, self._log).ends()
        if begin > max(began, ends.next):
            raise ended_before(self._where, ends.next, begin)
        if self._now and self._ceiling is None:
            self._ceiling = ends.next
        end = ends.next if self._ceiling is None else min(ends.next, self._ceiling)
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        if begin < ends.first and begin < end:
            lost(self._options, f"messages at positions {begin} to {ends.first - 1} were trimmed")
        found = {**start, "position": max(begin, end), "began": began}
        if found["position"] == begin == ends.next and self._ceiling is None:
            self._beat(found, ends)
        return found

    def _beat(self, offset: Offset, ends: LogEnds) -> None:
        """Nothing was logged for a while: the offset moves by its time alone."""
        every = self._options.heartbeat
        before = max(int(offset.get("beat", 0)) * _MICRO, ends.newest)
        if every and ends.settled - before >= every:
            offset["beat"] = ends.settled // _MICRO

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The end of the log, for the progress of the query."""
        if not self._log:
            return None
        return {"log": self._log, "position": connection_to(self._where, self._log).ends().next}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """What executors read: the same for the same offsets, and for the first batch whatever its start."""
        log, hi = str(end["log"]), int(end["position"])
        began = end.get("began")
        lo = int(start["position"] if began is None or "began" in start else began)
        found: list[InputPartition] = list(cut(log, lo, hi, self._options.partitions))
        if end.get("beat", 0) != start.get("beat", 0):
            found.append(Beat(hi, int(end["beat"]) * _MICRO))
        return found or [Range(log, hi, hi)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In an executor."""
        return read(self._where, self._options, partition)


class LogBatchReader(DataSourceReader):
    """From one position to another, once."""

    def __init__(self, where: Where, options: SourceOptions) -> None:
        self._where = where
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """What executors read: from `start` up to `end`, or what is the end now."""
        log = connection(self._where)
        ends, end = log.ends(), self._options.end
        hi = ends.next if end is None else min(ends.next, _position(log, end))
        lo = min(_position(log, self._options.start), hi)
        if lo < ends.first and lo < hi:
            lost(self._options, f"messages at positions {lo} to {ends.first - 1} were trimmed")
        which = identity(log)
        # Of no partitions Spark makes one, of its own.
        return cut(which, lo, hi, self._options.partitions) or [Range(which, lo, lo)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In an executor."""
        return read(self._where, self._options, partition)


def _position(log: BlockingLog, start: Start) -> int:
    if isinstance(start, int):
        return start
    if isinstance(start, datetime):
        return log.at_time(start)
    ends = log.ends()
    return ends.first if start == "all" else ends.next
