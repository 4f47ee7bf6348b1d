"""Journals on their way to `verify`: in bounded memory, and without a trace when it ends, however it ends."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from semcast.cli.errors import UsageError
from semcast.cli.verify import add_parser, run
from semcast.core import MemberId
from semcast.history import RunInfo
from semcast.history.journal import DeliveredRow, JournalWriter, SentRow
from semcast.pipeline.staging import staged

A, B = MemberId("a"), MemberId("b")

CONVERT = """
import resource, sys
from pathlib import Path
from semcast.history import converted
from semcast.pipeline.staging import staged
with staged(sys.argv[2]) as folder:
    (file,) = converted([Path(sys.argv[1])], folder)
    print(file, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    if sys.argv[3:]:
        sys.stdin.read()
"""


def journals(folder: Path, chunks: int) -> None:
    """A sends and b delivers, ten messages at a time."""
    info = RunInfo.one("live", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=True)
    sender, receiver = (JournalWriter(folder, process, info) for process in (A, B))
    for number in range(chunks):
        first = 1000 * number + 1
        spans = [(first + 10 * place, 10, 100) for place in range(100)]
        sender.append(number, [SentRow(*span, None, safe=False) for span in spans])
        receiver.append(number, [DeliveredRow(A, *span) for span in spans])
    sender.close(chunks)
    receiver.close(chunks)


def convert(folder: Path, stage: Path) -> int:
    """The most memory that it took, in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", CONVERT, str(folder), str(stage)], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1])


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    (tmp_path / "stage").mkdir()
    return tmp_path / "stage"


def test_memory_does_not_grow_with_journals(tmp_path: Path, stage: Path) -> None:
    """Ten times the rows take no more."""
    journals(tmp_path / "some", 200)
    journals(tmp_path / "many", 2000)
    some, many = convert(tmp_path / "some", stage), convert(tmp_path / "many", stage)
    assert many < 1.25 * some
    assert list(stage.iterdir()) == []


def test_nothing_is_left_after_an_error(tmp_path: Path, stage: Path) -> None:
    """The journals are written as Parquet before it turns out that another file is none."""
    journals(tmp_path / "live", 1)
    (tmp_path / "other.parquet").write_bytes(b"no Parquet")
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    paths = [str(tmp_path / "live"), str(tmp_path / "other.parquet")]
    with pytest.raises(UsageError, match="not a Parquet file"):
        run(parser.parse_args(["verify", *paths, "--stage", str(stage)]))
    assert list(stage.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_nothing_is_left_after_a_kill(tmp_path: Path, stage: Path, how: signal.Signals) -> None:
    journals(tmp_path / "live", 1)
    child = subprocess.Popen(
        [sys.executable, "-c", CONVERT, str(tmp_path / "live"), str(stage), "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    file = Path(child.stdout.readline().split()[0])
    assert file.exists()
    child.send_signal(how)
    child.communicate()
    deadline = monotonic() + 60
    while list(stage.iterdir()):
        assert monotonic() < deadline, "the folder is still there"
        os.sched_yield()


def test_a_folder_is_gone_when_it_is_not_needed_any_more(stage: Path) -> None:
    with staged(stage) as folder:
        (folder / "file").touch()
    assert list(stage.iterdir()) == []
