"""The recordings on the report: profiled here, beside what their folder says of them."""

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from semcast.cli.main import main
from semcast.pipeline.report.profiles import profile_data, recordings_in
from semcast.pipeline.report.traces import disagreements

SPEC = """
experiment = "f3"
title = "small"
[fixed]
messages = 200
[grid]
n = [5, 10]
[report]
plots = [{ title = "small", x = "n", lines = [{ column = "simulated_throughput" }] }]
"""
G1 = """
title = "Recorded"
paper = { source = "nowhere" }
sets = [{ folder = "set", title = "A set", caveats = ["mind the gap"] }]
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten messages: of items a and b in turn, and an event at the end."""
    folder = tmp_path / "data" / "set"
    folder.mkdir(parents=True)
    rows = [f"s,{seq},{seq / 10},{'ab'[seq % 2]},5,update" for seq in range(9)] + ["s,9,0.9,,5,event"]
    text = "\n".join(["stream,seq,ts,key,bytes,kind", *rows, ""])
    (folder / "s.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "README.md").write_text("what it is")
    (folder / "profile.json").write_text(json.dumps({"s": {"messages": 10, "R10": 0.7, "D_median": 3}}))
    (tmp_path / "data" / "empty").mkdir()
    return tmp_path / "data"


def test_every_recording_is_profiled(spark: SparkSession, data: Path) -> None:
    assert list(recordings_in(data)) == ["set"]
    (folder,) = profile_data(spark, data)
    (found,) = folder.streams
    assert folder.readme == "what it is"
    assert found.figures["messages"] == 10
    assert found.figures["never_obsolete_share"] == pytest.approx(0.3)
    assert dict(found.curve) == pytest.approx({n: 0.0 if n == 1 else 0.7 for n, _ in found.curve})
    assert found.curve[-1][0] == 1000
    assert disagreements(found) == ["D_median"]


def test_the_command_runs_sweeps_and_profiles(
    spark: SparkSession, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = tmp_path / "specs"
    (specs / "profile").mkdir(parents=True)
    (specs / "small.toml").write_text(SPEC)
    (specs / "profile" / "g1.toml").write_text(G1)
    out = tmp_path / "report.html"
    asked = ["report", "--specs", str(specs), "--results", str(tmp_path / "sweep"), "--data", str(data)]
    assert main([*asked, "--out", str(out), "--run"]) == 0
    said = capsys.readouterr()
    assert "1 experiments, 1 recordings" in said.out
    assert "not run" not in said.err
    text = out.read_text(encoding="utf8")
    for expected in ("2 of 2 cells", "mind the gap", "what it is", "these differ: s: D_median"):
        assert expected in text


def test_a_simulation_that_takes_too_long_is_told_and_may_have_more_time(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What to do is on the page, and `--run` does it, too."""
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "small.toml").write_text(SPEC)
    out = tmp_path / "report.html"
    asked = ["report", "--specs", str(specs), "--results", str(tmp_path / "sweep"), "--no-data"]
    asked += ["--out", str(out), "--run"]
    assert main([*asked, "--timeout", "0s"]) == 2
    assert "--timeout must be above 0" in capsys.readouterr().err
    assert main([*asked, "--timeout", "1us"]) == 0
    assert "2 without figures; semcast sweep" in (said := capsys.readouterr().err)
    assert "--retry --timeout 30m" in said
    assert "not done after 1e-06 s (--timeout allows more)" in out.read_text(encoding="utf8")
    assert main(asked) == 0
    assert "without figures" not in capsys.readouterr().err
    assert "2 of 2 cells" in out.read_text(encoding="utf8")


def test_a_recording_that_cannot_be_read_leaves_the_page(
    spark: SparkSession, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = tmp_path / "specs"
    (specs / "profile").mkdir(parents=True)
    (specs / "small.toml").write_text(SPEC)
    (specs / "profile" / "g1.toml").write_text(G1)
    (data / "set" / "s.csv.gz").write_bytes(gzip.compress(b"no,such,columns\n1,2,3\n"))
    out = tmp_path / "report.html"
    assert main(["report", "--specs", str(specs), "--data", str(data), "--out", str(out)]) == 0
    assert "could not be profiled" in capsys.readouterr().err
    assert "could not be profiled" in out.read_text(encoding="utf8")
