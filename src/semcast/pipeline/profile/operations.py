"""Runs: messages that follow each other and have the same mark, such as the operations of a commit.

A run is as long as it can be. Streams are cut into chunks
of consecutive positions; the last message of a chunk is seen by the next one too, so that both sides of every
edge are known. The driver puts together the runs that reach over an edge: it sees two starts a chunk.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as fn

CHUNK = 1 << 16
"""How many positions a chunk spans. No result depends on it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream, and how the runs of the stream lie over it."""

    stream: str
    chunk: int
    before: int
    """How many runs of the stream start before it."""

    beyond: int
    """Where the next run starts after it, or the stream ends."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a stream: how many there are of each size, the size of the first, and its chunks."""

    sizes: Counter[int]
    first: int
    chunks: tuple[Chunk, ...]


def find_runs(rows: DataFrame, spans: Mapping[str, range], *, chunk: int = CHUNK) -> dict[str, Runs]:
    """The runs of each stream, from (stream, at, mark) and the positions that it spans."""
    counted = sorted(run_sizes(starts(rows, chunk)).collect(), key=_stream)
    return {
        stream: _joined(stream, list(mine), spans[stream], chunk)
        for stream, mine in groupby(counted, _stream)
    }


def starts(rows: DataFrame, chunk: int) -> DataFrame:
    """(*rows, chunk, starts): whether a message starts a run."""
    here = fn.expr(f"at div {chunk}")
    last = fn.col("at") % chunk == chunk - 1
    seen_in = fn.when(last, fn.array(here, here + 1)).otherwise(fn.array(here))
    before = fn.lag("mark").over(Window.partitionBy("chunk", "stream").orderBy("at"))
    return (
        rows.withColumn("chunk", fn.explode(seen_in))
        .select("*", before.alias("before"))
        .where(fn.col("chunk") == here)
        .select(
            *rows.columns,
            "chunk",
            (fn.col("before").isNull() | (fn.col("mark") != fn.col("before"))).alias("starts"),
        )
    )


def run_sizes(started: DataFrame) -> DataFrame:
    """(stream, chunk, head, tail, at, nth, size, n): how many runs have which size.

    The first and the last run that start in a chunk, `head` and `tail`, stand alone, with where they start;
    the tail with its number in the chunk, but without a size, for it ends in another chunk.
    """
    order = Window.partitionBy("chunk", "stream").orderBy("at")
    head, tail = fn.col("nth") == 1, fn.col("size").isNull()
    return (
        started.where("starts")
        .select(
            "stream",
            "chunk",
            "at",
            fn.row_number().over(order).alias("nth"),
            fn.lead("at").over(order).alias("next"),
        )
        .withColumn("size", fn.col("next") - fn.col("at"))
        .groupBy(
            "stream",
            fn.when(head | tail, fn.col("chunk")).alias("chunk"),
            head.alias("head"),
            tail.alias("tail"),
            fn.when(head | tail, fn.col("at")).alias("at"),
            fn.when(tail, fn.col("nth")).alias("nth"),
            "size",
        )
        .agg(fn.count("*").alias("n"))
        .select("stream", "chunk", "head", "tail", "at", "nth", "size", "n")
    )


def _stream(row: Row) -> str:
    return str(row["stream"])


def _joined(stream: str, counted: list[Row], span: range, chunk: int) -> Runs:
    """Put the runs of one stream together over the edges of its chunks."""
    heads = {row["chunk"]: row for row in counted if row["head"]}
    tails = {row["chunk"]: row for row in counted if row["tail"]}
    sizes = Counter[int]()
    for row in counted:
        if row["size"] is not None:
            sizes[row["size"]] += row["n"]
    numbers = range(span[0] // chunk, span[-1] // chunk + 1)
    beyond = {}
    start = span.stop
    for number in reversed(numbers):
        beyond[number] = start
        if number in heads:
            sizes[start - tails[number]["at"]] += 1
            start = heads[number]["at"]
    chunks = []
    before = 0
    for number in numbers:
        chunks.append(Chunk(stream, number, before, beyond[number]))
        before += tails[number]["nth"] if number in tails else 0
    first = heads[numbers[0]]["size"] or beyond[numbers[0]] - span.start
    return Runs(sizes, first, tuple(chunks))
