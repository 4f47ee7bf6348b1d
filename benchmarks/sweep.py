"""Sweeps: cells of about 50 ms on Spark, against the same cells in as many plain processes."""

import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from benchmarks.rows import Row, against
from semcast.pipeline.session import spark_session
from semcast.pipeline.sweep.spec import Spec, planned
from semcast.pipeline.sweep.sweep import run_sweep
from semcast.sim.experiments import EXPERIMENTS, Value

CELLS = 240
CELL_SECONDS = 0.05
PROCESSES = 2
ROUNDS = 2
EXPERIMENT = "f3"


def run() -> list[Row]:
    """All rows."""
    cells: list[dict[str, Value]] = [{"seed": seed, "messages": _messages()} for seed in range(CELLS)]
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        spark = spark_session("semcast bench", master=f"local[{PROCESSES}]", rows_hint=CELLS)
        _swept(spark, cells[:20])
        _plain(pool, cells[:20])
        times = [(_swept(spark, cells), _plain(pool, cells)) for _ in range(ROUNDS)]
    swept, plain = (min(column) for column in zip(*times, strict=True))
    name = f"sweep of {CELLS} cells of {1000 * plain * PROCESSES / CELLS:.0f} ms / plain processes"
    return [against(name, swept, "s", plain, "<= 1.10")]


def _messages() -> int:
    """So many messages keep the buffer simulation busy for the time of a cell."""
    tried = 20_000
    began = perf_counter()
    _simulate({"messages": tried})
    return int(tried * CELL_SECONDS / (perf_counter() - began))


def _simulate(cell: dict[str, Value]) -> None:
    EXPERIMENTS[EXPERIMENT](cell)


def _plain(pool: ProcessPoolExecutor, cells: list[dict[str, Value]]) -> float:
    began = perf_counter()
    list(pool.map(_simulate, cells, chunksize=10))
    return perf_counter() - began


def _swept(spark: SparkSession, cells: list[dict[str, Value]]) -> float:
    out = Path(tempfile.mkdtemp(prefix="semcast-bench-"))
    spec = Spec("bench", EXPERIMENT, "", planned(EXPERIMENT, cells), None)
    try:
        began = perf_counter()
        summary = run_sweep(spark, spec, out)
        took = perf_counter() - began
    finally:
        shutil.rmtree(out)
    assert summary.ok == len(cells)
    return took
