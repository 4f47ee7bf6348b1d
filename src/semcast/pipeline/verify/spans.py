"""Sets of sequence numbers as spans, so that no result depends on how a recorder cut its rows.

Spans are cut at the edges of chunks, which are the same for all: no window and no join then spans more than a
chunk, however long a stream is.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

CHUNK = 1 << 20
"""How many numbers a chunk spans. No result depends on it."""


def chunked(spans: DataFrame, *, chunk: int = CHUNK) -> DataFrame:
    """Spans (..., first, last) cut at the edges of chunks: (..., chunk, first, last)."""
    others = [name for name in spans.columns if name not in ("first", "last")]
    first, last, number = fn.col("first"), fn.col("last"), fn.col("chunk")
    within = fn.sequence(fn.expr(f"first div {chunk}"), fn.expr(f"last div {chunk}"))
    return spans.select("*", fn.explode(within).alias("chunk")).select(
        *others,
        "chunk",
        fn.greatest(first, number * chunk).alias("first"),
        fn.least(last, (number + 1) * chunk - 1).alias("last"),
    )


def overlay(
    spans: DataFrame, keys: Sequence[str], flags: Sequence[str], depths: Sequence[str] = ()
) -> DataFrame:
    """The layers of spans laid over each other: (*keys, first, last, *flags, *depths).

    `spans` says in a column for each layer whether a span belongs to it (1 or 0). Of the maximal segments
    within which nothing changes, those come back that lie in any layer. A flag says whether the segment lies
    in a span of its layer, a depth in how many.
    """
    layers = [*flags, *depths]
    at = Window.partitionBy(*keys).orderBy("first")
    edges = _edges(spans, keys, layers)
    upto_here = at.rowsBetween(Window.unboundedPreceding, 0)
    covered = edges.select(
        *keys,
        "first",
        *((fn.sum(name).over(upto_here) > 0).alias(name) for name in flags),
        *(fn.sum(name).over(upto_here).alias(name) for name in depths),
    )
    state = fn.struct(*layers)
    changes = covered.select("*", fn.lag(state).over(at).alias("before")).where(
        fn.col("before").isNull() | (state != fn.col("before"))
    )
    inside = _any([fn.col(name) for name in flags] + [fn.col(name) > 0 for name in depths])
    return (
        changes.select(*keys, "first", (fn.lead("first").over(at) - 1).alias("last"), *layers)
        .where(inside)
        .select(*keys, "first", "last", *layers)
    )


def length() -> Column:
    """How many numbers a span holds."""
    return fn.col("last") - fn.col("first") + 1


def _edges(spans: DataFrame, keys: Sequence[str], layers: Sequence[str]) -> DataFrame:
    """Where layers begin and end: at each place the difference in depth of each."""
    begin = fn.struct(fn.col("first"), *(fn.col(name).cast("long").alias(name) for name in layers))
    end = fn.struct(
        (fn.col("last") + 1).alias("first"), *((-fn.col(name).cast("long")).alias(name) for name in layers)
    )
    return (
        spans.select(*keys, fn.explode(fn.array(begin, end)).alias("edge"))
        .groupBy(*keys, fn.col("edge.first").alias("first"))
        .agg(*(fn.sum(f"edge.{name}").alias(name) for name in layers))
        .where(_any([fn.col(name) != 0 for name in layers]))
        .select(*keys, "first", *layers)
    )


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda some, other: some | other, conditions)
