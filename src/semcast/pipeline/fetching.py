"""Histories at URIs (`s3a://`, `hdfs://`, ...), brought to this machine by Spark's own reader."""

from pathlib import Path, PurePosixPath

from pyspark.sql import SparkSession

from semcast.history import HistoryError
from semcast.pipeline.failures import failures, told

_KINDS = "*.{parquet,journal}"


def fetch(spark: SparkSession, uri: str, folder: Path) -> None:
    """Write the files at a URI, which is one of a file or a folder, into a folder of this machine.

    Spark sends a file as one value: none may be larger than `spark.driver.maxResultSize`, nor than 2 GiB.

    Raises:
        HistoryError: there is none, or it cannot be read.
    """
    folder.mkdir(parents=True)
    files = 0
    try:
        found = spark.read.format("binaryFile").option("pathGlobFilter", _KINDS).load(uri)
        for row in found.select("path", "content").toLocalIterator():
            (folder / PurePosixPath(row["path"]).name).write_bytes(row["content"])
            files += 1
    except failures() as error:
        raise HistoryError(f"{uri}: {told(error)}") from error
    if not files:
        raise HistoryError(f"{uri}: no {_KINDS} there")
