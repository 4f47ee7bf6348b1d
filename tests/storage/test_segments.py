"""Segments: after a crash at any byte the log is a prefix, with everything that was synced."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from semcast.storage import SegmentLog, StorageError, TrimmedError, segments
from semcast.storage.segments import HEADER_BYTES, MAGIC
from semcast.wire import records


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
    return list(log.records)


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
    log.begin_segment()
    log.append([b"new"])
    assert len(files(tmp_path)) == 2
    assert reread(tmp_path) == [b"old", b"new"], "until it is forgotten, the old is there"
    log.sync()
    log.drop(log.next)
    log.close()
    assert len(files(tmp_path)) == 1
    assert reread(tmp_path) == [b"new"]


def test_a_segment_that_was_not_deleted_in_time_does_not_come_back_behind_a_gap(tmp_path: Path) -> None:
    """Deletions may reach the disk in any order: who is behind a gap was to be deleted, too."""
    log = SegmentLog(tmp_path)
    for record in (b"first", b"second", b"third"):
        log.append([record])
        log.begin_segment()
    log.append([b"fourth"])
    log.sync()
    log.close()
    (tmp_path / files(tmp_path)[1]).unlink()
    assert reread(tmp_path) == [b"third", b"fourth"]
    assert len(files(tmp_path)) == 2


def test_damage_in_a_segment_that_was_synced_is_an_error(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append([b"first"])
    log.begin_segment()
    log.append([b"second"])
    log.sync()
    log.close()
    first = tmp_path / files(tmp_path)[0]
    os.truncate(first, first.stat().st_size - 1)
    with pytest.raises(StorageError, match=rf"{first.name} is damaged at byte {HEADER_BYTES}"):
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
    sync, begin = os.fdatasync, log._begin_segment

    def synced(file: int) -> None:
        done.append("synced")
        sync(file)

    def begun(number: int) -> int:
        done.append("begun")
        return begin(number)

    monkeypatch.setattr(os, "fdatasync", synced)
    monkeypatch.setattr(log, "_begin_segment", begun)
    log.begin_segment()
    log.close()
    assert done == ["synced", "begun"]


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_a_segment_that_is_full_is_followed_by_another(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=500)
    for number in range(100):
        log.append(numbered(1, number))
    log.sync()
    log.close()
    assert len(files(tmp_path)) > 5
    assert max(path.stat().st_size for path in tmp_path.glob("*.log")) < 600
    assert reread(tmp_path) == numbered(100)


def test_positions_go_on_across_segments_and_restarts(tmp_path: Path) -> None:
    for start in range(0, 100, 10):
        log = SegmentLog(tmp_path, segment_bytes=300)
        assert (log.first, log.next) == (0, start)
        log.append(numbered(10, start))
        log.sync()
        log.close()
    log = SegmentLog(tmp_path)
    for position in range(100):
        assert log.read(position, 0) == numbered(1, position), "at least one"
    assert list(log.records[17:20]) == numbered(3, 17)
    assert log.records[-1] == b"99"
    assert len(log.records) == 100
    log.close()


@pytest.mark.parametrize("block", [1, 7, 100])
def test_a_range_is_read_without_what_is_before_and_behind_it(tmp_path: Path, block: int) -> None:
    log = SegmentLog(tmp_path, segment_bytes=1 << 20)
    written = [b"%06d" % number + bytes(90) for number in range(5000)]
    for begin in range(0, 5000, block):
        log.append(written[begin : begin + block])
    log.sync()
    log.append([b"not synced"])
    for first in (0, 1, 999, 2500, 4990, 4999):
        found = log.read(first, 960)
        assert found == written[first : first + 10]
    assert log.read(5000, 960) == [], "only what outlives a crash"
    assert log.read(5001, 960) == []
    log.sync()
    assert log.read(5000, 960) == [b"not synced"]
    log.close()


def test_who_reads_on_reads_each_block_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is checked as a whole, however little of it is asked for at a time."""
    log = SegmentLog(tmp_path)
    for first in (0, 100):
        log.append(numbered(100, first))
    log.sync()
    checked: list[int] = []

    def block_at(data: bytes, offset: int, salt: int) -> records.Block | None:
        checked.append(offset)
        return records.block_at(data, offset, salt)

    monkeypatch.setattr(segments, "block_at", block_at)
    found: list[bytes] = []
    while len(found) < 200:
        found += log.read(len(found), 30)
    assert found == numbered(200)
    assert len(checked) == 2
    log.append(numbered(1, 200))
    log.sync()
    assert log.read(199, 1000) == numbered(2, 199), "also where more was written behind it"
    log.close()


