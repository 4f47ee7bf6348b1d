"""Where a message stands in its stream: positions that leave nothing out, so that a difference is a distance.

Where `seq` is dense it is the position. Where it is not, rows are sorted over contiguous partitions, and the
driver adds up how many rows stand before each of them: nothing ever looks at a whole stream at once.
"""

from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from semcast.pipeline.session import partitions_for
from semcast.pipeline.survey import Trace

_INDEX_BITS = 33
"""`monotonically_increasing_id` is the partition above this bit, and the row in it below."""


def positioned(trace: Trace, partitions: int | None = None) -> DataFrame:
    """The rows with `at`, their position. It counts on from stream to stream, so compare within one only."""
    columns = ["stream", "at", "ts", "key", "kind", *(["group"] if "group" in trace.rows.columns else [])]
    if trace.dense:
        return trace.rows.withColumn("at", F.col("seq")).select(*columns)
    if partitions is None:
        partitions = partitions_for(sum(facts.messages for facts in trace.streams))
    return ranked(trace.rows, partitions).select(*columns)


def ranked(rows: DataFrame, partitions: int) -> DataFrame:
    """Add `at`: how many rows stand before this one, by stream and `seq`.

    The sorted rows are kept (`unpersist` them when done): sorted again, they might be cut elsewhere.
    """
    chunks = (
        rows.repartitionByRange(partitions, "stream", "seq")
        .sortWithinPartitions("stream", "seq")
        .withColumn("id", F.monotonically_increasing_id())
        .persist()
    )
    chunk = F.shiftright("id", _INDEX_BITS)
    counts = {
        row["chunk"]: row["n"]
        for row in chunks.groupBy(chunk.alias("chunk")).agg(F.count("*").alias("n")).collect()
    }
    before = list(zip(sorted(counts), accumulate((counts[number] for number in sorted(counts)), initial=0)))
    starts = rows.sparkSession.createDataFrame(before, "chunk long, before long")
    index = F.col("id").bitwiseAND((1 << _INDEX_BITS) - 1)
    return (
        chunks.withColumn("chunk", chunk)
        .join(F.broadcast(starts), "chunk")
        .withColumn("at", F.col("before") + index)
        .select(*rows.columns, "at")
    )
