"""`semcast verify` on Spark says what the checkers in memory say, on sound and on broken histories."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import (
    PLAIN,
    differences,
    in_memory,
    said,
    statuses,
)
from tests.pipeline.histories import small, without_b, write
from tests.pipeline.rings import before_any_configuration, deep

from semcast.cli.errors import UsageError
from semcast.cli.verify import add_parser, run
from semcast.history import HistoryError, read_histories
from semcast.pipeline.verify import FORMS, Options, fits_here, memory, survey, verify, verify_here
from semcast.pipeline.verify import job as verify_job
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import PROPERTIES, Status, check

OTHERS = [name for name in PROPERTIES if name not in FORMS]
"""What has no form of its own on Spark."""


# --- what has no form of its own ------------------------------------------------------------------


def test_every_form_is_that_of_a_property() -> None:
    assert set(FORMS) < set(PROPERTIES)


def test_what_has_no_form_is_judged_in_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two properties as if they had none, beside those that really have none."""
    lost = ("integrity", "semantic_agreement")
    monkeypatch.setattr(verify_job, "FORMS", tuple(name for name in FORMS if name not in lost))
    histories = [*map(small, range(8)), deep(), before_any_configuration()]
    names = [*lost, "fifo_delivery", *OTHERS]
    recorded = survey([write(histories, tmp_path / "runs")])
    report = verify(spark, recorded, Options(names, allow_missing=True, out=tmp_path / "out"))
    expected = in_memory(histories, names)
    assert differences(said(report.verdicts), expected) == []
    assert {statuses(expected, name) >= {"holds", "violated"} for name in lost} == {True}
    violated = [verdict for verdict in report.verdicts if verdict.status is Status.VIOLATED]
    assert all(verdict.sample and verdict.detail for verdict in violated)
    table = pq.read_table(tmp_path / "out" / "violations").to_pylist()
    assert sum(row["count"] * row["times"] for row in table) == sum(count for _, count in expected.values())


# --- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write([small(5)], tmp_path / "runs")
    return tmp_path / "runs" / "small-5.parquet"


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table], to: Path | None = None) -> None:
    pq.write_table(change(pq.read_table(file)), to or file)


def relabelled(key: bytes, value: bytes) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata({**table.schema.metadata, key: value})


def other_info(table: pa.Table) -> pa.Table:
    info = table.schema.metadata[b"semcast.run"].replace(b'"uniform":true', b'"uniform":false')
    return relabelled(b"semcast.run", info)(table)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (relabelled(b"semcast.schema", b"99"), "schema version 99; this program reads 1 and 2"),
        (lambda table: table.drop_columns(["level", "order"]), "missing columns: level, order"),
        (lambda table: table.replace_schema_metadata(None), "not a recorded history"),
        (lambda table: table.slice(0, 0), "run small-5 has no events"),
        (
            lambda table: table.set_column(0, table.schema.field(0), pa.array(["x"] * len(table))),
            "rows of run x",
        ),
    ],
)
def test_files_that_are_no_histories(file: Path, change: Callable[[pa.Table], pa.Table], error: str) -> None:
    rewrite(file, change)
    with pytest.raises(HistoryError, match=error):
        survey([file])


def test_files_that_are_damaged_or_not_there(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(HistoryError, match="damaged or cut off"):
        survey([file])
    with pytest.raises(HistoryError, match="no such file or folder"):
        survey([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(HistoryError, match=r"no \*.parquet or \*.journal files"):
        survey([tmp_path / "empty"])


def test_damage_never_ends_in_another_error(file: Path) -> None:
    whole, refused = file.read_bytes(), 0
    for place in range(0, len(whole), 17):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x90]) + whole[place + 1 :])
        try:
            verify_here(survey([file]), Options(allow_missing=True))
        except HistoryError as error:
            refused += str(error).startswith(str(file))
    assert refused > len(whole) // 17 // 2, "most of a file matters"


def test_files_that_disagree_about_their_run(file: Path) -> None:
    rewrite(file, other_info, file.with_name("other.parquet"))
    with pytest.raises(HistoryError, match="describes run small-5 differently than"):
        survey([file.parent])


