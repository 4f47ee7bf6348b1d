"""Sweeps: cells of about 50 ms on Spark, against the same cells in plain processes: medians of rounds."""

import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import process_time

from pyspark.sql import SparkSession

from benchmarks.cpu import Spent, load, now, since
from benchmarks.rows import Row, against
from semcast.pipeline.session import spark_session
from semcast.pipeline.sweep.spec import Spec, planned
from semcast.pipeline.sweep.sweep import run_sweep
from semcast.sim.experiments import EXPERIMENTS, Value

CELLS = 240
CELL_SECONDS = 0.05
PROCESSES = 2
ROUNDS = 5
EXPERIMENT = "f3"


def run() -> list[Row]:
    """All rows."""
    cells: list[dict[str, Value]] = [{"seed": seed, "messages": _messages()} for seed in range(CELLS)]
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        spark = spark_session("semcast bench", master=f"local[{PROCESSES}]", rows_hint=CELLS)
        _swept(spark, cells[:20])
        _plain(pool, cells[:20])
        spent = [(_swept(spark, cells), _plain(pool, cells)) for _ in range(ROUNDS)]
    swept, plain = (Spent(*map(median, zip(*column, strict=True))) for column in zip(*spent, strict=True))
    name = f"sweep of {CELLS} cells of {1000 * plain.cpu / CELLS:.0f} ms"
    until = f"{name}, until all are done / plain processes, {load()}"
    return [
        against(f"{name} / plain processes", swept.cpu, "CPU s", plain.cpu, "<= 1.10"),
        against(until, swept.wall, "s", plain.wall, "<= 1.10"),
    ]


def _messages() -> int:
    """So many messages keep the buffer simulation busy for the time of a cell."""
    tried = 20_000
    began = process_time()
    _simulate({"messages": tried})
    return int(tried * CELL_SECONDS / (process_time() - began))


def _simulate(cell: dict[str, Value]) -> None:
    EXPERIMENTS[EXPERIMENT](cell)


def _plain(pool: ProcessPoolExecutor, cells: list[dict[str, Value]]) -> Spent:
    began = now()
    list(pool.map(_simulate, cells, chunksize=10))
    return since(began)


def _swept(spark: SparkSession, cells: list[dict[str, Value]]) -> Spent:
    out = Path(tempfile.mkdtemp(prefix="semcast-bench-"))
    spec = Spec("bench", EXPERIMENT, "", planned(EXPERIMENT, cells), None)
    try:
        began = now()
        summary = run_sweep(spark, spec, out)
        took = since(began)
    finally:
        shutil.rmtree(out)
    assert summary.ok == len(cells)
    return took
