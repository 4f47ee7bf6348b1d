# ruff: noqa: A005 (it is never imported but as benchmarks.profile)
"""Profile: ten million messages in Parquet on Spark, against numpy, which has them all in memory.

The session is up; reading, checking every row and profiling are measured together. The floor answers less: no
check of the rows, no bursts, no names of items; it counts distances and how often items are written.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from benchmarks.rows import Row, against
from semcast.pipeline.profile.job import profile
from semcast.pipeline.profile.read import read_trace
from semcast.pipeline.session import spark_session

ROWS = 10_000_000
KEYS = 100_000
FILES = 8


def run() -> list[Row]:
    """All rows."""
    spark = spark_session("semcast bench", rows_hint=ROWS)
    spark.range(1000).selectExpr("sum(id)").collect()
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        path = Path(folder) / "trace.parquet"
        generate(spark, str(path), ROWS)
        start = perf_counter()
        (found,) = profile(read_trace(spark, [str(path)]))
        spent = perf_counter() - start
        start = perf_counter()
        obsolete, keys = in_memory(path)
        floor = perf_counter() - start
    assert (found.distances.obsolete, found.items.keys) == (obsolete, keys)
    name = f"profile of {ROWS // 1_000_000} million rows / numpy"
    return [against(name, spent, "s", floor, "<= 20 s")]


def generate(spark: SparkSession, path: str, rows: int) -> None:
    """A stream with a tenth of events, skewed keys, and seven messages at a time."""
    number = fn.col("id")
    uniform = fn.pmod(fn.xxhash64("id"), fn.lit(1 << 30)) / (1 << 30)
    item = fn.concat(fn.lit("item/"), fn.floor(fn.pow(uniform, 3) * KEYS).cast("long").cast("string"))
    event = fn.pmod(fn.xxhash64("id", fn.lit(1)), fn.lit(10)) == 0
    spark.range(0, rows, 1, FILES).select(
        fn.lit("bench").alias("stream"),
        number.alias("seq"),
        (fn.floor(number / 7) / 1000).cast("double").alias("ts"),
        fn.when(event, "").otherwise(item).alias("key"),
        fn.lit(64).cast("long").alias("bytes"),
        fn.when(event, "event").otherwise("update").alias("kind"),
    ).write.parquet(path)


def in_memory(path: Path) -> tuple[int, int]:
    """How many updates become obsolete, and how many keys there are."""
    table = pq.read_table(path, columns=["seq", "key", "kind"])
    table = table.filter(pc.equal(table["kind"], "update"))
    keys = pa.chunked_array(table["key"]).combine_chunks().dictionary_encode()
    codes: npt.NDArray[np.int64] = keys.indices.to_numpy().astype(np.int64)
    seqs: npt.NDArray[np.int64] = table["seq"].to_numpy()
    order = np.lexsort((seqs, codes))
    codes, seqs = codes[order], seqs[order]
    distances = np.diff(seqs)[codes[1:] == codes[:-1]]
    histogram = np.unique(distances, return_counts=True)[1]
    frequency = np.bincount(codes)
    return int(histogram.sum()), int(np.count_nonzero(frequency))
