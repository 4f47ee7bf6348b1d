"""Files as Spark reads them: every row with its file and its block, in the order of the file."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from semcast.pipeline.failures import failures, reason
from semcast.pipeline.paths import for_spark
from semcast.pipeline.profile.sources import Format, Source, TraceError, column_names

_CORRUPT = "_corrupt"
_LATE = ("bytes", "kind")
"""Fields that rows of JSON may have though the first ones have not: the others have the default."""
_NEVER_LATE = ("seq", "stream")
"""Fields that all rows have, or none."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as people wrote them: what `cells` is made of, and `file` and `block`."""

    frame: DataFrame
    cells: dict[str, Column]
    malformed: Column
    blank: Column
    """Where a line is no row."""

    sources: tuple[Source, ...] = ()
    text: bool = False
    header: bool = False
    """Whether the first line of each file names the columns."""

    line: Column | None = None
    """The number of a row in its file, where Spark knows it."""


def text_tables(spark: SparkSession, sources: Iterable[Source]) -> list[Table]:
    """All text files, with as few tables as their columns allow."""
    texts = [source for source in sources if source.format is not Format.PARQUET]
    return [
        _text_table(spark, tuple(same), format_, names) for (format_, names), same in _grouped(spark, texts)
    ]


def _grouped(
    spark: SparkSession, sources: list[Source]
) -> Iterable[tuple[tuple[Format, tuple[str, ...]], Iterable[Source]]]:
    named = {source: (source.format, tuple(column_names(spark, source))) for source in sources}
    return groupby(sorted(sources, key=lambda source: _sort_key(named[source])), key=named.__getitem__)


def _sort_key(key: tuple[Format, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    return key[0].name, key[1]


def _text_table(
    spark: SparkSession, sources: tuple[Source, ...], format_: Format, names: tuple[str, ...]
) -> Table:
    header = format_ is not Format.JSON
    late = () if header else tuple(name for name in (*_LATE, *_NEVER_LATE) if name not in names)
    frame = spark.read.text([for_spark(source.path) for source in sources]).select(
        *_origin(), fn.trim("value").alias("text"), _parsed(format_, names + late).alias("cells")
    )
    fields = fn.col("cells")
    malformed = fields.isNull() | fields.getField(_CORRUPT).isNotNull()
    for name in (name for name in late if name in _NEVER_LATE):
        malformed |= fields.getField(name).isNotNull()
    there = [*names, *(name for name in late if name in _LATE)]
    return Table(
        frame,
        {name: fields.getField(f"c{n}" if header else name) for n, name in enumerate(there)},
        malformed=malformed,
        blank=fn.col("text") == "",
        sources=sources,
        text=True,
        header=header,
    )


def _origin() -> list[Column]:
    return [
        fn.col("_metadata.file_path").alias("file"),
        fn.col("_metadata.file_block_start").alias("block"),
    ]


def _parsed(format_: Format, names: tuple[str, ...]) -> Column:
    corrupt = StructField(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if format_ is Format.JSON:
        return fn.from_json(
            "value", StructType([*(StructField(name, StringType()) for name in names), corrupt]), options
        )
    fields = [StructField(f"c{n}", StringType()) for n in range(len(names))]
    options |= {"sep": "\t" if format_ is Format.TSV else ",", "quote": '"', "escape": '"'}
    return fn.from_csv("value", StructType([*fields, corrupt]).simpleString(), options)


def parquet_table(spark: SparkSession, sources: tuple[Source, ...]) -> Table:
    """The Parquet files of one root."""
    root = sources[0].root
    read = spark.read.option("mergeSchema", "true").option("parquet.page.verify-checksum.enabled", "true")
    if partitioned(sources):
        read = read.option("basePath", for_spark(root))
    try:
        # By name, each of them: Spark would pass over files in folders beside others.
        bare = read.parquet(*(for_spark(source.path) for source in sources))
    except failures() as error:
        raise TraceError(f"{root}: cannot be read: {reason(error)}") from error
    names = bare.columns
    frame = bare.select(
        *_origin(),
        (fn.col("_metadata.row_index") + 1).alias("line"),
        *(fn.col(f"`{name}`").alias(f"c{n}") for n, name in enumerate(names)),
    )
    return Table(
        frame,
        {name: fn.col(f"c{n}") for n, name in enumerate(names)},
        malformed=fn.lit(False),
        blank=fn.lit(False),
        sources=sources,
        line=fn.col("line"),
    )


def partitioned(sources: Iterable[Source]) -> bool:
    """Whether files are in folders such as `day=1`, whose names are a column."""
    return any(
        "=" in folder
        for source in sources
        if source.path != source.root
        for folder in PurePosixPath(source.path).relative_to(source.root).parts[:-1]
    )
