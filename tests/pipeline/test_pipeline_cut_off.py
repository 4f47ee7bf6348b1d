"""Recordings that are cut off, and journals of live processes: Spark says what `semcast check` says."""

import argparse
import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.test_pipeline_verify import (
    differences,
    in_memory,
    on_spark,
    renumbered,
    said,
    small,
    write,
)

from semcast.cli.verify import add_parser, run
from semcast.core import MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo, converted, read_history
from semcast.history.journal import DeliveredRow, JournalWriter, SentRow
from semcast.sim.scenario import draw
from semcast.sim.simulate import simulate

pytestmark = pytest.mark.xdist_group("spark")

A, B = MemberId("a"), MemberId("b")


def cut_short(history: History, seed: int) -> History:
    """One or two processes lose what comes after a random row."""
    random = Random(seed)
    lost = random.sample(history.processes, random.randint(1, 2))
    events = [
        event
        for process in history.processes
        for event in history.of(process)[
            : random.randint(0, len(history.of(process))) if process in lost else None
        ]
    ]
    name = f"{history.info.run}-cut"
    return renumbered(msgspec.structs.replace(history.info, run=name, cut_off=tuple(lost)), events)


def purged_for_what_is_lost() -> History:
    info = RunInfo("purge", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=True, cut_off=(A,))
    events = [
        Event(A, 0, 0, Kind.MULTICAST, "g", A, 1, 1),
        Event(B, 0, 0, Kind.PURGE, "g", A, 1, 1, by=MessageId(A, 2)),
    ]
    return History(info, events)


def test_it_agrees_on_recordings_that_are_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    sound = [simulate(draw(seed, stack)).history for seed in range(2) for stack in ("s-rm", "s-srm")]
    histories = [cut_short(history, number) for number, history in enumerate(sound)]
    histories += [cut_short(small(seed), seed) for seed in range(24)]
    histories.append(purged_for_what_is_lost())
    expected = in_memory(histories)
    statuses = {status for (_, name), (status, _) in expected.items() if name == "integrity"}
    assert statuses == {"holds", "violated", "unknown"}
    assert differences(said(on_spark(spark, write(histories, tmp_path))), expected) == []


def test_journals_are_converted(tmp_path: Path) -> None:
    journals(tmp_path / "live")
    plain = write([small(0)], tmp_path / "plain")
    (tmp_path / "temporary").mkdir()
    found = converted([plain, tmp_path / "live"], tmp_path / "temporary")
    assert found == [plain, tmp_path / "temporary" / "1-0.parquet"]
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
    info = RunInfo("live", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=False)
    JournalWriter(folder, A, info).append(0, [SentRow(1, 3, 3, None, safe=False)])
    writer = JournalWriter(folder, B, info)
    writer.append(0, [DeliveredRow(A, 1, 4, 4)])
    writer.close(1)
