"""Runs: messages that follow each other and belong together, such as bursts and the groups of a commit.

A run is a maximal sequence of messages in which each goes with the one before it. Streams are cut into chunks
of consecutive positions; a run that reaches over an edge is put together on the driver, which sees no more
than the first and the last run of each chunk.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as fn

CHUNK = 1 << 18
"""How many positions a chunk spans. No result depends on it."""


class Goes(Protocol):
    """Whether a message goes with the one before it, by the `mark` of both."""

    def column(self, mark: Column, before: Column) -> Column:
        """In Spark."""

    def holds(self, mark: object, before: object) -> bool:
        """On the driver."""


@dataclass(frozen=True, slots=True)
class Within:
    """Marks are times, no further apart than `gap`."""

    gap: float

    def column(self, mark: Column, before: Column) -> Column:
        """In Spark."""
        return fn.abs(mark - before) <= self.gap

    def holds(self, mark: object, before: object) -> bool:
        """On the driver."""
        assert isinstance(mark, float)
        assert isinstance(before, float)
        return abs(mark - before) <= self.gap


class Equal:
    """Marks are names or times, and the same."""

    def column(self, mark: Column, before: Column) -> Column:
        """In Spark."""
        return mark == before

    def holds(self, mark: object, before: object) -> bool:
        """On the driver."""
        return mark == before


@dataclass(slots=True)
class Chunk:
    """A piece of a stream, and how the runs of the stream lie over it."""

    stream: str
    chunk: int
    run: int
    """The number, in the stream, of the run that its first message is in."""

    runs: int
    """How many runs have messages in it."""

    end: int
    """The position at which the last of them ends, maybe in a later chunk."""


@dataclass(slots=True)
class Runs:
    """The runs of a stream: how many there are of each size."""

    sizes: Counter[int] = field(default_factory=Counter)
    first: int = 0
    """The size of the first one."""

    chunks: list[Chunk] = field(default_factory=list)


def find_runs(rows: DataFrame, goes: Goes, *, chunk: int = CHUNK) -> dict[str, Runs]:
    """The runs of each stream, from (stream, at, mark)."""
    pieces = sorted(run_sizes(rows, goes, chunk).collect(), key=_of_stream)
    return {stream: _joined(stream, list(mine), goes) for stream, mine in groupby(pieces, _of_stream)}


def in_runs(rows: DataFrame, goes: Goes, chunk: int) -> DataFrame:
    """Number the runs of every chunk: (*rows, chunk, nth, start, begin, opening, ends, last).

    `nth` is the number of the run in its chunk and `start` its first position there; `begin` and `opening`
    are the first position and mark of the chunk; `ends` is true at the last message of a run, `last` at
    the last of the chunk.
    """
    order = Window.partitionBy("stream", "chunk").orderBy("at")
    mark, before, after = fn.col("mark"), fn.col("before"), fn.col("after")
    starts = before.isNull() | ~goes.column(mark, before)
    return (
        rows.withColumn("chunk", fn.expr(f"at div {chunk}"))
        .select("*", fn.lag("mark").over(order).alias("before"), fn.lead("mark").over(order).alias("after"))
        .select(
            *rows.columns,
            "chunk",
            fn.sum(starts.cast("long")).over(order).alias("nth"),
            fn.last(fn.when(starts, fn.col("at")), ignorenulls=True).over(order).alias("start"),
            fn.first("at").over(order).alias("begin"),
            fn.first("mark").over(order).alias("opening"),
            (after.isNull() | ~goes.column(after, mark)).alias("ends"),
            after.isNull().alias("last"),
        )
    )


def run_sizes(rows: DataFrame, goes: Goes, chunk: int) -> DataFrame:
    """How many runs have which size; those at the edge of a chunk stand alone, with what joins them."""
    head, tail = fn.col("start") == fn.col("begin"), fn.col("last")
    return (
        in_runs(rows, goes, chunk)
        .where("ends")
        .groupBy(
            "stream",
            fn.when(head | tail, fn.col("chunk")).alias("chunk"),
            head.alias("head"),
            tail.alias("tail"),
            fn.when(head, fn.col("opening")).alias("opening"),
            fn.when(tail, fn.col("mark")).alias("closing"),
            fn.when(tail, fn.col("nth")).alias("runs"),
            fn.when(head | tail, fn.col("at")).alias("end"),
            (fn.col("at") - fn.col("start") + 1).alias("size"),
        )
        .agg(fn.count("*").alias("n"))
        .select("stream", "chunk", "head", "tail", "opening", "closing", "runs", "end", "size", "n")
    )


def _of_stream(row: Row) -> str:
    return str(row["stream"])


def _joined(stream: str, pieces: list[Row], goes: Goes) -> Runs:
    """Put the runs of one stream together over the edges of its chunks."""
    runs = Runs()
    for piece in pieces:
        if piece["chunk"] is None:
            runs.sizes[piece["size"]] += piece["n"]
    edges = sorted(
        (piece for piece in pieces if piece["chunk"] is not None), key=lambda piece: int(piece["chunk"])
    )
    fold = _Fold(stream, runs, goes)
    for number, both in groupby(edges, lambda piece: int(piece["chunk"])):
        ends = list(both)
        head = next(piece for piece in ends if piece["head"])
        tail = next(piece for piece in ends if piece["tail"])
        fold.add(number, head, tail)
    fold.close()
    return runs


class _Fold:
    """Goes over the chunks of a stream in order, with the run that is open at their edge."""

    def __init__(self, stream: str, runs: Runs, goes: Goes) -> None:
        self._stream = stream
        self._runs = runs
        self._goes = goes
        self._closed = 0
        self._size = 0
        self._end = 0
        self._mark: object = None
        self._reaching: list[Chunk] = []

    def add(self, number: int, head: Row, tail: Row) -> None:
        if self._size and not self._goes.holds(head["opening"], self._mark):
            self.close()
        chunk = Chunk(self._stream, number, self._closed, tail["runs"], tail["end"])
        self._runs.chunks.append(chunk)
        self._size += head["size"]
        self._end = head["end"]
        if chunk.runs > 1:
            self.close()
            self._closed += chunk.runs - 2
            self._size = tail["size"]
            self._end = tail["end"]
        self._mark = tail["closing"]
        self._reaching.append(chunk)

    def close(self) -> None:
        self._runs.sizes[self._size] += 1
        if self._closed == 0:
            self._runs.first = self._size
        for chunk in self._reaching:
            chunk.end = self._end
        self._reaching.clear()
        self._closed += 1
        self._size = 0
