"""Histories as they are stored: files by their footers, rows as Spark sees them, what is wrong with one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.core.ids import MemberId
from semcast.history import Event, HistoryError, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.history.reader import files_in
from semcast.history.schema import CRC_MASK, KINDS, AnnotationKind, Kind
from semcast.history.versions import completed, described, refusing_damage
from semcast.history.wellformed import problem
from semcast.pipeline.paths import literal


@dataclass(frozen=True, slots=True)
class Recorded:
    """Files that can be read, and the runs that they are about."""

    files: tuple[Path, ...]
    runs: dict[str, RunInfo]
    """By name; each group of a run that has several is a run here, with a name of its own."""
    rows: int
    stamps: tuple[tuple[int, int], ...]
    """Of each file its size, and when it was written."""

    def check_unchanged(self) -> None:
        """What was read in several passes was the same in all of them.

        Raises:
            HistoryError: a file was written, or is gone, since it was surveyed.
        """
        for file, stamp in zip(self.files, self.stamps, strict=True):
            if not file.exists() or _stamp(file) != stamp:
                raise HistoryError(f"{file}: was changed while it was verified")


def _stamp(file: Path) -> tuple[int, int]:
    told = file.stat()
    return told.st_size, told.st_mtime_ns


def survey(paths: Sequence[Path]) -> Recorded:
    """Look at every footer; raises HistoryError at the first file that is not a history."""
    runs: dict[str, tuple[RunInfo, Path]] = {}
    rows: dict[str, int] = {}
    files = tuple(dict.fromkeys(file.resolve() for path in paths for file in files_in(path)))
    stamps = tuple(map(_stamp, files))
    for file in files:
        info, count = _inspect(file)
        known, first = runs.get(info.run, (info, file))
        united = known.united(info)
        if united is None:
            raise HistoryError(f"{file}: describes run {info.run} differently than {first}")
        runs[info.run] = united, first
        rows[info.run] = rows.get(info.run, 0) + count
    for run, (_, first) in runs.items():
        if not rows[run]:
            raise HistoryError(f"{first}: run {run} has no events")
    return Recorded(files, _by_group(info for info, _ in runs.values()), sum(rows.values()), stamps)


def _by_group(infos: Iterable[RunInfo]) -> dict[str, RunInfo]:
    found: dict[str, RunInfo] = {}
    for info in infos:
        for name, alone in info.apart().items():
            if name in found:
                raise HistoryError(f"there is a run {name}, and also a group of this name in a run")
            found[name] = alone
    return found


def _inspect(file: Path) -> tuple[RunInfo, int]:
    with refusing_damage(file), pq.ParquetFile(file) as parquet:
        info = described(file, parquet)
        foreign = set(_names_in(parquet, "run")) - {info.run}
        if foreign:
            raise HistoryError(
                f"{file}: has rows of run {min(map(str, foreign))}, and is about run {info.run}"
            )
        strange = set(_names_in(parquet, "group")) - {group.name for group in info.groups} - {None}
        if strange:
            raise HistoryError(
                f"{file}: has rows of group {min(map(str, strange))}, which it does not describe"
            )
        return info, parquet.metadata.num_rows


def _names_in(parquet: pq.ParquetFile, column: str) -> Iterable[str | None]:
    """The first and the last name in a column of every row group."""
    place = parquet.schema_arrow.names.index(column)
    for number in range(parquet.metadata.num_row_groups):
        known = parquet.metadata.row_group(number).column(place).statistics
        if known is not None and known.has_min_max and not known.null_count:
            yield from (known.min, known.max)
        else:
            yield from parquet.read_row_group(number, columns=[column]).column(column).unique().to_pylist()


_MESSAGES = (Kind.MULTICAST.value, Kind.DELIVER.value, Kind.PURGE.value)
_REQUIRED = tuple(field.name for field in SCHEMA if not field.nullable)
_UNREADABLE = "an annotation that is unknown here or incomplete"
EVENT = (
    "run",
    "process",
    "index",
    "at_ns",
    "kind",
    "sender",
    "seq",
    "last",
    "order",
    "annotation",
    "view",
    "level",
    "members",
    "bytes",
    "crc",
)


def read_rows(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """The rows as stored; pages whose checksum is wrong are refused."""
    reader = spark.read.option("parquet.page.verify-checksum.enabled", "true")
    # Given, for files of version 1 lack some columns: these are null.
    return reader.schema(from_arrow_schema(SCHEMA)).parquet(*(literal(str(file)) for file in files))


def held_rows(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """The same, read by the driver: of many files with few rows, to open them is most of the work.

    Raises:
        HistoryError: a file is damaged.
    """
    table = pa.concat_tables([_read(file) for file in files])
    return spark.createDataFrame(table.combine_chunks())


def _read(file: Path) -> pa.Table:
    # What may not be null is found out later, and told with its row.
    lenient = pa.schema([field.with_nullable(True) for field in SCHEMA])
    with refusing_damage(file), pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        there = [name for name in SCHEMA.names if name in parquet.schema_arrow.names]
        return completed(parquet.read(columns=there)).select(SCHEMA.names).cast(lenient)


def by_group(rows: DataFrame, runs: Mapping[str, RunInfo]) -> DataFrame:
    """The same rows, in which every group of a run with several is a run of its own.

    `runs` has them by the names that they get.
    """
    several = sorted({info.run for name, info in runs.items() if name != info.run})
    if not several:
        return rows
    name = fn.concat("run", fn.lit("["), "group", fn.lit("]"))
    return rows.withColumn("run", fn.when(fn.col("run").isin(several), name).otherwise(fn.col("run")))


def events_of(rows: DataFrame) -> DataFrame:
    """Rows with processes and senders as (name, incarnation), and runs of messages as seq to last."""
    return rows.select(
        "run",
        process().alias("process"),
        "index",
        "at_ns",
        "kind",
        sender().alias("sender"),
        "seq",
        (fn.col("seq") + fn.col("count") - 1).alias("last"),
        "order",
        "annotation",
        "view",
        "level",
        "members",
        "bytes",
        "crc",
    )


def of_kind(events: DataFrame, *kinds: Kind) -> DataFrame:
    """The events of these kinds."""
    return events.where(fn.col("kind").isin([kind.value for kind in kinds])).select(*EVENT)


def annotated(events: DataFrame) -> DataFrame:
    """The messages that say something about obsolescence: (run, sender, seq, note)."""
    return (
        of_kind(events, Kind.MULTICAST)
        .where("annotation is not null")
        .select("run", "sender", "seq", fn.col("annotation").alias("note"))
    )


def malformed(rows: DataFrame) -> DataFrame:
    """The rows that cannot be events, with file, row (counted from 0) and problem."""
    return (
        rows.select(
            fn.col("_metadata.file_path").alias("file"),
            fn.col("_metadata.row_index").alias("row"),
            _problem().alias("problem"),
        )
        .where("problem is not null")
        .select("file", "row", "problem")
    )


def added_kinds(rows: DataFrame) -> DataFrame:
    """The rows of the kinds that families added."""
    added = [kind.value for kind in KINDS.values() if kind.columns is not None]
    return rows.where(fn.col("kind").isin(added))


Told = tuple[str, frozenset[str] | None, Callable[[Event], str | None] | None]
"""An added kind: its name, its columns, and what its family says of a row."""


def faults_by(
    kinds: Iterable[Kind],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Says what is wrong with single rows of kinds that families added, by what the families say of them.

    The kinds travel along: a worker has not loaded what this program has.
    """
    told = [(kind.value, kind.columns, kind.problem) for kind in kinds if kind.columns is not None]
    return partial(_faults, told)


