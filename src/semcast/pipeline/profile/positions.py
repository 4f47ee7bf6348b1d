"""Where a message stands in its stream: positions that leave nothing out, so that a difference is a distance.

Where `seq` is dense it is the position. Where it is not, rows are sorted over contiguous partitions, and the
driver adds up how many rows stand before each of them: nothing ever looks at a whole stream at once.
"""

from contextlib import ExitStack
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.frames import WHOLE, keep, small_frame
from semcast.pipeline.profile.segments import Scan

_INDEX_BITS = 33
"""`monotonically_increasing_id` is the partition above this bit, and the row in it below."""


def positioned(rows: DataFrame, found: Scan, *, slow: bool, kept: ExitStack) -> DataFrame:
    """The rows with `at`, their position. Compare it within a stream only.

    Args:
        rows: the good rows of the trace.
        found: what is known of them.
        slow: whether they cost so much to read that they are kept.
        kept: gives back, in the end, what Spark keeps of them.
    """
    if len(found.streams) == 1:
        # Spark leaves a constant out of every shuffle and sort.
        rows = rows.withColumn("stream", fn.lit(found.streams[0].stream))
    columns = ["stream", "at", "ts", "key", "kind", *(["group"] if "group" in rows.columns else [])]
    if found.dense:
        dense = rows.withColumn("at", fn.col("seq")).select(*columns)
        return keep(dense, kept) if slow else dense
    return ranked(in_order(rows, found.cut.shares, kept)).select(*columns)


def spans(found: Scan) -> dict[str, range]:
    """The positions of each stream; where rows were ranked, they count on from stream to stream."""
    if found.dense:
        return {facts.stream: range(facts.first, facts.last + 1) for facts in found.streams}
    ends = list(accumulate(facts.messages for facts in found.streams))
    return {
        facts.stream: range(end - facts.messages, end) for facts, end in zip(found.streams, ends, strict=True)
    }


def in_order(rows: DataFrame, partitions: int, kept: ExitStack) -> DataFrame:
    """Sort by stream and `seq`, and add `id`. It is kept: sorted a second time it might be cut elsewhere."""
    chunks = rows.repartitionByRange(partitions, "stream", "seq").sortWithinPartitions("stream", "seq")
    return keep(chunks.withColumn("id", fn.monotonically_increasing_id()), kept)


def ranked(chunks: DataFrame) -> DataFrame:
    """Add `at`: how many rows stand before this one."""
    numbered = chunks.withColumn("chunk", fn.shiftright("id", _INDEX_BITS))
    counts = sorted(numbered.groupBy("chunk").agg(fn.count("*").alias("n")).collect())
    before = accumulate((row["n"] for row in counts), initial=0)
    starts = small_frame(
        chunks.sparkSession,
        {"chunk": WHOLE, "before": WHOLE},
        [(row["chunk"], total) for row, total in zip(counts, before, strict=False)],
    )
    index = fn.col("id").bitwiseAND((1 << _INDEX_BITS) - 1)
    columns = [name for name in chunks.columns if name != "id"]
    joined = numbered.join(fn.broadcast(starts), "chunk").withColumn("at", fn.col("before") + index)
    return joined.select(*columns, "at")
