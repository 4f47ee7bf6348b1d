"""`semcast log` on a folder: what is there, what is damaged, and nothing that a look changes."""

import json
from pathlib import Path

import pytest

from semcast.cli.main import main
from semcast.core.ids import MemberId
from semcast.logger import LogFolder, log_folders, offline, open_home
from semcast.protocols.gossip.records import (
    Acknowledged,
    Admitted,
    Opened,
    Placed,
    Record,
    Replaced,
    Stored,
    StoredRun,
    encode,
)
from semcast.storage import SegmentLog, StorageError
from semcast.storage.folder import MemberFolder

A, DESK = MemberId("a", 7), MemberId("desk-7", 9)
GROUP = "prices/eu"
RECORDS: list[Record] = [
    Opened(5),
    *(Stored(A, seq, b"%d" % seq) for seq in range(1, 6)),
    Replaced(A, 2, 5),
    Admitted(DESK, [(A, 0)]),
    Acknowledged(DESK, [(A, 3)]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a logger that does not run."""
    open_home(tmp_path, "log-1").close()
    held = MemberFolder(tmp_path, GROUP, "log-1")
    held.incarnation(5)
    log = SegmentLog(held.path)
    log.append([encode(record) for record in RECORDS])
    log.sync()
    log.close()
    held.close()
    return tmp_path


def segment(folder: Path) -> Path:
    [path] = folder.glob("*/*/*.log")
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_is_in_a_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = segment(folder).read_bytes()
    assert main(["log", "ls", str(folder), "--json"]) == 0
    [listed] = printed(capsys)
    assert listed["group"] == GROUP
    assert listed["messages"] == 4
    assert main(["log", "sessions", str(folder), "--json"]) == 0
    [session] = printed(capsys)
    assert session["lag"] == 2
    assert session["through"] == {str(A): 3}
    assert main(["log", "replay", str(folder), "--json", "--from", "3"]) == 0
    assert [row["text"] for row in printed(capsys)] == ["3", "4", "5"]
    assert segment(folder).read_bytes() == before


def test_what_is_on_disk_stays_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log may be much larger than the memory: little of it is held, and it is read in its own order."""
    monkeypatch.setattr(offline, "_CACHE", 10_000)
    b = MemberId("b", 8)
    held = MemberFolder(folder, GROUP, "log-1")
    log = SegmentLog(held.path, 20_000)
    for number in range(40):
        first = 2 * number + 1
        records: list[Record] = [
            StoredRun(b, first, [b"%d" % first * 500, b"x" * 1000]),
            Placed(2 * number, b, first, 2, number),
            Stored(A, number + 6, b"%d" % (number + 6) * 500),
        ]
        log.append([encode(record) for record in records])
        log.sync()
    log.close()
    held.close()
    [found] = log_folders(folder)
    books = found.books()
    assert books.cache.size <= 10_000
    ids = [message.id for message in found.messages()]
    assert [each.seq for each in ids] == [*range(1, 81), 1, 3, 4, 5, *range(6, 46)]
    assert [each.sender for each in ids[:80]] == [b] * 80
    assert all(message.payload.startswith(b"%d" % message.id.seq) for message in found.messages("a", 6))
    assert books.cache.size <= 10_000
    assert [message.id.seq for message in found.messages("b", 79)] == [79, 80]


@pytest.mark.parametrize("action", ["ls", "sessions", "check", "replay"])
def test_people_can_read_it(folder: Path, action: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", action, str(folder)]) == 0
    assert capsys.readouterr().out


def test_a_torn_end_is_told_and_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = segment(folder).read_bytes()[:-3]
    segment(folder).write_bytes(torn + b"\0\0\0\0")
    assert main(["log", "check", str(folder), "--json"]) == 0
    [checked] = printed(capsys)
    assert checked["sound"] is True
    assert isinstance(checked["torn"], int)
    assert checked["torn"] > 0
    assert segment(folder).read_bytes() == torn + b"\0\0\0\0"


def test_damage_to_what_was_synced_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = MemberFolder(folder, GROUP, "log-1")
    log = SegmentLog(held.path)
    log.append([encode(Stored(A, 6, b"6"))])
    log.sync()
    log.close()
    held.close()
    data = bytearray(segment(folder).read_bytes())
    data[60] ^= 0xFF
    segment(folder).write_bytes(data)
    assert main(["log", "check", str(folder), "--json"]) == 1
    [checked] = printed(capsys)
    assert checked["sound"] is False
    assert "is damaged at byte" in str(checked["error"])


def test_records_of_somebody_else_are_refused(folder: Path) -> None:
    held = MemberFolder(folder, "other", "log-1")
    held.incarnation(1)
    log = SegmentLog(held.path)
    log.append([b"not a record"])
    log.sync()
    log.close()
    held.close()
    found: list[LogFolder] = [log for log in log_folders(folder) if log.group == "other"]
    with pytest.raises(StorageError, match="record 0 was not written by a logger"):
        found[0].books()


def test_trimming_leaves_the_newest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "trim", str(folder), "--keep", "1", "--json"]) == 0
    assert printed(capsys) == [{"group": GROUP, "dropped": 3}]
    assert main(["log", "replay", str(folder), "--json"]) == 0
    assert [row["text"] for row in printed(capsys)] == ["5"]


def test_nothing_is_trimmed_while_its_logger_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = MemberFolder(folder, GROUP, "log-1")
    try:
        assert main(["log", "trim", str(folder), "--keep", "1"]) == 3
        assert "is in use by process" in capsys.readouterr().err
    finally:
        held.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ls", "/nonexistent"], "there is no such folder"),
        (["ls", "{folder}", "--group", "none"], "has no log of it"),
        (["trim", "{folder}", "--keep", "-1"], "at least 0"),
    ],
)
def test_what_makes_no_sense_is_told(
    folder: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", *(word.format(folder=folder) for word in words)]) == 2
    assert told in capsys.readouterr().err


def test_an_empty_folder_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "ls", str(tmp_path)]) == 2
    assert "there is no log in it" in capsys.readouterr().err


def test_a_logger_is_forgotten_in_the_folder_of_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main(["log", "forget", str(folder), "log-2", "--json"]) == 0
        assert printed(capsys) == [{"group": GROUP, "forgotten": "log-2"}]
    [log] = log_folders(folder)
    assert list(log.books().forgotten) == ["log-2"]
    assert log.records == len(RECORDS) + 1
    assert main(["log", "forget", str(folder), "log-1"]) == 3
    assert "another logger must forget it" in capsys.readouterr().err
    held = MemberFolder(folder, GROUP, "log-1")
    try:
        assert main(["log", "forget", str(folder), "log-3"]) == 3
    finally:
        held.close()
