"""Recordings that are cut off, and journals of live processes: Spark says what `semcast check` says."""

import argparse
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import small, write

from semcast.cli.verify import add_parser, run
from semcast.core import MemberId
from semcast.history import RunInfo, converted, read_history
from semcast.history.journal import DeliveredRow, JournalWriter, SentRow

A, B = MemberId("a"), MemberId("b")


def test_journals_are_converted(tmp_path: Path) -> None:
    journals(tmp_path / "live")
    plain = write([small(0)], tmp_path / "plain")
    (tmp_path / "temporary").mkdir()
    found = converted([plain, tmp_path / "live"], tmp_path / "temporary")
    assert found == [plain, tmp_path / "temporary" / "0.parquet"]
    one, other = read_history(found[1]), read_history(tmp_path / "live")
    assert (one.info, one.events) == (other.info, other.events)


def test_the_command_takes_journals(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journals(tmp_path)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert run(parser.parse_args(["verify", str(tmp_path), "--json"])) == 0
    printed = json.loads(capsys.readouterr().out)
    statuses = {verdict["property"]: verdict["status"] for verdict in printed["runs"][0]["verdicts"]}
    assert (statuses["fifo_delivery"], statuses["integrity"]) == ("holds", "unknown")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".journal", ".journal"]


def journals(folder: Path) -> None:
    """A sends 1 to 3 and is cut off; b has 4 from it."""
    info = RunInfo.one("live", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=False)
    JournalWriter(folder, A, info).append(0, [SentRow(1, 3, 3, None, safe=False)])
    writer = JournalWriter(folder, B, info)
    writer.append(0, [DeliveredRow(A, 1, 4, 4)])
    writer.close(1)
