"""Operations over several items (Pereira 2002, section 3.4.3): nothing is obsolete before a commit says so.

Consecutive messages with the same group are an operation. Each operation ends with a commit, a message of its
own. An update is made obsolete by the commit of the next operation that updates its item; a commit by the
next commit. Distances count every message, commits included.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import TEXT, WHOLE, keep, small_frame
from semcast.pipeline.profile.operations import CHUNK, Runs, starts


def commit_distances(
    rows: DataFrame,
    operations: Mapping[str, Runs],
    partitions: int,
    kept: ExitStack,
    *,
    chunk: int = CHUNK,
) -> tuple[DataFrame, dict[str, int]]:
    """(stream, distance, n), and how many updates of each stream were looked at.

    From (stream, at, key, kind, mark) and the runs of `mark` in them.
    """
    updates = with_commits(rows, operations, chunk).repartition(partitions, "stream", "key")
    counted = keep(until_commit(updates).groupBy("stream", "distance").agg(fn.count("*").alias("n")), kept)
    seen = counted.groupBy("stream").agg(fn.sum("n").alias("n")).collect()
    found = counted.where("distance is not null").union(_between_commits(rows.sparkSession, operations))
    return found, {row["stream"]: row["n"] for row in seen}


def with_commits(rows: DataFrame, operations: Mapping[str, Runs], chunk: int) -> DataFrame:
    """(stream, key, operation, at, commit) of the updates, in positions that count commits."""
    pieces = small_frame(
        rows.sparkSession,
        {"stream": TEXT, "chunk": WHOLE, "before": WHOLE, "beyond": WHOLE},
        [
            (piece.stream, piece.chunk, piece.before, piece.beyond)
            for runs in operations.values()
            for piece in runs.chunks
        ],
    )
    started = fn.col("starts").cast("long")
    order = Window.partitionBy("chunk", "stream").orderBy("at")
    after = (
        Window.partitionBy("chunk", "stream")
        .orderBy(fn.desc("at"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    next_start = fn.last(fn.when(fn.col("starts"), fn.col("at")), ignorenulls=True).over(after)
    operation = fn.col("before") + fn.col("nth") - 1
    return (
        starts(rows, chunk)
        .select("*", fn.sum(started).over(order).alias("nth"), next_start.alias("next"))
        .where(fn.col("kind") == "update")
        .join(fn.broadcast(pieces), ["stream", "chunk"])
        .select(
            "stream",
            "key",
            operation.alias("operation"),
            (fn.col("at") + operation).alias("at"),
            (fn.coalesce("next", "beyond") + operation).alias("commit"),
        )
    )


def until_commit(updates: DataFrame) -> DataFrame:
    """(stream, distance) of the updates; the distance is null if no commit makes one obsolete.

    Seen backwards, the update before is of the next operation that updates the item, or it is of the same
    operation, and then what holds for that one holds for this.
    """
    backwards = Window.partitionBy("stream", "key").orderBy(fn.desc("operation"), fn.desc("at"))
    other = fn.lag("operation").over(backwards) != fn.col("operation")
    next_commit = fn.last("later", ignorenulls=True).over(backwards)
    later = updates.select("*", fn.when(other, fn.lag("commit").over(backwards)).alias("later"))
    return later.select("stream", (next_commit - fn.col("at")).alias("distance"))


def _between_commits(spark: SparkSession, operations: Mapping[str, Runs]) -> DataFrame:
    """(stream, distance, n): from each commit to the next, which ends the next operation."""
    counts = []
    for stream, runs in operations.items():
        sizes = runs.sizes - Counter([runs.first])
        counts += [(stream, size + 1, n) for size, n in sorted(sizes.items())]
    return small_frame(spark, {"stream": TEXT, "distance": WHOLE, "n": WHOLE}, counts)