def changed_cell(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        values = table.column(name).to_pylist()
        values[row] = value
        return table.set_column(
            place, table.schema.field(place), pa.array(values, table.schema.field(place).type)
        )

    return change


def emptied_cell(name: str, row: int) -> Callable[[pa.Table], pa.Table]:
    """A recorder that does not keep to the schema, for the column may not be null."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        values = table.column(name).to_pylist()
        values[row] = None
        field = table.schema.field(place).with_nullable(True)
        return table.set_column(place, field, pa.array(values, field.type))

    return change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (changed_cell("kind", 2, "explode"), r"small-5.parquet: row 2: unknown kind explode"),
        (changed_cell("seq", 0, 0), "row 0: multicast of a message below 1"),
        (changed_cell("seq", 0, 1000), r"multicast of \(a,2\) after 1000: the numbers of a sender must grow"),
        (changed_cell("process", 0, "x"), "row 0: multicast by another than its sender"),
        (emptied_cell("at_ns", 1), "row 1: no at_ns"),
        (emptied_cell("group", 0), "row 0: no group"),
        (emptied_cell("bytes", 2), "row 2: no bytes"),
        (lambda table: table.slice(1), "events of a are not numbered 0, 1, 2"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "rows are missing or there twice"),
    ],
)
def test_rows_that_are_no_events(
    spark: SparkSession, file: Path, change: Callable[[pa.Table], pa.Table], error: str
) -> None:
    rewrite(file, change)
    with pytest.raises(HistoryError, match=error):
        verify(spark, survey([file]), Options(PLAIN, allow_missing=True))


def test_missing_processes_are_an_error_unless_allowed(spark: SparkSession, tmp_path: Path) -> None:
    recorded = survey([write([without_b()], tmp_path)])
    with pytest.raises(HistoryError, match=r"run without-b: nothing was recorded of b; .*--allow-missing"):
        verify(spark, recorded, Options())


# --- few rows, without Spark ----------------------------------------------------------------------


def test_few_rows_are_judged_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same verdicts, examples and output, and nothing of Spark is asked for."""
    histories = [*map(small, range(8)), deep()]
    recorded = survey([write(histories, tmp_path / "runs")])
    options = Options(PLAIN, max_sample=3, allow_missing=True, out=tmp_path / "out")
    assert fits_here(recorded, options)
    assert not fits_here(recorded, Options(out="s3a://bucket/out"))
    report = verify_here(recorded, options)
    expected = in_memory(histories, PLAIN)
    assert differences(said(report.verdicts), expected) == []
    assert report.events == sum(len(history.events) for history in histories)
    violated = [verdict for verdict in report.verdicts if verdict.status is Status.VIOLATED]
    assert all(1 <= len(verdict.sample) <= 3 and verdict.detail for verdict in violated)
    table = pq.read_table(tmp_path / "out" / "violations").to_pylist()
    assert sum(row["count"] * row["times"] for row in table) == sum(count for _, count in expected.values())
    monkeypatch.setattr(memory, "HERE_ROWS", 10)
    assert not fits_here(recorded, options)


def test_few_rows_are_refused_as_many_are(tmp_path: Path, file: Path) -> None:
    recorded = survey([write([without_b()], tmp_path / "without")])
    with pytest.raises(HistoryError, match=r"run without-b: nothing was recorded of b; .*--allow-missing"):
        verify_here(recorded, Options())
    rewrite(file, changed_cell("kind", 2, "explode"))
    with pytest.raises(HistoryError, match=r"small-5.parquet: row 2: unknown kind 'explode'"):
        verify_here(survey([file]), Options(PLAIN, allow_missing=True))


# --- the command ----------------------------------------------------------------------------------


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["verify", *arguments])
    return run(args)


def test_the_command_names_what_is_violated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write([small(seed) for seed in (1, 2, 3)], tmp_path / "runs")
    out = tmp_path / "out"
    assert command(str(folder), "--json", "--out", str(out), "--max-sample", "2") == 1
    found = json.loads(capsys.readouterr().out)
    expected = [verdict for history in read_histories(folder) for verdict in check(history)]
    told = [verdict for run in found["runs"] for verdict in run["verdicts"]]
    assert [(v["property"], v["status"], v["count"]) for v in told] == [
        (v.property, v.status.value, v.count) for v in expected
    ]
    assert all(1 <= len(v["offending"]) <= 2 for v in told if v["count"])
    table = pq.read_table(out / "violations").to_pylist()
    assert sum(row["count"] * row["times"] for row in table) == sum(v.count for v in expected)


def test_the_command_is_content_with_a_sound_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write([simulate(scenario_of("s-rm", 0)).history], tmp_path / "runs")
    assert command(str(folder), "--property", "integrity", "--property", "fifo_delivery") == 0
    assert "holds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        ([".", "--property", "colour"], "no such property: colour"),
        ([".", "--max-sample", "0"], "--max-sample must be at least 1"),
    ],
)
def test_the_command_refuses_in_one_line(arguments: list[str], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        command(*arguments)
