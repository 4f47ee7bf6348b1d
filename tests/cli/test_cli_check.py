"""`semcast check` from the command line's side."""

import argparse
import json
from pathlib import Path

import pytest

from semcast.cli import check
from semcast.cli.errors import UsageError
from semcast.core import MemberId
from semcast.core.messages import batch_of
from semcast.history import History, Recorder, RunInfo, write_history
from semcast.history.journal import JournalWriter, SentRow

A, B = MemberId("a"), MemberId("b")


def history(run: str, *, lost: bool = False, stack: str = "s-rm") -> History:
    recorder = Recorder(RunInfo.one(run, "g", stack, 7, (A, B), 40, uniform=False, quiesced=False))
    batch = batch_of(A, 1, [b"x", b"y"])
    recorder.multicast(0, A, batch)
    recorder.deliver(1, A, batch)
    recorder.deliver(2, B, batch_of(A, 1, [b"x"]) if lost else batch)
    return recorder.close(quiesced=True)


def semcast(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    check.add_parser(parser.add_subparsers())
    args = parser.parse_args(["check", *map(str, arguments)])
    code = args.run(args)
    assert isinstance(code, int)
    return code


def test_nothing_violated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(history("good"), tmp_path / "good.parquet")
    assert semcast(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "semantic_agreement" in printed
    assert "violated" not in printed


def test_a_violation_is_shown_with_its_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(history("good"), tmp_path / "1.parquet")
    write_history(history("bad [1]", lost=True), tmp_path / "2.parquet")
    assert semcast(tmp_path) == 1
    printed = capsys.readouterr().out
    assert "bad [1]: semantic_agreement: violated: b has neither (a,2) nor a replacement" in printed
    assert "a[1] at 1 ns: deliver (a,2)" in printed


def test_one_file_is_enough(tmp_path: Path) -> None:
    write_history(history("bad", lost=True), tmp_path / "bad.parquet")
    assert semcast(tmp_path / "bad.parquet") == 1


def test_chosen_properties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(history("bad", lost=True), tmp_path / "bad.parquet")
    assert semcast(tmp_path, "--property", "integrity", "--property", "fifo_delivery", "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [verdict["property"] for verdict in run["verdicts"]] == ["integrity", "fifo_delivery"]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(history("bad", lost=True), tmp_path / "bad.parquet")
    assert semcast(tmp_path, "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["violated"] == 1
    (run,) = printed["runs"]
    assert (run["run"], run["stack"], run["events"]) == ("bad", "s-rm", 3)
    (verdict,) = [verdict for verdict in run["verdicts"] if verdict["status"] == "violated"]
    assert verdict == {
        "property": "semantic_agreement",
        "status": "violated",
        "count": 1,
        "detail": "b has neither (a,2) nor a replacement",
        "note": "",
        "offending": [
            {
                "process": "a",
                "incarnation": 0,
                "index": 1,
                "at_ns": 1,
                "kind": "deliver",
                "sender": "a",
                "sender_incarnation": 0,
                "seq": 2,
                "count": 1,
            }
        ],
    }


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone: no such file or folder"):
        semcast(tmp_path / "gone")


def test_no_such_property(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such property: colour; choose from "):
        semcast(tmp_path, "--property", "colour")


def test_a_broken_history(tmp_path: Path) -> None:
    (tmp_path / "run.parquet").write_text("PAR1")
    with pytest.raises(UsageError, match=r"run\.parquet: not a Parquet file, or damaged or cut off"):
        semcast(tmp_path)


def test_a_stack_nobody_knows(tmp_path: Path) -> None:
    write_history(history("run", stack="carrier pigeons"), tmp_path / "run.parquet")
    with pytest.raises(
        UsageError, match="run run: nothing is known of what stack 'carrier pigeons' promises"
    ):
        semcast(tmp_path)
    assert semcast(tmp_path, "--property", "integrity") == 0


@pytest.mark.parametrize("bytes_lost", [7, 60])
def test_recordings_that_are_cut_off_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bytes_lost: int
) -> None:
    """In the middle of a row: what was recorded before counts, what is lacking is unknown."""
    info = RunInfo.one("live", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=False)
    for member in (A, B):
        writer = JournalWriter(tmp_path, member, info)
        writer.append(0, [SentRow(1, 3, 3, None, safe=False)])
        writer.append(1, [SentRow(4, 3, 3, None, safe=False)])
        writer.close(2)
    [journal] = tmp_path.glob("a*.journal")
    journal.write_bytes(journal.read_bytes()[:-bytes_lost])
    assert semcast(tmp_path) == 0
    assert "live: cut off: the recordings of a. What they lack is unknown." in capsys.readouterr().out
    assert semcast(tmp_path, "--strict", "--json") == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["cut_off"] == ["a"]
