"""The files of the histories to verify: what their footers say, before Spark reads a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from semcast.history import HistoryError, RunInfo
from semcast.history.versions import described


@dataclass(frozen=True, slots=True)
class Recorded:
    """Files that can be read, and the runs that they are about."""

    files: tuple[Path, ...]
    runs: dict[str, RunInfo]
    """By name; each group of a run that has several is a run here, with a name of its own."""
    rows: int


def survey(paths: Sequence[Path]) -> Recorded:
    """Look at every footer; raises HistoryError at the first file that is not a history."""
    runs: dict[str, tuple[RunInfo, Path]] = {}
    rows: dict[str, int] = {}
    files = tuple(dict.fromkeys(file.resolve() for path in paths for file in _files(path)))
    for file in files:
        info, count = _inspect(file)
        known, first = runs.get(info.run, (info, file))
        united = known.united(info)
        if united is None:
            raise HistoryError(f"{file}: describes run {info.run} differently than {first}")
        runs[info.run] = united, first
        rows[info.run] = rows.get(info.run, 0) + count
    for run, (_, first) in runs.items():
        if not rows[run]:
            raise HistoryError(f"{first}: run {run} has no events")
    return Recorded(files, _by_group(info for info, _ in runs.values()), sum(rows.values()))


def _by_group(infos: Iterable[RunInfo]) -> dict[str, RunInfo]:
    found: dict[str, RunInfo] = {}
    for info in infos:
        for name, alone in info.apart().items():
            if name in found:
                raise HistoryError(f"there is a run {name}, and also a group of this name in a run")
            found[name] = alone
    return found


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
            info = described(file, parquet)
            foreign = set(_names_in(parquet, "run")) - {info.run}
            if foreign:
                raise HistoryError(
                    f"{file}: has rows of run {min(map(str, foreign))}, and is about run {info.run}"
                )
            strange = set(_names_in(parquet, "group")) - {group.name for group in info.groups} - {None}
            if strange:
                raise HistoryError(
                    f"{file}: has rows of group {min(map(str, strange))}, which it does not describe"
                )
            return info, parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{file}: not a Parquet file, or damaged or cut off: {_line(error)}") from error


def _names_in(parquet: pq.ParquetFile, column: str) -> Iterable[str | None]:
    """The first and the last name in a column of every row group."""
    place = parquet.schema_arrow.names.index(column)
    for number in range(parquet.metadata.num_row_groups):
        known = parquet.metadata.row_group(number).column(place).statistics
        if known is not None and known.has_min_max and not known.null_count:
            yield from (known.min, known.max)
        else:
            yield from parquet.read_row_group(number, columns=[column]).column(column).unique().to_pylist()


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
