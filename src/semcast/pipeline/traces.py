"""Traces of messages: one schema, read from CSV, JSON lines or Parquet with people's own column names.

A row is a message: the stream it is in, its place there (`seq`), when (`ts`, seconds), the item it writes
(`key`, empty if none), its size and its kind. Only an `update` overwrites, and only `update`s of the same
key; `create`, `remove` and `event` stay. Rows that are not such a thing are bad: counted, shown, left out.
"""

from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from semcast.pipeline.readers import Table, read_tables, together
from semcast.pipeline.sources import TraceError, find_sources
from semcast.pipeline.survey import Trace, survey

KINDS = ("update", "create", "remove", "event")

TRACE = StructType(
    [
        StructField("stream", StringType()),
        StructField("seq", LongType()),
        StructField("ts", DoubleType()),
        StructField("key", StringType()),
        StructField("bytes", LongType()),
        StructField("kind", StringType()),
    ]
)


@dataclass(frozen=True, slots=True)
class Columns:
    """What people call the columns; None stands for our name where it is there, else for the default.

    Without `seq`, rows count in the order of the files; without `stream`, a file is a stream; without
    `bytes`, messages have no size; without `kind`, rows with a key are updates, others events.
    """

    stream: str | None = None
    seq: str | None = None
    ts: str | None = None
    key: str | None = None
    bytes: str | None = None
    kind: str | None = None
    group: str | None = None
    """The operation that a message is part of: read only if it is named."""


def read_trace(
    spark: SparkSession, named: list[str], columns: Columns = Columns(), *, max_bad: int = 0
) -> Trace:
    """Read files and folders of traces, and check every row.

    Raises:
        TraceError: nothing to read, a column is missing, or more than `max_bad` rows are bad.
    """
    sources = find_sources(spark, named)
    numbered = columns.seq is None or columns.stream is None
    tables = read_tables(spark, sources, numbered=numbered)
    expected = None
    return survey(together([_rows(table, columns) for table in tables]), max_bad=max_bad, expected=expected)
