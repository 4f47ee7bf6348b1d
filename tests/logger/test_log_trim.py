"""`semcast log trim`: what stays is written anew, so that the disk has more room, also one that was full."""

import errno
import json
from pathlib import Path

import pytest
from tests.logger.test_log_damage import messages, records

from semcast.cli.main import main
from semcast.core.ids import MemberId
from semcast.logger import log_folders, open_home
from semcast.logger.spare import SPARE_BYTES, give_up_spare
from semcast.protocols.gossip.records import StoredRun, encode
from semcast.storage import SegmentLog, segments
from semcast.storage.folder import MemberFolder

GROUP, BULK = "prices", MemberId("bulk", 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a logger with all kinds of records, and a stream of 100 KiB."""
    open_home(tmp_path, "log").close()
    held = MemberFolder(tmp_path, GROUP, "log")
    held.incarnation(5)
    log = SegmentLog(held.path)
    bulk = [encode(StoredRun(BULK, 10 * part + 1, [bytes(1024)] * 10)) for part in range(10)]
    log.append([*records(), *bulk])
    log.sync()
    log.close()
    held.close()
    return tmp_path


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*/*/*.log"))


def known(folder: Path) -> tuple[object, ...]:
    """What else than messages must not change."""
    [log] = log_folders(folder)
    books, status = log.books(), log.status()
    streams = [(each.sender, each.logged, each.over) for each in status.streams]
    return books.log, books.positions.next, dict(books.keys.all()), status.sessions[0].through, streams


def full(monkeypatch: pytest.MonkeyPatch, folder: Path, room: int) -> None:
    """The disk has so much room, and that of the spare if it is given up."""
    left, written = room, segments._write

    def write(file: int, data: bytes) -> None:
        nonlocal left
        bonus = 0 if (folder / "spare").exists() else SPARE_BYTES
        if len(data) > left + bonus:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= len(data)
        written(file, data)

    monkeypatch.setattr(segments, "_write", write)


def test_it_makes_room_and_leaves_the_newest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, books = size(folder), known(folder)
    assert before > 100 * 1024
    assert main(["log", "trim", str(folder), "--keep", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dropped"] == 99 + 3
    assert size(folder) < before // 10
    assert len(list(folder.glob("*/*/*.log"))) == 1
    assert messages(folder) == sorted([b"3", b"5", b"7", bytes(1024)])
    assert known(folder) == books


def test_what_is_small_enough_is_left_alone(folder: Path) -> None:
    before = [path.read_bytes() for path in folder.glob("*/*/*.log")]
    assert main(["log", "trim", str(folder), "--keep", "100"]) == 0
    assert [path.read_bytes() for path in folder.glob("*/*/*.log")] == before


def test_a_full_disk_has_room_afterwards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full(monkeypatch, folder, 0)
    assert main(["log", "trim", str(folder), "--keep", "1"]) == 0
    assert len(messages(folder)) == 4
    assert (folder / "spare").stat().st_size == SPARE_BYTES, "for the next time"


def test_where_what_stays_has_no_room_nothing_is_trimmed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, books = messages(folder), known(folder)
    full(monkeypatch, folder, 50 * 1024 - SPARE_BYTES)
    assert main(["log", "trim", str(folder), "--keep", "90"]) == 3
    told = capsys.readouterr().err
    assert "No space left on device: nothing was trimmed" in told
    assert (messages(folder), known(folder)) == (before, books)
    assert main(["log", "trim", str(folder), "--keep", "10"]) == 0
    assert len(messages(folder)) == 10 + 6


def test_a_logger_sets_room_aside_when_it_starts(tmp_path: Path) -> None:
    open_home(tmp_path, "log").close()
    give_up_spare(tmp_path)
    open_home(tmp_path).close()
    assert (tmp_path / "spare").stat().st_blocks * 512 >= SPARE_BYTES
