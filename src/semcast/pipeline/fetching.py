"""Histories at URIs (`s3a://`, `hdfs://`, ...), brought to this machine by Spark's own reader."""

from pathlib import Path, PurePosixPath

from pyspark.sql import SparkSession

from semcast.history import HistoryError
from semcast.pipeline.failures import failures, told
from semcast.pipeline.paths import local_path

_KINDS = "*.{parquet,journal,crash}"
"""Histories, and what says of a journal's process that it crashed."""


def fetch(spark: SparkSession, uri: str, folder: Path) -> None:
    """Write the files at a URI, one of a file or of folders, into a folder of this machine, laid out alike.

    Spark sends a file as one value: none may be larger than `spark.driver.maxResultSize`, nor than 2 GiB.

    Raises:
        HistoryError: there is none, or it cannot be read.
    """
    folder.mkdir(parents=True)
    there: dict[str, Path] = {}

    def here(path: str) -> Path:
        whole = PurePosixPath(path)
        # Files of two folders may have the same name.
        beside = there.setdefault(str(whole.parent), folder / str(len(there)))
        beside.mkdir(exist_ok=True)
        return beside / whole.name

    try:
        reader = spark.read.format("binaryFile").option("pathGlobFilter", _KINDS)
        found = reader.option("recursiveFileLookup", "true").load(uri)
        for file in found.inputFiles():
            here(local_path(file)).touch()  # Spark passes over empty ones
        for row in found.select("path", "content").toLocalIterator():
            here(row["path"]).write_bytes(row["content"])
    except failures() as error:
        raise HistoryError(f"{uri}: {told(error)}") from error
    if not there:
        raise HistoryError(f"{uri}: no *.parquet or *.journal files there")
