# ruff: noqa: A005, S608 (it is never imported but as benchmarks.profile; the SQL is about our own file)
"""Profile: ten million messages in Parquet on Spark, in CPU seconds, against DuckDB and numpy.

The session is up; reading, checking every row and profiling are measured together, as the first call of the
session and as the third: Java compiles what runs often. DuckDB (`pip install duckdb`) answers the same
questions without checking rows; numpy, with everything in memory, only counts distances and items.

`SEMCAST_BENCH_LARGE` says how many rows are profiled besides, once, against reading their columns.
"""

import importlib
import importlib.util
import os
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from benchmarks.cpu import cpu_seconds, load, now, since
from benchmarks.rows import Row, against
from semcast.pipeline.profile.profiling import profile
from semcast.pipeline.profile.read import read_trace
from semcast.pipeline.session import spark_session

ROWS = 10_000_000
KEYS = 100_000
FILES = 8
CALLS = 3
LARGE = int(os.environ.get("SEMCAST_BENCH_LARGE", "0"))
LARGE_SECONDS = 60 / 100_000_000


def run() -> list[Row]:
    """All rows."""
    spark = spark_session("semcast bench", rows_hint=ROWS, quickly=True)  # as the command, for Parquet
    spark.range(1000).selectExpr("sum(id)").collect()
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        path = Path(folder) / "trace.parquet"
        generate(spark, str(path), ROWS)
        spent = []
        for _ in range(CALLS):
            start = cpu_seconds()
            (found,) = profile(read_trace(spark, [str(path)]))
            spent.append(cpu_seconds() - start)
        start = process_time()
        obsolete, keys = in_memory(path)
        floors = {"numpy": process_time() - start}
        if importlib.util.find_spec("duckdb") is not None:
            start = process_time()
            assert by_duckdb(path) == (obsolete, keys)
            floors["DuckDB"] = process_time() - start
    assert (found.distances.obsolete, found.items.keys) == (obsolete, keys)
    name = f"profile of {ROWS // 1_000_000} million rows"
    targets = {"numpy": "", "DuckDB": "<= 1.2"}
    rows = [
        against(f"{name}, {call} call / {floor}", value, "CPU s", seconds, targets[floor])
        for call, value in (("first", spent[0]), (f"{CALLS}rd", spent[-1]))
        for floor, seconds in floors.items()
    ]
    return [*rows, *_large(spark)] if LARGE else rows


def _large(spark: SparkSession) -> list[Row]:
    """Many rows, in a session that has profiled before."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        path = Path(folder) / "trace.parquet"
        generate(spark, str(path), LARGE)
        began = now()
        for file in sorted(path.glob("*.parquet")):
            for _ in pq.ParquetFile(file).iter_batches(1 << 20):
                pass
        floor = since(began)
        began, busy = now(), load()
        (found,) = profile(read_trace(spark, [str(path)]))
        taken = since(began)
    assert found.messages == LARGE
    name = f"profile of {LARGE // 1_000_000} million rows / reading their columns"
    target = f"<= {LARGE * LARGE_SECONDS:.0f} s"
    return [
        against(name, taken.cpu, "CPU s", floor.cpu, ""),
        against(f"{name}, {busy}", taken.wall, "s", floor.wall, target),
    ]


def by_duckdb(path: Path) -> tuple[int, int]:
    """The same questions: every distance, how often items are written, bursts, and what streams there are."""
    connection = importlib.import_module("duckdb").connect()
    rows = f"read_parquet('{path}/*.parquet')"
    connection.execute(
        "create temp table found as select key, seq - lag(seq) over (partition by key order by seq) as d"
        f" from {rows} where kind = 'update'"
    )
    distances = connection.execute(
        "select d, count(*) n from found where d is not null group by d order by d"
    )
    obsolete = int(distances.fetchnumpy()["n"].sum())
    items = connection.execute("select key, count(*) n from found group by key order by n desc").fetchnumpy()
    connection.execute(
        "select size, count(*) from (select count(*) size from (select sum(starts) over (order by seq rows"
        " unbounded preceding) burst from (select seq, (ts - lag(ts) over (order by seq) > 0)::int starts"
        f" from {rows})) group by burst) group by size"
    ).fetchall()
    connection.execute(
        "select stream, kind, count(*), min(seq), max(seq), sum(bytes), min(ts), max(ts)"
        f" from {rows} group by all"
    ).fetchall()
    return obsolete, len(items["key"])


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