def test_whole_segments_are_given_up(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=300)
    for number in range(100):
        log.append(numbered(1, number))
    log.sync()
    before = len(files(tmp_path))
    log.drop(0)
    assert len(files(tmp_path)) == before
    log.drop(50)
    assert 40 <= log.first <= 50, "not more than was asked for"
    assert log.read(50, 3) == [b"50"]
    with pytest.raises(TrimmedError, match=rf"record 0 is gone: the log begins with {log.first}"):
        log.read(0, 10)
    first = log.first
    log.drop(10**9)
    assert log.first > first
    assert log.next == 100
    log.append([b"100"])
    log.sync()
    log.close()
    again = SegmentLog(tmp_path)
    assert (again.first, again.next) == (log.first, 101)
    assert list(again.records) == numbered(101 - log.first, log.first)
    again.close()


def test_damage_in_the_middle_of_the_last_segment_is_an_error_where_it_was_synced(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    ends = []
    for number in range(5):
        log.append(numbered(1, number))
        log.sync()
        ends.append((tmp_path / files(tmp_path)[0]).stat().st_size)
    log.close()
    path = tmp_path / files(tmp_path)[0]
    whole = path.read_bytes()
    for place in range(HEADER_BYTES, ends[3]):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        begins = max(end for end in (HEADER_BYTES, *ends) if end <= place)
        with pytest.raises(StorageError, match=rf"0000000001.log is damaged at byte {begins}: these records"):
            SegmentLog(tmp_path)
        assert path.read_bytes() == damaged, "nothing is cut off"


def test_what_was_synced_last_is_vouched_for_when_there_is_time(tmp_path: Path) -> None:
    """Until then its damage cannot be told from a torn end."""
    written(tmp_path, b"one")
    log = SegmentLog(tmp_path)
    assert not log.unvouched()
    log.append([b"two"])
    log.sync()
    assert log.unvouched()
    log.vouch()
    assert not log.unvouched()
    log.close()
    path = tmp_path / files(tmp_path)[0]
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"two")] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StorageError, match="these records were synced"):
        SegmentLog(tmp_path)


@pytest.mark.parametrize("place", [0, 3, len(MAGIC), HEADER_BYTES - 1])
def test_a_damaged_header_is_an_error_where_records_follow(tmp_path: Path, place: int) -> None:
    written(tmp_path, b"one")
    path = tmp_path / files(tmp_path)[0]
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StorageError, match=r"0000000001.log is (damaged at byte|not a log)"):
        SegmentLog(tmp_path)


def test_a_segment_whose_header_a_crash_interrupted_was_never_used(tmp_path: Path) -> None:
    written(tmp_path, b"one")
    header = (tmp_path / files(tmp_path)[0]).read_bytes()[:HEADER_BYTES]
    for left in (b"", bytes(HEADER_BYTES), header[:5], header[:20], header[:20] + bytes(10)):
        (tmp_path / "0000000002.log").write_bytes(left)
        assert reread(tmp_path) == [b"one"]
        assert files(tmp_path) == ["0000000001.log"]


def test_a_missing_segment_is_told_by_positions(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=1)
    for number in range(3):
        log.append(numbered(1, number))
    log.sync()
    log.close()
    (tmp_path / "0000000002.log").write_bytes((tmp_path / "0000000001.log").read_bytes())
    with pytest.raises(
        StorageError, match=r"0000000002.log begins with record 0, but 0000000001.log ends before 1"
    ):
        SegmentLog(tmp_path)
