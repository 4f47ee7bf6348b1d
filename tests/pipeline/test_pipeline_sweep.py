"""Sweeps: every cell of a spec gets its row, whatever cells do and however they are spread."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from semcast.cli import sweep as command
from semcast.cli.errors import UsageError
from semcast.pipeline.sweep.spec import Spec, SpecError, cell_id, planned, read_spec
from semcast.pipeline.sweep.store import Store, StoreError
from semcast.pipeline.sweep.sweep import run_sweep
from semcast.pipeline.sweep.waves import Planner
from semcast.pipeline.sweep.worker import CellOutcome, run_cells
from semcast.sim.experiments import Cell, Result

SMALL = """
experiment = "f3"
title = "small"
[fixed]
messages = 200
[grid]
r = [0.25, 0.5]
n = [5, 10, 20]
seed = [1, 2]
[paper]
source = "nowhere"
[[paper.numbers]]
what = "model"
value = 50
column = "model_throughput"
where = { r = 0.5, n = 20 }
"""


def spec_of(folder: Path, text: str) -> Spec:
    path = folder / "small.toml"
    path.write_text(text)
    return read_spec(path)


def seeds(count: int) -> Spec:
    return Spec("seeds", "f3", "", planned("f3", [{"seed": seed} for seed in range(count)]), None)


def table_of(out: Path, name: str = "seeds") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(out / name / "table.parquet").to_pylist()
    return rows


def statuses(out: Path) -> dict[object, object]:
    return {row["seed"]: row["status"] for row in table_of(out)}


# Specs


def test_a_grid_gives_all_combinations_in_the_order_of_the_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    parameters = [cell.parameters for cell in spec.cells]
    assert len(parameters) == 12
    assert parameters[0] == {"messages": 200, "r": 0.25, "n": 5, "seed": 1}
    assert parameters[-1] == {"messages": 200, "r": 0.5, "n": 20, "seed": 2}


def test_grids_cells_and_draws_add_up(tmp_path: Path) -> None:
    text = """
    experiment = "f3"
    cells = [{ n = 7 }, { n = 8 }]
    [[grid]]
    n = [1, 2]
    [[grid]]
    n = [3]
    k = [1, 2]
    [random]
    draws = 5
    seed = 3
    between = { n = [10, 40], r = [0.0, 1.0] }
    choice = { d = [1, 5] }
    """
    spec = spec_of(tmp_path, text)
    assert len(spec.cells) == 2 + 2 + 2 + 5
    assert spec == spec_of(tmp_path, text)
    for cell in spec.cells[-5:]:
        assert isinstance(cell.parameters["n"], int)
        assert 10 <= cell.parameters["n"] <= 40
        assert isinstance(cell.parameters["r"], float)
        assert cell.parameters["d"] in (1, 5)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("experiment = ", "Invalid"),
        ('experiment = "f99"\n[grid]\nn=[1]', "no experiment named 'f99'"),
        ('experiment = "f3"', "no cells"),
        ('experiment = "f3"\n[grid]\nn = []', "n has no values"),
        ('experiment = "f3"\nsped = 1', "sped"),
        ('experiment = "f3"\n[grid]\nsped = [1]', "cell 1: .*sped"),
        ('experiment = "f3"\n[grid]\nr = ["much"]', "cell 1: .*r"),
        ('experiment = "f3"\n[grid]\nn = [true]', "grid"),
        ('experiment = "f3"\n[grid]\nr = [1, 1.0]', "cell 2 is cell 1 again"),
        ('experiment = "f3"\n[random]\ndraws = 0', "at least 1"),
        ('experiment = "f3"\n[random]\ndraws = 1\nbetween = { n = [3, 1] }', "not between 3 and 1"),
    ],
)
def test_bad_specs_are_refused_with_their_name(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=rf"small\.toml: (.*){complaint}"):
        spec_of(tmp_path, text)


def test_a_spec_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone\.toml: No such file"):
        read_spec(tmp_path / "gone.toml")


def test_the_id_of_a_cell_depends_on_what_it_is_and_not_on_how_it_is_written() -> None:
    assert cell_id("f3", {"n": 1, "r": 0.5}) == cell_id("f3", {"r": 0.5, "n": 1.0})
    assert cell_id("f3", {"n": 1}) != cell_id("f4", {"n": 1})
    assert cell_id("f3", {"n": 1}) != cell_id("f3", {"n": 2})


# Waves


def test_tasks_grow_to_two_seconds_then_shrink_and_hold_every_cell_once() -> None:
    cells = seeds(500).cells
    planner = Planner(cells, slots=2, partitions=None)
    first = planner.next()
    assert first is not None
    assert [len(chunk) for chunk in first.chunks] == [1] * 2
    planner.learn([CellOutcome(cell.id, "ok", None, "{}", 0.05) for cell in first.cells()])
    seen = first.cells()
    sizes = []
    while (wave := planner.next()) is not None:
        seen += wave.cells()
        sizes += [len(chunk) for chunk in wave.chunks]
    assert seen == list(cells)
    assert set(sizes[:8]) == {40}
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == 5, "a quarter of a second"


def test_an_error_is_told_with_the_line_that_raised_it() -> None:
    def broken(cell: Cell) -> Result:
        raise ValueError(f"cannot {cell['seed']}")

    [outcome] = run_cells(broken, seeds(1).cells, timeout=5)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.startswith("ValueError: cannot 0 (test_pipeline_sweep.py:")


@pytest.mark.parametrize(
    ("result", "complaint"), [({"x": [1]}, "x is list"), ({"seed": 1}, "seed has the name of a parameter")]
)
def test_results_that_fit_no_table_are_failures(result: dict[str, object], complaint: str) -> None:
    [outcome] = run_cells(lambda _: result, seeds(1).cells, timeout=5)  # type: ignore[arg-type, return-value]
    assert outcome.status == "failed"
    assert complaint in str(outcome.error)


def test_a_cell_that_catches_every_exception_is_ended_all_the_same() -> None:
    def stubborn(_: Cell) -> Result:
        while True:
            try:
                time.sleep(10)
            except Exception:  # noqa: S112
                continue

    [outcome] = run_cells(stubborn, seeds(1).cells, timeout=0.1)
    assert (outcome.status, outcome.error) == ("timeout", "not done after 0.1 s (--timeout allows more)")


def test_a_cell_that_no_signal_reaches_takes_its_process_with_it() -> None:
    program = """
