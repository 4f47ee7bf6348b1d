"""Which specs `semcast sweep` runs: files, bundled ones by name, and a refusal before Spark starts."""

from pathlib import Path

import pytest

from semcast.cli.main import main
from semcast.pipeline.sweep.bundled import bundled, spec_paths
from semcast.pipeline.sweep.spec import SpecError


def test_a_bundled_spec_has_a_name() -> None:
    assert spec_paths("f2") == [bundled()["f2"]]
    assert spec_paths("all") == list(bundled().values())
    assert len(bundled()) > 20


def test_a_file_wins_over_a_bundled_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f2").write_text('experiment = "f2"\n')
    assert spec_paths("f2") == [Path("f2")]


def test_what_is_neither_is_refused_with_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        SpecError, match=r"experiments/f2.toml: no such file, .* bundled specs: c1, e1, e2, f1, f2"
    ):
        spec_paths("experiments/f2.toml")


def test_a_replay_without_a_folder_of_recordings_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SEMCAST_TRACES", raising=False)
    assert main(["sweep", "g2"]) == 2
    assert "g2 replays a recording: set SEMCAST_TRACES to the folder of recordings" in capsys.readouterr().err
