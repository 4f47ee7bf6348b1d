"""No pass over a trace sees other rows than the one before, however files are cut and wherever they lie."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.test_pipeline_profile import COLUMNS, Row, by_hand, drawn, of_spark, scanned

from semcast.pipeline.profile import profiling, segments
from semcast.pipeline.profile.merge import bin_high, bin_lows
from semcast.pipeline.profile.output import write_tables
from semcast.pipeline.profile.partial import Cut
from semcast.pipeline.profile.profiling import Settings, profile, profiled
from semcast.pipeline.profile.read import Columns, Trace, read_trace
from semcast.pipeline.profile.segments import scan
from semcast.pipeline.profile.sources import TraceError

PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
OPENING = "spark.sql.files.openCostInBytes"


@pytest.fixture
def small_blocks(interpreted: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Spark cuts even small files into blocks, the more the more executors there are; a profile pins them."""
    monkeypatch.setattr(profiling, "_SPLITS", 6)
    interpreted.conf.set(OPENING, "100")
    interpreted.conf.set(PARALLELISM, "3")
    yield interpreted
    interpreted.conf.unset(OPENING)
    interpreted.conf.unset(PARALLELISM)


def write_csv(path: Path, rows: list[Row], names: list[str] | None = None) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names or list(COLUMNS), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return str(path)


def write_parquet(path: Path, rows: list[Row], row_group: int = 97) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    pq.write_table(table, path, row_group_size=row_group)


def shuffled(seed: int) -> list[Row]:
    rows = drawn(seed)
    Random(seed).shuffle(rows)
    return rows


def executors_join_before(patch: pytest.MonkeyPatch, where: object, name: str, spark: SparkSession) -> None:
    """More of them are there when this function is called."""
    called = getattr(where, name)

    def joined(*args: object, **options: object) -> object:
        spark.conf.set(PARALLELISM, "9")
        return called(*args, **options)

    patch.setattr(where, name, joined)