import signal
from semcast.pipeline.sweep import worker
from semcast.pipeline.sweep.spec import PlannedCell
worker.GRACE = 0.1
def deaf(_):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True: pass
list(worker.run_cells(deaf, [PlannedCell("a", {})], timeout=0.1))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 1


def test_the_command_line_needs_spark_only_when_it_sweeps() -> None:
    program = "import semcast.cli.sweep, sys; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# On Spark


def test_cells_that_fail_hang_or_kill_their_process_are_recorded_and_lose_nobody(
    spark: SparkSession, tmp_path: Path
) -> None:
    def trouble(cell: Cell) -> Result:
        if cell["seed"] == 1:
            raise ValueError("one")
        while cell["seed"] == 2:
            pass
        if cell["seed"] == 3:
            os._exit(1)
        return {"figure": 10 * float(cell["seed"])}

    summary = run_sweep(spark, seeds(8), tmp_path, timeout=0.5, function=trouble, partitions=2)
    assert statuses(tmp_path) == {
        seed: {1: "failed", 2: "timeout", 3: "failed"}.get(seed, "ok") for seed in range(8)
    }
    assert [row["figure"] for row in table_of(tmp_path)] == [0, None, None, None, 40, 50, 60, 70]
    assert (summary.cells, summary.ran, summary.ok, len(summary.failures)) == (8, 8, 5, 3)
    assert "ValueError: one" in summary.failures[0].error
    assert "died" in summary.failures[2].error


def test_a_sweep_goes_on_with_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    ran.mkdir()
    log = str(ran)

    def noted(cell: Cell) -> Result:
        Path(log, f"{cell['seed']}-{time.time_ns()}").touch()
        return {"figure": 1}

    limited = run_sweep(spark, seeds(6), tmp_path, function=noted, limit=4)
    assert (limited.ran, limited.left, limited.ok) == (4, 2, 4)
    rest = run_sweep(spark, seeds(6), tmp_path, function=noted)
    assert (rest.before, rest.ran, rest.left, rest.ok) == (4, 2, 0, 6)
    assert sorted(path.name.split("-")[0] for path in ran.iterdir()) == list("012345")
    assert run_sweep(spark, seeds(6), tmp_path, function=noted).ran == 0


def test_an_interrupted_sweep_keeps_the_waves_that_were_done(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "seeds")

    def slow(_: Cell) -> Result:
        time.sleep(0.1)
        return {"figure": 1}

    def interrupt(_done: float, _cells: int) -> None:
        if store.outcomes():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(spark, seeds(60), tmp_path, function=slow, progress=interrupt)
    kept = len(store.outcomes())
    assert 1 <= kept < 60
    rest = run_sweep(spark, seeds(60), tmp_path, function=slow)
    assert (rest.before, rest.ran, rest.ok) == (kept, 60 - kept, 60)


