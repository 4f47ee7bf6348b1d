"""What executors in processes of their own need: the package, and a Python with what it imports."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from semcast import __version__
from semcast.pipeline.failures import ClusterError, failures, told
from semcast.pipeline.package import package_folder, write_package

_IMPORTED = ("msgspec", "numpy", "pandas", "pyarrow.parquet")
"""What jobs import beside the package."""

_QUIET_SECONDS = 20.0
"""So long nothing is said while executors start."""

_WAIT_SECONDS = 300.0
"""So long executors may take to start, unless `SEMCAST_SPARK_WAIT` gives another time."""

_NONE_FREE = (
    "the cluster has no free worker, or none with the memory and the cores that are asked for"
    " (--conf spark.executor.memory, spark.executor.cores)"
)


def is_connect(spark: object) -> bool:
    """Whether the driver is a server elsewhere, and the session a client: there is no `sparkContext` then."""
    return not isinstance(spark, SparkSession)


def ship(spark: SparkSession, folder: Path) -> None:
    """Send executors the code that the driver runs, so that both are the same version."""
    if package_folder() is None:
        return
    archive = folder / f"semcast-{__version__}.zip"
    if not archive.exists():
        write_package(archive)
    if is_connect(spark):
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))


def probe(spark: SparkSession, say: Callable[[str], None]) -> None:
    """Have an executor import what jobs need, before there is a job to fail.

    Spark itself would wait for a free worker for ever, without a word: `say` is told when it takes long.

    Raises:
        ClusterError: it cannot, or there is no executor; says what is missing.
    """
    longest = float(os.environ.get("SEMCAST_SPARK_WAIT", _WAIT_SECONDS))
    late = True
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_ask, spark)
        try:
            if wait([asked], min(_QUIET_SECONDS, longest)).not_done:
                say(f"no executor has answered yet, waiting for {longest:g} s: {_NONE_FREE}")
            late = bool(wait([asked], max(0.0, longest - _QUIET_SECONDS)).not_done)
        finally:
            if late:
                _give_up(spark, asked)
        try:
            lacking = asked.result()
        except failures() as error:
            none = f"no executor answered for {longest:g} s: {_NONE_FREE}"
            raise ClusterError(none if late else told(error)) from error
    if lacking is not None:
        raise ClusterError(told(ModuleNotFoundError(lacking)))


def _ask(spark: SparkSession) -> str | None:
    """What an executor lacks."""
    for row in spark.range(0, 1, 1, 1).mapInArrow(_answer, "lacks string").collect():
        return str(row["lacks"])
    return None


def _give_up(spark: SparkSession, asked: "Future[str | None]") -> None:
    """Cancel all jobs: the session has no others. Until it ends, for it may not have begun yet."""
    while not asked.done():
        if is_connect(spark):
            spark.interruptAll()
        else:
            spark.sparkContext.cancelAllJobs()
        wait([asked], 1.0)


def _answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In an executor; that it can be called at all shows that the package is there."""
    for _ in batches:
        lacking = list(_lacking())
        yield pa.RecordBatch.from_pydict({"lacks": pa.array(lacking[:1], pa.string())})


def _lacking() -> Iterator[str]:
    for name in _IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            yield f"{error} (of {sys.executable})"


def look_for(spark: SparkSession, files: Mapping[str, int], *, tasks: int) -> None:
    """Have so many tasks look for files of these sizes: they are dealt to all executors that are there.

    Raises:
        ClusterError: one does not see a file, or sees another one; says which.
    """

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = (_unlike(file, size) for file, size in files.items())
            yield pa.RecordBatch.from_pydict(
                {"fault": pa.array([next(filter(None, found), None)], pa.string())}
            )

    for row in (
        spark.range(0, tasks, 1, tasks).mapInArrow(look, "fault string").where("fault is not null").collect()
    ):
        raise ClusterError(
            f"{row['fault']}: put it where all machines see it, under the same path"
            " (`--stage` for journals, and for histories at URIs)"
        )


def _unlike(file: str, size: int) -> str | None:
    """How a file differs here from what the driver sees, None if it does not."""
    try:
        there = Path(file).stat().st_size
    except OSError:
        return f"{file}: executors do not see this file"
    return None if there == size else f"{file}: has {size} bytes, and {there} where executors run"
