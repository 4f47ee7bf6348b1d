"""The files of the histories to verify: what their footers say, before Spark reads a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.history import SCHEMA, SCHEMA_VERSION, HistoryError, RunInfo
from semcast.history.schema import RUN_KEY, VERSION_KEY


@dataclass(frozen=True, slots=True)
class Recorded:
    """Files that can be read, and the runs that they are about."""

    files: tuple[Path, ...]
    runs: dict[str, RunInfo]
    rows: int


def survey(paths: Sequence[Path]) -> Recorded:
    """Look at every footer; raises HistoryError at the first file that is not a history."""
    runs: dict[str, tuple[RunInfo, Path]] = {}
    rows: dict[str, int] = {}
    files = tuple(dict.fromkeys(file.resolve() for path in paths for file in _files(path)))
    for file in files:
        info, count = _inspect(file)
        known, first = runs.setdefault(info.run, (info, file))
        if info != known:
            raise HistoryError(f"{file}: describes run {info.run} differently than {first}")
        rows[info.run] = rows.get(info.run, 0) + count
    for run, (_, first) in runs.items():
        if not rows[run]:
            raise HistoryError(f"{first}: run {run} has no events")
    return Recorded(files, {run: info for run, (info, _) in runs.items()}, sum(rows.values()))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise HistoryError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise HistoryError(f"{path}: no *.parquet files in this folder")
    return files


def _inspect(file: Path) -> tuple[RunInfo, int]:
    try:
        with pq.ParquetFile(file) as parquet:
            info = _info(file, parquet.schema_arrow.metadata or {})
            _check_columns(file, parquet.schema_arrow)
            foreign = set(_runs_in(parquet)) - {info.run}
            if foreign:
                raise HistoryError(
                    f"{file}: has rows of run {min(map(str, foreign))}, and is about run {info.run}"
                )
            return info, parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{file}: not a Parquet file, or damaged or cut off: {_line(error)}") from error


def _info(file: Path, metadata: dict[bytes, bytes]) -> RunInfo:
    version = metadata.get(VERSION_KEY)
    if version is None or RUN_KEY not in metadata:
        raise HistoryError(f"{file}: a Parquet file, but not a recorded history (no run in its metadata)")
    if version != str(SCHEMA_VERSION).encode():
        found = version.decode(errors="replace")
        raise HistoryError(f"{file}: schema version {found}; this program reads version {SCHEMA_VERSION}")
    try:
        return msgspec.json.decode(metadata[RUN_KEY], type=RunInfo)
    except msgspec.DecodeError as error:
        raise HistoryError(f"{file}: unreadable description of the run: {error}") from error


def _check_columns(file: Path, found: pa.Schema) -> None:
    missing = [name for name in SCHEMA.names if found.get_field_index(name) < 0]
    if missing:
        raise HistoryError(f"{file}: missing columns: {', '.join(missing)}")
    for field in SCHEMA:
        actual = found.field(field.name).type
        if not actual.equals(field.type):
            raise HistoryError(f"{file}: column {field.name} is {actual}, not {field.type}")


def _runs_in(parquet: pq.ParquetFile) -> Iterable[str | None]:
    """The first and the last run, by name, of every row group."""
    place = parquet.schema_arrow.names.index("run")
    for number in range(parquet.metadata.num_row_groups):
        known = parquet.metadata.row_group(number).column(place).statistics
        if known is not None and known.has_min_max and not known.null_count:
            yield from (known.min, known.max)
        else:
            yield from parquet.read_row_group(number, columns=["run"]).column("run").unique().to_pylist()


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
