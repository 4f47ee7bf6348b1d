"""Traces of messages: one schema, read from CSV, JSON lines or Parquet with people's own column names.

A row is a message: the stream it is in, its place there (`seq`), when (`ts`, seconds), the item it writes
(`key`, empty if none), its size and its kind. Only an `update` overwrites, and only `update`s of the same
key; `create`, `remove` and `event` stay. Rows that are not such a thing are bad: counted, shown, left out.
"""

from collections.abc import Callable, Collection, Set
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

from semcast.pipeline.paths import is_remote
from semcast.pipeline.profile.partial import KINDS
from semcast.pipeline.profile.readers import Table, parquet_table, partitioned, text_tables
from semcast.pipeline.profile.rowgroups import RowGroups, UnreadableError, row_groups_of
from semcast.pipeline.profile.scan import Layout
from semcast.pipeline.profile.sources import Format, Source, TraceError, find_sources

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


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of some files with the same columns."""

    judged: Callable[[], DataFrame]
    """Each row judged by itself: the columns of the schema as far as rows say them (and `group` where it was
    asked for), `file`, `block`, `blank` (no row), `good`, and `problem` where it is neither; `line` where
    Spark knows it."""

    layout: Layout
    sources: tuple[Source, ...] = ()
    text: bool = False
    row_groups: RowGroups | None = None
    """How to read them without Spark, if that can be done."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Files that were found, and how to read them. Nothing has been read of them but names and types."""

    spark: SparkSession
    tables: tuple[FileRows, ...]
    max_bad: int

    @property
    def in_place(self) -> bool:
        """Whether all of it can be read without Spark's reader."""
        return all(table.row_groups is not None for table in self.tables)

    @property
    def sources(self) -> list[Source]:
        """Every file."""
        return [source for table in self.tables for source in table.sources]


def read_trace(
    spark: SparkSession, named: list[str], columns: Columns | None = None, *, max_bad: int = 0
) -> Trace:
    """Find files and folders of traces.

    Raises:
        TraceError: there is nothing to read, or a column is missing.
    """
    columns = columns or Columns()
    sources = find_sources(spark, named)
    tables = [_rows(table, columns) for table in text_tables(spark, sources)]
    columnar = [source for source in sources if source.format is Format.PARQUET]
    for root in dict.fromkeys(source.root for source in columnar):
        tables.append(_parquet(spark, tuple(each for each in columnar if each.root == root), columns))
    return Trace(spark, tuple(tables), max_bad)


def check_rows(rows: DataFrame, *, max_bad: int = 0) -> Trace:
    """The same for rows that have the columns of the schema already (and `group`, or not)."""
    somewhere = {name: fn.lit(None).cast(of) for name, of in (("file", "string"), ("block", "long"))}
    cells = {name: fn.col(name) for name in rows.columns}
    table = Table(rows.withColumns(somewhere), cells, malformed=fn.lit(False), blank=fn.lit(False))
    columns = Columns(**{name: name for name in rows.columns})
    return Trace(rows.sparkSession, (_rows(table, columns),), max_bad)


def _parquet(spark: SparkSession, sources: tuple[Source, ...], columns: Columns) -> FileRows:
    row_groups = _row_groups(sources, columns)
    if row_groups is None:
        return _rows(parquet_table(spark, sources), columns)
    return FileRows(
        lambda: _judged(parquet_table(spark, sources), columns),
        _layout(row_groups.roles, sources),
        sources,
        row_groups=row_groups,
    )


def _row_groups(sources: tuple[Source, ...], columns: Columns) -> RowGroups | None:
    """The row groups of these files, or None if Spark has to read some of them."""
    if partitioned(sources) or any(is_remote(source.path) for source in sources):
        return None
    named = {field.name: getattr(columns, field.name) for field in fields(columns)}
    try:
        return row_groups_of([(source.path, source.stream) for source in sources], named, _REQUIRED)
    except UnreadableError as error:
        raise TraceError(str(error)) from error


def _rows(table: Table, columns: Columns) -> FileRows:
    played = [role for role, cell in _cells(table, columns).items() if cell is not None]
    layout = _layout(played, table.sources, header=table.header)
    return FileRows(lambda: _judged(table, columns), layout, table.sources, table.text)


def _layout(played: Collection[str], sources: tuple[Source, ...], *, header: bool = False) -> Layout:
    streams = None if "stream" in played else {source.path: source.stream for source in sources}
    ordinals = None if "seq" in played else {source.path: source.ordinal for source in sources}
    return Layout(header, streams, ordinals)


def _cells(table: Table, columns: Columns) -> dict[str, Column | None]:
    return {field.name: _cell(table, columns, field.name) for field in fields(columns)}


def _judged(table: Table, columns: Columns) -> DataFrame:
    """The columns of the schema, where each row stands, and whether it is `good` or what its `problem` is."""
    cells = _cells(table, columns)
    frame = table.frame.select(
        "file",
        "block",
        *([] if table.line is None else [table.line.alias("line")]),
        table.malformed.alias("malformed"),
        table.blank.alias("blank"),
        *(_or_nothing(role, cell).alias(f"raw_{role}") for role, cell in cells.items()),
    )
    roles = [role for role in cells if role != "group" or columns.group is not None]
    typed = frame.select("*", *(_typed(frame.schema, role).alias(role) for role in roles))
    played = {role for role, cell in cells.items() if cell is not None}
    good = _good(roles, played)
    return typed.select(
        *roles,
        "file",
        "block",
        *([] if table.line is None else ["line"]),
        "blank",
        good.alias("good"),
        fn.when(~good & ~fn.col("blank"), _problem(roles, played)).alias("problem"),
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


def _or_nothing(role: str, cell: Column | None) -> Column:
    if cell is not None:
        return cell
    return fn.lit(0 if role == "bytes" else None).cast("long" if role in ("seq", "bytes") else "string")


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


def _good(roles: list[str], played: Set[str]) -> Column:
    """Whether `_problem` finds nothing: the same, but fast."""
    good = (
        ~fn.col("blank")
        & ~fn.col("malformed")
        & fn.col("ts").isNotNull()
        & fn.coalesce(fn.col("bytes") >= 0, fn.lit(False))
        & ((fn.col("kind") == "update") & (fn.col("key") != "") | fn.col("kind").isin(*KINDS[1:]))
    )
    if "stream" in played:
        good &= fn.col("stream") != ""
    if "seq" in played:
        good &= fn.coalesce(fn.col("seq") >= 0, fn.lit(False))
    return good & (fn.col("group") != "") if "group" in roles else good


def _problem(roles: list[str], played: Set[str]) -> Column:
    """The first thing that is wrong with a row."""
    stream, seq, size, kind = fn.col("stream"), fn.col("seq"), fn.col("bytes"), fn.col("kind")
    checks = [
        fn.when(fn.col("malformed"), fn.lit("cannot be parsed")),
        *([fn.when(stream == "", fn.lit("no stream"))] if "stream" in played else []),
        *(_number_problems(seq) if "seq" in played else []),
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


def _number_problems(seq: Column) -> list[Column]:
    return [
        fn.when(_missing(fn.col("raw_seq")), fn.lit("no seq")),
        fn.when(seq.isNull(), _told("seq is not a whole number", "raw_seq")),
        fn.when(seq < 0, _told("seq is negative", "raw_seq")),
    ]


def _told(problem: str, column: str) -> Column:
    return fn.concat(fn.lit(f"{problem}: "), fn.substring(fn.col(column).cast("string"), 1, _SHOWN))
