"""Profiles, on Spark, of every recording in a data folder: `SET/*.csv.gz`, `profile.json` beside them."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from semcast.pipeline.profile.profiling import profile
from semcast.pipeline.profile.read import read_trace
from semcast.pipeline.profile.summary import StreamProfile, as_dict
from semcast.pipeline.report.traces import Figures, Recording, Recordings

LARGEST = 1000
"""The largest buffer on the curves."""


def recordings_in(data: Path) -> dict[str, list[Path]]:
    """The recordings of each folder that has some.

    >>> recordings_in(Path("no such folder"))
    {}
    """
    folders = sorted(each for each in data.glob("*") if each.is_dir())
    found = {folder.name: sorted(folder.glob("*.csv.gz")) for folder in folders}
    return {name: files for name, files in found.items() if files}


def profile_data(spark: SparkSession, data: Path) -> list[Recordings]:
    """Profile everything in a data folder; TraceError if a recording cannot be read."""
    return [_profiled(spark, data / name, files) for name, files in recordings_in(data).items()]


def _profiled(spark: SparkSession, folder: Path, files: list[Path]) -> Recordings:
    reference = _reference(folder / "profile.json")
    streams = profile(read_trace(spark, [str(file) for file in files]))
    return Recordings(
        folder.name,
        _text(folder / "README.md"),
        tuple(_recording(each, reference.get(each.stream, {})) for each in streams),
    )


def _recording(found: StreamProfile, reference: Figures) -> Recording:
    figures: dict[str, float | None] = {
        name: value
        for name, value in as_dict(found).items()
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    }
    figures["rate"] = found.messages / found.seconds if found.seconds else None
    ratio = found.distances.empirical().purge_ratio
    return Recording(found.stream, figures, tuple((n, ratio(n)) for n in _sizes()), reference)


def _sizes() -> list[int]:
    """Dense where curves bend, on an axis that is logarithmic."""
    return sorted({round(10 ** (step / 20)) for step in range(61)} | {LARGEST})


def _reference(path: Path) -> dict[str, Figures]:
    if not path.exists():
        return {}
    return {
        stream: {name: value for name, value in figures.items() if isinstance(value, int | float)}
        for stream, figures in json.loads(path.read_text(encoding="utf8")).items()
        if isinstance(figures, dict)
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf8", errors="replace") if path.exists() else ""