def test_executors_that_join_before_rows_are_sorted(
    small_blocks: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = shuffled(1)
    trace = read_trace(small_blocks, [write_csv(tmp_path / "t.csv", rows)])
    executors_join_before(monkeypatch, segments, "_sorted", small_blocks)
    assert of_spark(profile(trace, Settings(purge=0.3))) == by_hand(rows, purge=0.3, gap=0.0)


def test_executors_that_join_before_operations_are_looked_for(
    small_blocks: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_csv(tmp_path / "t.csv", sorted(drawn(2)), ["ts", "key", "kind"])
    expected = of_spark(profile(read_trace(small_blocks, [path]), Settings(groups="ts")))
    executors_join_before(monkeypatch, profiling, "rows", small_blocks)
    assert of_spark(profile(read_trace(small_blocks, [path]), Settings(groups="ts"))) == expected


def test_blocks_that_are_cut_otherwise_are_an_error(
    small_blocks: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were nothing to fix the blocks: not a row too few without a word."""
    trace = read_trace(small_blocks, [write_csv(tmp_path / "t.csv", shuffled(1))])
    executors_join_before(monkeypatch, segments, "_sorted", small_blocks)
    with ExitStack() as kept, pytest.raises(TraceError, match=r"t\.csv: (a block at|\d+ rows were there)"):
        scan(trace, Cut(), kept)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_files_that_change_between_passes_are_an_error(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    rows = shuffled(3)
    path = tmp_path / f"t.{format_}"
    write = write_csv if format_ == "csv" else write_parquet
    write(path, rows)
    trace = read_trace(interpreted, [str(path)])
    called = segments._sorted

    def later(*args: object, **options: object) -> object:
        write(path, rows[:-1])
        return called(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(segments, "_sorted", later)
    with pytest.raises(TraceError, match=r"rows were there at first, then"):
        profile(trace, Settings(segment=50))


def test_what_merging_sees_is_compared_with_what_was_read(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(path, sorted(drawn(4)))
    whole = segments.merged
    monkeypatch.setattr(profiling, "merged", lambda found: whole(found).limit(1))
    with pytest.raises(TraceError, match=r"stream .*: \d+ updates were there at first, then \d+"):
        profile(read_trace(interpreted, [str(path)]), Settings(partitions=5))


def test_parquet_in_subfolders_is_read(interpreted: SparkSession, tmp_path: Path) -> None:
    rows = sorted(drawn(5))
    write_parquet(tmp_path / "in" / "a.parquet", rows[:100])
    write_parquet(tmp_path / "in" / "deeper" / "b.parquet", rows[100:300])
    write_parquet(tmp_path / "in" / "deeper" / "still" / "c.PARQUET", rows[300:])
    trace = read_trace(interpreted, [str(tmp_path / "in")])
    expected = by_hand(rows, purge=0.3, gap=0.0)
    assert trace.in_place
    assert of_spark(profile(trace, Settings(purge=0.3, segment=50))) == expected
    assert of_spark(profile(by_spark(trace), Settings(purge=0.3, segment=50))) == expected


def test_a_stream_may_lie_in_several_folders_and_formats(interpreted: SparkSession, tmp_path: Path) -> None:
    """Rows are read in place here and by Spark there: no two segments have one number."""
    rows = sorted(drawn(5))
    write_parquet(tmp_path / "one" / "x.parquet", rows[:150])
    write_parquet(tmp_path / "two" / "x.parquet", rows[150:400])
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    settings = Settings(purge=0.3, segment=50)
    assert of_spark(profile(read_trace(interpreted, folders), settings)) == by_hand(
        rows[:400], purge=0.3, gap=0.0
    )
    text = write_csv(tmp_path / "rest.csv", rows[400:])
    trace = read_trace(interpreted, [text, *folders])
    assert [table.row_groups is None for table in trace.tables] == [True, False, False]
    assert of_spark(profile(trace, settings)) == by_hand(rows, purge=0.3, gap=0.0)


def test_folders_that_name_a_value(interpreted: SparkSession, tmp_path: Path) -> None:
    rows = [row for row in sorted(drawn(6)) if row[0] in ("drawn 0", "drawn 1")]
    for name in ("drawn 0", "drawn 1"):
        write_parquet(tmp_path / f"lane={name}" / "part.parquet", [row for row in rows if row[0] == name])
    trace = read_trace(interpreted, [str(tmp_path)], Columns(stream="lane"))
    assert of_spark(profile(trace, Settings(purge=0.3))) == by_hand(rows, purge=0.3, gap=0.0)


def by_spark(trace: Trace) -> Trace:
    """The same, but read by Spark's reader."""
    return replace(trace, tables=tuple(replace(table, row_groups=None) for table in trace.tables))


@pytest.mark.parametrize("seed", range(4))
def test_row_groups_read_in_place_are_what_spark_reads(
    interpreted: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Whatever types columns have, whichever are missing, and with nulls in them."""
    rng = Random(seed)
    rows = sorted(drawn(seed + 20))
    for number in range(3):
        part = rows[number::3] if seed % 2 else rows[number * 300 : (number + 1) * 300]
        stream, seq, ts, key, size, kind = (list(column) for column in zip(*part, strict=True))
        micros = [round(1e6 * second) for second in ts]
        columns: dict[str, pa.Array] = {
            "ts": pa.array(micros, pa.timestamp("us")) if seed == 1 else pa.array(ts, pa.float32()),
            "key": pa.array([text or None for text in key]).dictionary_encode(),
            "bytes": pa.array([each if rng.random() < 0.9 else None for each in size], pa.int16()),
        }
        if seed != 2:
            columns["seq"] = pa.array(seq, pa.uint32())
            columns["stream"] = pa.array([f"{name}" for name in stream], pa.string())
        if seed < 2:
            columns["kind"] = pa.array([each if each != "event" else "" for each in kind])
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=64)
    trace = read_trace(interpreted, [str(tmp_path)])
    assert trace.in_place
    settings = Settings(purge=0.3, segment=50, partitions=3)
    assert of_spark(profile(trace, settings)) == of_spark(profile(by_spark(trace), settings))
    one, other = scanned(trace), scanned(by_spark(trace))
    assert facts_of(one) == facts_of(other)


def facts_of(found: segments.Scan) -> list[tuple[object, ...]]:
    return [
        (each.stream, each.first, each.last, each.kinds, each.bytes, each.began, each.ended)
        for each in found.streams
    ]


def test_a_stream_has_numbers_or_has_none(interpreted: SparkSession, tmp_path: Path) -> None:
    rows = drawn(8)
    write_csv(tmp_path / "a.csv", rows)
    write_csv(tmp_path / "b.csv", rows, ["stream", "ts", "key"])
    with pytest.raises(TraceError, match=r"stream drawn \d: some of its rows have a seq, others have none"):
        profile(read_trace(interpreted, [str(tmp_path)]))


def test_tables_have_every_distance_once(interpreted: SparkSession, tmp_path: Path) -> None:
    """The same distance is counted in several segments and over their edges."""
    rows = [row for row in sorted(drawn(9)) if row[0] == "drawn 0"]
    write_parquet(tmp_path / "in.parquet", rows)
    trace = read_trace(interpreted, [f"file://{tmp_path}/in.parquet"])
    (tmp_path / "items.parquet").mkdir()  # as Spark wrote it before
    with profiled(trace, Settings(segment=7, partitions=4)) as done:
        write_tables(done, str(tmp_path))
    (found,) = done.streams
    histogram = pq.read_table(tmp_path / "histogram.parquet").to_pydict()
    assert histogram["distance"] == [each.low for each in found.distances.bins]
    assert histogram["messages"] == [each.n for each in found.distances.bins]
    assert sum(pq.read_table(tmp_path / "items.parquet")["updates"].to_pylist()) == found.items.updates
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "histogram.parquet",
        "in.parquet",
        "items.parquet",
        "summary.parquet",
    ]


def test_bins() -> None:
    for distance in [*range(1, 5000), *(2**power + by for power in range(12, 60, 7) for by in (-1, 0, 1))]:
        low = int(bin_lows(pa.array([distance]).to_numpy())[0])
        rest = max(distance.bit_length() - 11, 0)
        assert (low, bin_high(low)) == (distance >> rest << rest, ((distance >> rest) + 1 << rest) - 1)