def test_failed_cells_run_again_only_if_asked(spark: SparkSession, tmp_path: Path) -> None:
    def broken(_: Cell) -> Result:
        raise ValueError("not yet")

    def mended(_: Cell) -> Result:
        return {"figure": 1}

    run_sweep(spark, seeds(2), tmp_path, function=broken)
    assert run_sweep(spark, seeds(2), tmp_path, function=mended).ran == 0
    again = run_sweep(spark, seeds(2), tmp_path, function=mended, retry=True)
    assert (again.ran, again.ok) == (2, 2)
    assert set(statuses(tmp_path).values()) == {"ok"}


def test_a_broken_executor_stops_the_sweep_instead_of_blaming_cells(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Unpicklable:
        def __call__(self, _: Cell) -> Result:
            return {}

        def __reduce__(self) -> tuple[object, ...]:
            return json.loads, ("not json",)

    with pytest.raises(Exception, match="JSONDecodeError"):
        run_sweep(spark, seeds(2), tmp_path, function=Unpicklable())
    assert Store(tmp_path / "seeds").outcomes() == {}


def test_the_table_is_the_same_for_any_number_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    tables = []
    for partitions in (1, 5, None):
        out = tmp_path / str(partitions)
        summary = run_sweep(spark, spec, out, partitions=partitions)
        assert summary.ok == 12
        assert [(number.what, round(number.ours or 0)) for number in summary.paper] == [("model", 71)]
        tables.append(pq.read_table(out / "small" / "table.parquet"))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert tables[0].column("n").to_pylist() == [5, 5, 10, 10, 20, 20] * 2


def test_a_damaged_wave_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([CellOutcome("a", "ok", None, "{}", 0.1)])
    (tmp_path / "waves" / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"bad\.parquet"):
        store.outcomes()


# The command


def command_line(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="verb"))
    return parser.parse_args(["sweep", *words])


@pytest.mark.usefixtures("spark")
def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec_of(tmp_path, SMALL)
    words = (str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--master", "local[2]")
    args = command_line(*words, "--json", "--limit", "5")
    assert args.run(args) == 0
    said = capsys.readouterr()
    [summary] = json.loads(said.out)
    assert "1 of 1: small, 5 simulations in" in said.err
    assert (summary["ran"], summary["left"], summary["failures"]) == (5, 7, [])
    args = command_line(*words)
    assert args.run(args) == 0
    assert "12 cells: 5 recorded before, 7 run" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.usefixtures("spark")
def test_the_command_exits_with_1_if_a_cell_gave_no_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMCAST_TRACES", str(tmp_path))
    spec_of(tmp_path, 'experiment = "g2"\n[grid]\ntrace = ["nowhere.csv"]')
    args = command_line(str(tmp_path / "small.toml"), "--out", str(tmp_path), "--master", "local[2]")
    assert args.run(args) == 1
    assert "nowhere.csv" in capsys.readouterr().out


def test_traces_are_named_in_the_folder_of_recordings(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = "".join(f"game,{n},{n / 100},item{n % 3},10,update\n" for n in range(200))
    (data / "game.csv").write_text(f"stream,seq,ts,key,bytes,kind\n{rows}")
    monkeypatch.setenv("SEMCAST_TRACES", str(data))
    spec = spec_of(tmp_path, 'experiment = "g2"\n[fixed]\nskip = 0.0\n[grid]\ntrace = ["game.csv"]')
    assert run_sweep(spark, spec, tmp_path / "out").ok == 1
    assert table_of(tmp_path / "out", "small")[0]["trace"] == "game.csv"


@pytest.mark.parametrize(
    "words",
    [
        ("--timeout", "soon"),
        ("--timeout", "0s"),
        ("--limit", "0"),
        ("--jobs", "0"),
        ("--jobs", "2", "--master", "x"),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(tmp_path: Path, words: tuple[str, ...]) -> None:
    spec_of(tmp_path, SMALL)
    args = command_line(str(tmp_path / "small.toml"), *words)
    with pytest.raises(UsageError):
        args.run(args)


def test_two_specs_with_one_name_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    spec_of(tmp_path, SMALL)
    spec_of(other, SMALL)
    args = command_line(str(tmp_path / "small.toml"), str(other / "small.toml"))
    with pytest.raises(UsageError, match="two specs are named small"):
        args.run(args)
