"""The files behind the names on a command line: which there are, and what their columns are called."""

import bz2
import csv
import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semcast.pipeline.paths import for_spark, is_remote, local_path

_PEEK = 1000
"""How many lines of a JSON file are looked at for the names of its columns."""

_SMALL_BYTES = 512 << 10
_PACKED = 8
"""How many times its size a packed file holds, about."""


class TraceError(Exception):
    """A trace that cannot be used: what is wrong, where, and what to do."""


class Format(Enum):
    """What a file holds, by the end of its name."""

    CSV = (".csv",)
    TSV = (".tsv",)
    JSON = (".jsonl", ".ndjson", ".json")
    PARQUET = (".parquet", ".pq")


_NAME = re.compile(
    r"(?P<stem>.*?)(?P<ending>\.(?:csv|tsv|jsonl|ndjson|json|parquet|pq))(?P<packed>\.gz|\.bz2)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file, and the stream that its rows belong to where they do not say it themselves."""

    path: str
    stream: str
    format: Format
    root: str
    """What was named on the command line: the file, or the folder it is in."""

    ordinal: int = 0
    """Files are in this order."""


def find_sources(spark: SparkSession, named: list[str]) -> list[Source]:
    """The files of the named files and folders, in order; folders are searched, by name."""
    found = [source for name in named for source in _sources_of(spark, name)]
    if not found:
        raise TraceError("no trace was named")
    path, times = Counter(source.path for source in found).most_common(1)[0]
    if times > 1:
        raise TraceError(f"{path} is named twice")
    return [replace(source, ordinal=ordinal) for ordinal, source in enumerate(found)]


def are_small(named: list[str]) -> bool:
    """Whether these are local, and so short that they hold some ten thousand rows at most."""
    inside = _files_here(named)
    return inside is not None and sum(map(_unpacked, inside)) <= _SMALL_BYTES


def are_parquet(named: list[str]) -> bool:
    """Whether these are local Parquet files: Python reads them, and Spark only deals them out."""
    inside = _files_here(named)
    return inside is not None and all(path.suffix.lower() in Format.PARQUET.value for path in inside)


def _files_here(named: list[str]) -> list[Path] | None:
    """All files; None if some are elsewhere."""
    named = [_local(name) for name in named]
    if any(map(is_remote, named)):
        return None
    files = [Path(name) for name in named]
    inside = (path for file in files for path in (_files_in(file) if file.is_dir() else [file]))
    return [path for path in inside if path.is_file()]


def _unpacked(path: Path) -> int:
    """About how many bytes there are in a file."""
    packed = path.suffix.lower() in (".gz", ".bz2", *Format.PARQUET.value)
    return path.stat().st_size * (_PACKED if packed else 1)


def column_names(spark: SparkSession, source: Source) -> list[str]:
    """What the columns of a text file are called: by its header, or by its first JSON objects."""
    lines = _first_lines(spark, source, 1 if source.format is not Format.JSON else _PEEK)
    if not lines:
        raise TraceError(f"{source.path} is empty")
    if len(lines) < _PEEK and source.format is Format.JSON and not any(line.strip() for line in lines):
        raise TraceError(f"{source.path} holds no rows")
    if source.format is Format.JSON:
        return sorted({name for line in lines for name in _fields(line)})
    separator = "\t" if source.format is Format.TSV else ","
    names = [name.strip() for name in next(csv.reader(lines[:1], delimiter=separator), [])]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise TraceError(f"{source.path}: line 1: column {min(repeated)!r} is there twice")
    return names


def _local(name: str) -> str:
    """Without the scheme if that says that it is here."""
    return local_path(name) if name.startswith("file:") else name


def _sources_of(spark: SparkSession, name: str) -> list[Source]:
    name = _local(name)
    if is_remote(name):
        root, files = name, _remote_files(spark, name)
    else:
        root, files = str(Path(name).resolve()), _local_files(name)
    if files == [root]:
        return [_source(root, root)]
    # A folder may hold other things, such as a profile.json; lines of JSON have a name of their own there.
    traces = [file for file in files if _NAME.fullmatch(_last(file)) and not file.lower().endswith(".json")]
    if not traces:
        raise TraceError(f"{name}: no trace in this folder; known are {', '.join(_endings())}")
    return [_source(file, root) for file in traces]


def _source(file: str, root: str) -> Source:
    parsed = _NAME.fullmatch(_last(file))
    if parsed is None:
        raise TraceError(f"{file}: what is it? Known are {', '.join(_endings())}, and text also with .gz")
    format_ = next(format_ for format_ in Format if parsed["ending"].lower() in format_.value)
    return Source(file, _stream_of(parsed["stem"], root), format_, root)


def _local_files(name: str) -> list[str]:
    path = Path(name).resolve()
    if path.is_dir():
        return [str(file) for file in _files_in(path)]
    if not path.exists():
        raise TraceError(f"{name}: no such file or folder")
    return [str(path)]


def _files_in(folder: Path) -> list[Path]:
    """Every file below a folder that is not hidden (`.x`, and `_x` as in `_SUCCESS`)."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )


def _remote_files(spark: SparkSession, name: str) -> list[str]:
    try:
        listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(name)
        return sorted(local_path(file) for file in listing.inputFiles())
    except PySparkException as error:
        raise TraceError(f"{name}: {str(error).splitlines()[0]}") from error


def _stream_of(stem: str, root: str) -> str:
    """The name of the file; the parts that Spark writes are named after their folder."""
    if not stem.startswith("part-"):
        return stem
    folder = _last(root)
    parsed = _NAME.fullmatch(folder)
    return parsed["stem"] if parsed else folder


def _last(path: str) -> str:
    return PurePosixPath(path).name


def _endings() -> list[str]:
    return [ending for format_ in Format for ending in format_.value]


def _first_lines(spark: SparkSession, source: Source, count: int) -> list[str]:
    if is_remote(source.path):
        return [row[0] for row in spark.read.text(for_spark(source.path)).head(count)]
    try:
        with _open(source.path) as file:
            lines = [line.decode(errors="replace").rstrip("\r\n") for line in islice(file, count)]
    except (OSError, EOFError) as error:
        raise TraceError(f"{source.path}: cannot be read: {error}") from error
    return [line.removeprefix("\ufeff") for line in lines]


def _open(path: str) -> IO[bytes] | gzip.GzipFile | bz2.BZ2File:
    packed = PurePosixPath(path).suffix.lower()
    if packed == ".gz":
        return gzip.GzipFile(path)
    return bz2.BZ2File(path) if packed == ".bz2" else Path(path).open("rb")


def _fields(line: str) -> list[str]:
    try:
        value = json.loads(line)
    except ValueError:
        return []
    return list(value) if isinstance(value, dict) else []
