"""Segments: after a crash at any byte the log is a prefix, with everything that was synced."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from semcast.storage import SegmentLog, StorageError
from semcast.storage.segments import MAGIC


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.log"))


def written(folder: Path, *records: bytes) -> None:
    log = SegmentLog(folder)
    log.append(list(records))
    log.sync()
    log.close()


def reread(folder: Path) -> list[bytes]:
    log = SegmentLog(folder)
    log.close()
    return log.records


def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    written(tmp_path, b"a", b"", b"c" * 5000)
    written(tmp_path, b"d")
    assert reread(tmp_path) == [b"a", b"", b"c" * 5000, b"d"]


def test_a_cut_at_any_byte_leaves_a_prefix_to_which_more_can_be_appended(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    records = [b"one", b"", b"three" * 3, b"four"]
    written(whole, *records)
    size = (whole / files(whole)[0]).stat().st_size
    before = 0
    for cut in range(size + 1):
        folder = tmp_path / f"cut{cut}"
        shutil.copytree(whole, folder)
        os.truncate(folder / files(folder)[0], cut)
        found = reread(folder)
        assert found == records[: len(found)]
        assert len(found) >= before, "a longer file never has fewer records"
        before = len(found)
        written(folder, b"more")
        assert reread(folder) == [*found, b"more"]
    assert before == len(records)


def test_garbage_after_the_last_record_is_cut_off_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, b"kept")
    [name] = files(tmp_path)
    for garbage in (bytes(100), b"\xff" * 7, b"\x03\0\0\0garbage"):
        with (tmp_path / name).open("ab") as file:
            file.write(garbage)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "semcast.storage"):
            assert reread(tmp_path) == [b"kept"]
        [line] = caplog.messages
        assert name in line
        assert f"cut off {len(garbage)} bytes" in line
        assert "1 records are left" in line
        assert reread(tmp_path) == [b"kept"]


def test_anew_is_a_new_segment_and_older_ones_are_deleted_when_it_is_synced(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append([b"old"])
    number = log.begin_anew()
    log.append([b"new"])
    assert len(files(tmp_path)) == 2
    assert reread(tmp_path) == [b"old", b"new"], "until it is forgotten, the old is there"
    log.sync()
    log.forget(number)
    log.close()
    assert len(files(tmp_path)) == 1
    assert reread(tmp_path) == [b"new"]


def test_a_segment_that_was_not_deleted_in_time_does_not_come_back_behind_a_gap(tmp_path: Path) -> None:
    """Deletions may reach the disk in any order: who is behind a gap was to be deleted, too."""
    log = SegmentLog(tmp_path)
    for record in (b"first", b"second", b"third"):
        log.append([record])
        log.begin_anew()
    log.append([b"fourth"])
    log.sync()
    log.close()
    (tmp_path / files(tmp_path)[1]).unlink()
    assert reread(tmp_path) == [b"third", b"fourth"]
    assert len(files(tmp_path)) == 2


def test_damage_in_a_segment_that_was_synced_is_an_error(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append([b"first"])
    log.begin_anew()
    log.append([b"second"])
    log.sync()
    log.close()
    first = tmp_path / files(tmp_path)[0]
    os.truncate(first, first.stat().st_size - 1)
    with pytest.raises(StorageError, match=rf"{first.name} is damaged at byte {len(MAGIC)}"):
        SegmentLog(tmp_path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0000000001.log").write_bytes(b"something else entirely")
    with pytest.raises(StorageError, match="is not a log of this version"):
        SegmentLog(tmp_path)


def test_a_segment_is_synced_before_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crash could leave a hole: the end of the older one missing, the newer one there."""
    done: list[str] = []
    log = SegmentLog(tmp_path)
    log.append([b"first"])
    sync, begin = os.fdatasync, log._open

    def synced(file: int) -> None:
        done.append("synced")
        sync(file)

    def begun() -> int:
        done.append("begun")
        return begin()

    monkeypatch.setattr(os, "fdatasync", synced)
    monkeypatch.setattr(log, "_open", begun)
    log.begin_anew()
    log.close()
    assert done == ["synced", "begun"]
