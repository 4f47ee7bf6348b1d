"""Traces of messages: one schema, read from CSV, JSON lines or Parquet with people's own column names.

A row is a message: the stream it is in, its place there (`seq`), when (`ts`, seconds), the item it writes
(`key`, empty if none), its size and its kind. Only an `update` overwrites, and only `update`s of the same
key; `create`, `remove` and `event` stay. Rows that are not such a thing are bad: counted, shown, left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    FractionalType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from semcast.pipeline.profile.readers import Table, read_tables, together, unplaced
from semcast.pipeline.profile.sources import TraceError, find_sources
from semcast.pipeline.profile.validate import Trace, survey

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

_REQUIRED = ("ts", "key")
_OPTIONS = {"ts": "time"}
_SHOWN = 40
"""How many characters of a value are shown of a bad row."""


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
    spark: SparkSession, named: list[str], columns: Columns | None = None, *, max_bad: int = 0
) -> Trace:
    """Read files and folders of traces, and check every row.

    Raises:
        TraceError: nothing to read, a column is missing, or more than `max_bad` rows are bad.
    """
    columns = columns or Columns()
    tables = read_tables(spark, find_sources(spark, named), lambda names: _needs_place(columns, names))
    counts = [table.rows for table in tables]
    expected = None if None in counts else sum(count or 0 for count in counts)
    return survey(
        together([_judged(table.frame, table, columns) for table in tables]),
        located=together([_judged(table.located, table, columns) for table in tables]),
        max_bad=max_bad,
        expected=expected,
        slow=any(count is not None for count in counts),  # text has to be parsed
    )


def check_rows(rows: DataFrame, *, max_bad: int = 0) -> Trace:
    """The same for rows that have the columns of the schema already (and `group`, or not)."""
    unknown = {"block": "long", "file": "string", "line": "long"}
    somewhere = {name: fn.lit(None).cast(of_type) for name, of_type in unknown.items()}
    frame = unplaced(rows.withColumns(somewhere))
    cells = {name: fn.col(name) for name in rows.columns}
    table = Table(frame, frame, cells, malformed=fn.lit(False), nothing=fn.lit(False), rows=None)
    judged = _judged(frame, table, Columns(**{name: name for name in rows.columns}))
    return survey(judged, located=judged, max_bad=max_bad)


def _needs_place(columns: Columns, names: Sequence[str]) -> bool:
    return not {columns.seq or "seq", columns.stream or "stream"} <= set(names)


def _judged(rows: DataFrame, table: Table, columns: Columns) -> DataFrame:
    """The columns of the schema, where each row stands, and whether it is `good` or what its `problem` is."""
    cells = {field.name: _cell(table, columns, field.name) for field in fields(columns)}
    frame = rows.select(
        "block",
        "file",
        "line",
        table.malformed.alias("malformed"),
        table.nothing.alias("nothing"),
        *(_or_default(role, cell).alias(f"raw_{role}") for role, cell in cells.items()),
    )
    roles = [role for role in cells if role != "group" or columns.group is not None]
    typed = frame.select("*", *(_typed(frame.schema, role).alias(role) for role in roles))
    return typed.select(
        *roles,
        "block",
        "file",
        "line",
        "nothing",
        _good(roles).alias("good"),
        _problem(roles).alias("problem"),
    )


def _cell(table: Table, columns: Columns, role: str) -> Column | None:
    """The column that plays a role, or None where the default applies."""
    named: str | None = getattr(columns, role)
    if named is None and role == "group":
        return None
    found = table.cells.get(named or role)
    if found is None and (named is not None or role in _REQUIRED):
        option = _OPTIONS.get(role, role)
        raise TraceError(
            f"no column {named or role!r} for the {option}; there are {', '.join(table.cells)}"
            f": say which it is with --{option}"
        )
    return found


def _or_default(role: str, cell: Column | None) -> Column:
    if cell is not None:
        return cell
    defaults = {"stream": fn.col("source"), "seq": fn.col("place"), "bytes": fn.lit(0).cast("long")}
    return defaults.get(role, fn.lit(None).cast("string"))


def _typed(schema: StructType, role: str) -> Column:
    raw, of_type = fn.col(f"raw_{role}"), schema[f"raw_{role}"].dataType
    if role == "seq":
        return _whole(raw, of_type)
    if role == "bytes":
        return fn.when(_missing(raw), fn.lit(0)).otherwise(_whole(raw, of_type))
    if role == "ts":
        return _seconds(raw, of_type)
    if role == "kind":
        keyed = fn.when(_missing(fn.col("raw_key")), fn.lit("event")).otherwise(fn.lit("update"))
        return fn.when(_missing(raw), keyed).otherwise(raw.cast("string"))
    return fn.coalesce(raw.cast("string"), fn.lit(""))


def _whole(raw: Column, of_type: DataType) -> Column:
    """As a whole number, or null."""
    if isinstance(of_type, IntegralType):
        return raw.cast("long")
    if isinstance(of_type, FractionalType):
        return fn.when(raw == fn.floor(raw), raw.try_cast("long"))
    return fn.trim(raw.cast("string")).try_cast("long")


def _seconds(raw: Column, of_type: DataType) -> Column:
    """As seconds, or null; points in time are counted from 1970."""
    if isinstance(of_type, TimestampType | TimestampNTZType | DateType):
        seconds = raw.cast("timestamp").cast("double")
    elif isinstance(of_type, StringType):
        text = fn.trim(raw)
        seconds = fn.coalesce(text.try_cast("double"), text.try_cast("timestamp").cast("double"))
    else:
        seconds = raw.try_cast("double")
    return fn.when(fn.abs(seconds) < float("inf"), seconds)


def _missing(raw: Column) -> Column:
    return raw.isNull() | (raw.cast("string") == "")


def _good(roles: list[str]) -> Column:
    """Whether `_problem` finds nothing: the same, but fast."""
    good = (
        ~fn.col("nothing")
        & ~fn.col("malformed")
        & (fn.col("stream") != "")
        & fn.coalesce(fn.col("seq") >= 0, fn.lit(False))
        & fn.col("ts").isNotNull()
        & fn.coalesce(fn.col("bytes") >= 0, fn.lit(False))
        & ((fn.col("kind") == "update") & (fn.col("key") != "") | fn.col("kind").isin(*KINDS[1:]))
    )
    return good & (fn.col("group") != "") if "group" in roles else good


def _problem(roles: list[str]) -> Column:
    """The first thing that is wrong with a row."""
    stream, seq, size, kind = fn.col("stream"), fn.col("seq"), fn.col("bytes"), fn.col("kind")
    checks = [
        fn.when(fn.col("malformed"), fn.lit("cannot be parsed")),
        fn.when(stream == "", fn.lit("no stream")),
        fn.when(_missing(fn.col("raw_seq")), fn.lit("no seq")),
        fn.when(seq.isNull(), _told("seq is not a whole number", "raw_seq")),
        fn.when(seq < 0, _told("seq is negative", "raw_seq")),
        fn.when(_missing(fn.col("raw_ts")), fn.lit("no time")),
        fn.when(fn.col("ts").isNull(), _told("not a time", "raw_ts")),
        fn.when(size.isNull(), _told("bytes is not a whole number", "raw_bytes")),
        fn.when(size < 0, _told("bytes is negative", "raw_bytes")),
        fn.when(~kind.isin(*KINDS), _told("unknown kind", "kind")),
        fn.when((kind == "update") & (fn.col("key") == ""), fn.lit("an update without a key")),
    ]
    if "group" in roles:
        checks.append(fn.when(fn.col("group") == "", fn.lit("no group")))
    return fn.coalesce(*checks)


def _told(problem: str, column: str) -> Column:
    return fn.concat(fn.lit(f"{problem}: "), fn.substring(fn.col(column).cast("string"), 1, _SHOWN))
