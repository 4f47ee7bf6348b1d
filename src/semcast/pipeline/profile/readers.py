"""Tables out of files: every row with the file and the line that it stands in.

Spark cuts large text files into blocks and reads several files in one task, so that no row knows its line.
A first pass counts the lines of each block; the second adds up what comes before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from semcast.pipeline.failures import failures, reason
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.paths import literal, local_path
from semcast.pipeline.profile.sources import Format, Source, TraceError, column_names

_CORRUPT = "_corrupt"
_ORDINAL_BITS = 40
"""Rows are ordered by file, then line: the file's number is above this bit."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as people wrote them.

    Beside what `cells` is made of, the frames have `block` (which piece of which file), `file`, `line`,
    `place` (the order over all files) and `source` (the name of the file, as a stream). They hold the same
    rows; only in `located` are file and line always known, which costs time.
    """

    frame: DataFrame
    located: DataFrame
    cells: dict[str, Column]
    malformed: Column
    nothing: Column
    """Where a line is a header or blank."""

    rows: int | None
    """How many there are, those that are nothing included, where that is known."""


def read_tables(
    spark: SparkSession, sources: list[Source], placed: Callable[[Sequence[str]], bool]
) -> list[Table]:
    """All sources, with as few tables as their columns allow.

    Args:
        spark: the session.
        sources: the files.
        placed: whether a Parquet table with these columns needs `place` and `source`, which cost a join.
    """
    ordinals = {local_path(source.path): ordinal for ordinal, source in enumerate(sources)}
    texts = [source for source in sources if source.format is not Format.PARQUET]
    tables = [
        _text_table(spark, list(same), ordinals, format_, names)
        for (format_, names), same in _grouped(spark, texts)
    ]
    roots = dict.fromkeys(source.root for source in sources if source.format is Format.PARQUET)
    for root in roots:
        inside = [source for source in sources if source.root == root and source.format is Format.PARQUET]
        tables.append(_parquet_table(spark, inside, ordinals, placed))
    return tables


def _grouped(
    spark: SparkSession, sources: list[Source]
) -> Iterable[tuple[tuple[Format, tuple[str, ...]], Iterable[Source]]]:
    named = {source: (source.format, tuple(column_names(spark, source))) for source in sources}
    return groupby(sorted(sources, key=lambda source: _sort_key(named[source])), key=named.__getitem__)


def _sort_key(key: tuple[Format, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    return key[0].name, key[1]


def _text_table(
    spark: SparkSession,
    sources: list[Source],
    ordinals: dict[str, int],
    format_: Format,
    names: tuple[str, ...],
) -> Table:
    header = format_ is not Format.JSON
    raw = spark.read.text([literal(source.path) for source in sources]).select(
        fn.col("_metadata.file_path").alias("file"),
        fn.col("_metadata.file_block_start").alias("block"),
        fn.monotonically_increasing_id().alias("at"),
        fn.col("value").alias("text"),
    )
    blocks = _count_lines(raw)
    starts = small_frame(
        spark,
        {"file": TEXT, "block": WHOLE, "shift": WHOLE, "before": WHOLE, "source": TEXT},
        _starts(blocks, sources, ordinals, header=header),
    )
    frame = raw.join(fn.broadcast(starts), ["file", "block"]).select(
        fn.xxhash64("file", "block").alias("block"),
        "file",
        (fn.col("at") + fn.col("shift")).alias("line"),
        (fn.col("at") + fn.col("shift") + fn.col("before")).alias("place"),
        "source",
        "text",
        _parsed(format_, names).alias("cells"),
    )
    fields = fn.col("cells")
    cells = {name: fields.getField(f"c{n}" if header else name) for n, name in enumerate(names)}
    blank = fn.trim("text") == ""
    return Table(
        frame,
        frame,
        cells,
        malformed=fields.isNull() | fields.getField(_CORRUPT).isNotNull(),
        nothing=blank | (fn.col("line") == 1) if header else blank,
        rows=sum(block["lines"] for block in blocks),
    )


def _count_lines(raw: DataFrame) -> list[Row]:
    counted = raw.groupBy("file", "block").agg(
        fn.min("at").alias("first"),
        fn.count("*").alias("lines"),
        fn.count_if(fn.trim("text") != "").alias("filled"),
    )
    return reading(counted)


def _starts(
    blocks: list[Row], sources: list[Source], ordinals: dict[str, int], *, header: bool
) -> Iterable[tuple[str, int, int, int, str]]:
    of_file = {local_path(source.path): source for source in sources}
    found = {path: [block for block in blocks if local_path(block["file"]) == path] for path in of_file}
    for path, source in of_file.items():
        if sum(block["filled"] for block in found[path]) <= header:
            raise TraceError(f"{source.path} holds no rows")
        lines = 1
        for block in sorted(found[path], key=lambda block: int(block["block"])):
            before = ordinals[path] << _ORDINAL_BITS
            yield block["file"], block["block"], lines - block["first"], before, source.stream
            lines += block["lines"]


def _parsed(format_: Format, names: tuple[str, ...]) -> Column:
    corrupt = StructField(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if format_ is Format.JSON:
        return fn.from_json(
            "text", StructType([*(StructField(name, StringType()) for name in names), corrupt]), options
        )
    fields = [StructField(f"c{n}", StringType()) for n in range(len(names))]
    options |= {"sep": "\t" if format_ is Format.TSV else ",", "quote": '"', "escape": '"'}
    return fn.from_csv("text", StructType([*fields, corrupt]).simpleString(), options)


def _parquet_table(
    spark: SparkSession,
    sources: list[Source],
    ordinals: dict[str, int],
    placed: Callable[[Sequence[str]], bool],
) -> Table:
    root = sources[0].root
    read = spark.read.option("mergeSchema", "true")
    if root != sources[0].path:
        read = read.option("pathGlobFilter", "*.{parquet,pq}")
    try:
        bare = read.parquet(literal(root))
    except failures() as error:
        raise TraceError(f"{root}: cannot be read: {reason(error)}") from error
    if bare.isEmpty():
        raise TraceError(f"{root} holds no rows")
    names = bare.columns
    cells = {name: fn.col(f"c{n}") for n, name in enumerate(names)}
    block = fn.xxhash64("_metadata.file_path", "_metadata.file_block_start").alias("block")
    renamed = [block, *(fn.col(f"`{name}`").alias(f"c{n}") for n, name in enumerate(names))]
    located = bare.select(
        *renamed,
        fn.col("_metadata.file_path").alias("file"),
        (fn.col("_metadata.row_index") + 1).alias("line"),
    )
    if placed(names):
        frame = located = _with_places(spark, located, sources, ordinals)
    else:
        frame = unplaced(bare.select(*renamed, _nothing("string", "file"), _nothing("long", "line")))
        located = unplaced(located)
    return Table(frame, located, cells, malformed=fn.lit(False), nothing=fn.lit(False), rows=None)


def unplaced(frame: DataFrame) -> DataFrame:
    """With nothing known of the order of files, nor of their names."""
    return frame.select("*", _nothing("long", "place"), _nothing("string", "source"))


def _nothing(of_type: str, name: str) -> Column:
    return fn.lit(None).cast(of_type).alias(name)


def _with_places(
    spark: SparkSession, frame: DataFrame, sources: list[Source], ordinals: dict[str, int]
) -> DataFrame:
    of_file = {local_path(source.path): source for source in sources}
    files = [row["file"] for row in reading(frame.select("file").distinct())]
    places = small_frame(
        spark,
        {"file": TEXT, "before": WHOLE, "source": TEXT},
        [
            (file, ordinals[local_path(file)] << _ORDINAL_BITS, of_file[local_path(file)].stream)
            for file in files
        ],
    )
    joined = frame.join(fn.broadcast(places), "file")
    return joined.withColumn("place", fn.col("line") + fn.col("before")).drop("before")


def reading(small: DataFrame) -> list[Row]:
    """Collect a few rows; what goes wrong on the way is the file's fault, and said in a line."""
    try:
        return small.collect()
    except failures() as error:
        raise TraceError(f"cannot be read: {reason(error)}") from error


def together(frames: list[DataFrame]) -> DataFrame:
    """All rows of all frames, which have the same columns."""
    return reduce(DataFrame.union, frames)