def _faults(told: Sequence[Told], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for value, columns, wrong in told:
        KINDS.setdefault(value, Kind(value, columns, wrong))
    for batch in batches:
        found = []
        for row in rows_of(pa.Table.from_batches([batch])):
            event = decode(row)
            fault = problem(event)
            if fault is not None:
                found.append(f"run {row.run}: row {event.index} of {event.process}: {fault}")
        if found:
            yield pa.RecordBatch.from_arrays([pa.array(found)], names=["problem"])


def process() -> Column:
    """Whose row it is, as (name, incarnation)."""
    return _member("process", "incarnation")


def sender() -> Column:
    """Whose messages it is about, null if it is about none."""
    return fn.when(fn.col("sender").isNotNull(), _member("sender", "sender_incarnation"))


def member_of(struct: Row) -> MemberId:
    """A process or sender of a row that was collected."""
    return MemberId(struct["name"], struct["incarnation"])


def _problem() -> Column:
    """What is wrong with a row in itself, null if nothing is."""
    checks = [fn.when(fn.col(name).isNull(), fn.lit(f"no {name}")) for name in _REQUIRED]
    return fn.coalesce(*checks, _kind_problem(), _annotation_problem())


def _kind_problem() -> Column:
    kind, sender, count = fn.col("kind"), fn.col("sender"), fn.col("count")
    message = kind.isin(list(_MESSAGES))
    is_author = (sender == fn.col("process")) & (fn.col("sender_incarnation") == fn.col("incarnation"))
    contents = fn.col("crc").isNotNull() & ((fn.col("bytes") < 0) | ~fn.col("crc").between(0, CRC_MASK))
    is_view = kind.isin(Kind.VIEW.value, Kind.TRANSITIONAL.value)
    view = is_view & (fn.col("view").isNull() | fn.col("members").isNull())
    strange = fn.exists(
        "members", lambda m: m.isNull() | m.getField("name").isNull() | m.getField("incarnation").isNull()
    )
    apply = (kind == Kind.APPLY.value) & (sender.isNull() | fn.col("annotation.item").isNull())
    return (
        fn.when(~kind.isin(list(KINDS)), fn.concat(fn.lit("unknown kind "), kind))
        .when(message & sender.isNull(), fn.concat(kind, fn.lit(" without a sender")))
        .when(message & (fn.col("seq") < 1), fn.concat(kind, fn.lit(" of a message below 1")))
        .when(message & (count < 1), fn.concat(kind, fn.lit(" of no messages: at least one is needed")))
        .when(message & contents, fn.lit("a size or a CRC that cannot be"))
        .when((kind == Kind.MULTICAST.value) & ~is_author, fn.lit("multicast by another than its sender"))
        .when(view, fn.concat(kind, fn.lit(" without a number or without members")))
        .when(fn.col("members").isNotNull() & strange, fn.lit("a view with an incomplete member"))
        .when((kind == Kind.BUFFER.value) & (count < 0), fn.lit("buffer of less than no messages"))
        .when(apply, fn.lit("apply without a sender or without a digest"))
    )


def _annotation_problem() -> Column:
    """An annotation that says nothing readable, or speaks for more than one message."""
    kind, note, ids = fn.col("kind"), fn.col("annotation"), fn.col("annotation.ids")
    as_kind = fn.col("annotation.kind")
    whole_ids = fn.coalesce(
        ~fn.exists(
            ids,
            lambda m: (
                m.isNull()
                | m.getField("sender").isNull()
                | m.getField("incarnation").isNull()
                | m.getField("seq").isNull()
            ),
        ),
        fn.lit(False),
    )
    bitmap = fn.col("annotation.base").isNotNull() & fn.col("annotation.bitmap").isNotNull()
    is_item = (as_kind == AnnotationKind.ITEM.value) & fn.col("annotation.item").isNotNull()
    readable = (
        fn.when(
            kind == Kind.PURGE.value, (as_kind == AnnotationKind.BY.value) & whole_ids & (fn.size(ids) == 1)
        )
        .when(kind == Kind.APPLY.value, is_item)
        .when(as_kind == AnnotationKind.ITEM.value, is_item)
        .when(as_kind == AnnotationKind.ENUMERATION.value, whole_ids)
        .when(as_kind == AnnotationKind.K_ENUMERATION.value, bitmap & fn.col("annotation.total").isNotNull())
        .otherwise(fn.lit(False))
    )
    single = kind.isin(Kind.MULTICAST.value, Kind.DELIVER.value) & (fn.col("count") > 1)
    return fn.when(note.isNotNull() & ~fn.coalesce(readable, fn.lit(False)), fn.lit(_UNREADABLE)).when(
        note.isNotNull() & single, fn.lit("an annotation speaks for one message, and this row is about more")
    )


def _member(name: str, incarnation: str) -> Column:
    return fn.struct(fn.col(name).alias("name"), fn.col(incarnation).alias("incarnation"))
