"""Tables as folders of Parquet files, written by whoever has the disk, and counted afterwards.

A path without a scheme is on the driver's disk. Executors elsewhere would write to disks of their own, and
Spark would call that a success: so the driver writes small tables itself, and large ones are looked for.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from semcast.pipeline.failures import ClusterError
from semcast.pipeline.paths import as_uri, is_remote, local_path
from semcast.pipeline.session import in_one_process
from semcast.pipeline.staging import guarded

DRIVER_ROWS = 2_000_000
"""The most rows of a table that comes to the driver of a cluster to be written."""


class OutputError(ClusterError):
    """Output that is missing after it was written."""


def write_table(frame: DataFrame, out: str, *, driver_rows: int = DRIVER_ROWS) -> int:
    """Write a table over an earlier one, and make sure that it is there; returns its rows.

    Raises:
        OutputError: rows are missing.
    """
    rows = frame.count()
    path = local_path(out)
    if is_remote(path):
        frame.write.mode("overwrite").parquet(path)
        _compare(out, rows, frame.sparkSession.read.parquet(path).count())
        return rows
    with _appearing(Path(path)) as part:
        if in_one_process(frame.sparkSession) or rows > driver_rows:
            frame.write.parquet(as_uri(str(part)))
        else:
            _write(frame.toArrow(), part)
        _compare(out, rows, _rows_in(part))
    return rows


def write_here(table: pa.Table, folder: Path) -> None:
    """The same for a table of the driver's."""
    with _appearing(folder) as part:
        _write(table, part)


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """What is written to the path that is given becomes the folder, or nothing of it is left."""
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    part.parent.mkdir(parents=True, exist_ok=True)
    guard = guarded(part)
    try:
        yield part
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        guard.communicate()


def _write(table: pa.Table, folder: Path) -> None:
    folder.mkdir()
    pq.write_table(table, folder / "part-00000.parquet")
    (folder / "_SUCCESS").touch()


def _rows_in(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _compare(out: str, wrote: int, there: int) -> None:
    if there != wrote:
        raise OutputError(
            f"{out}: {there} of {wrote} rows are there after writing: executors wrote the others to disks of"
            " their own; name a folder that all machines see, or a URI such as s3a://bucket/folder"
        )
