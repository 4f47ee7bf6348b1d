"""What executors in processes of their own need: the package, and a Python with what it imports."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from semcast import __version__
from semcast.pipeline.failures import ClusterError, failures, told
from semcast.pipeline.package import package_folder, write_package

_IMPORTED = ("msgspec", "numpy", "pandas", "pyarrow.parquet")
"""What jobs import beside the package."""


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


def probe(spark: SparkSession) -> None:
    """Have an executor import what jobs need, before there is a job to fail.

    Raises:
        ClusterError: it cannot; says what is missing.
    """
    try:
        answers = spark.range(0, 1, 1, 1).mapInArrow(_answer, "lacks string").collect()
    except failures() as error:
        raise ClusterError(told(error)) from error
    for row in answers:
        raise ClusterError(told(ModuleNotFoundError(row["lacks"])))


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


def look_for(spark: SparkSession, files: Sequence[str], *, tasks: int) -> None:
    """Have so many tasks look for files: they are dealt to all executors that are there.

    Raises:
        ClusterError: one does not see a file; says which.
    """

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            lacking = [file for file in files if not Path(file).exists()]
            yield pa.RecordBatch.from_pydict({"lacks": pa.array(lacking[:1], pa.string())})

    for row in spark.range(0, tasks, 1, tasks).mapInArrow(look, "lacks string").collect():
        raise ClusterError(
            f"{row['lacks']}: executors do not see this file: put it where all machines see it, under"
            " the same path (`--stage` for journals, and for histories at URIs)"
        )
