"""What the demo makes of its recordings where there is no Spark."""

from pathlib import Path

import pytest
from rich.console import Console

from semcast.cli import judging
from semcast.core import MemberId
from semcast.core.messages import batch_of
from semcast.history import Recorder, RunInfo, write_history

A, B = MemberId("a"), MemberId("b")


def record(folder: Path, *, lost: bool) -> Path:
    recorder = Recorder(RunInfo.one(folder.name, "g", "s-rm", 7, (A, B), 40, uniform=False, quiesced=False))
    batch = batch_of(A, 1, [b"x", b"y"])
    recorder.multicast(0, A, batch)
    recorder.deliver(1, A, batch)
    recorder.deliver(2, B, batch_of(A, 1, [b"x"]) if lost else batch)
    folder.mkdir()
    write_history(recorder.close(quiesced=True), folder / "run.parquet")
    return folder


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "find_spec", lambda _name: None)


@pytest.mark.usefixtures("no_spark")
def test_without_spark_the_checkers_judge_in_memory_and_say_so(tmp_path: Path) -> None:
    folders = [record(tmp_path / "one", lost=False), record(tmp_path / "two", lost=False)]
    judged = judging.judge(Console(quiet=True), folders)
    assert "no pyspark" in judged.where
    assert (judged.events, list(judged.broken)) == (6, [])
    assert judged.hold > 0


@pytest.mark.usefixtures("no_spark")
def test_what_is_broken_is_named(tmp_path: Path) -> None:
    folders = [record(tmp_path / "one", lost=False), record(tmp_path / "two", lost=True)]
    broken = judging.judge(Console(quiet=True), folders).broken
    assert any("semantic_agreement" in words for words in broken)
