"""Live disks: group commit in a thread, one process to a folder, and errors that end the member."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from semcast.core.outbox import Anew, Run, Sync, Trim
from semcast.storage import LiveDisk, StorageError, TrimmedError, open_disk, segments
from semcast.wire import records

ROOT = Path(__file__).parents[2]


def disk_in(folder: Path, now: int = 0) -> LiveDisk:
    return open_disk(folder, "g", "a", now)


def tickets(disk: LiveDisk, count: int) -> list[int]:
    """The next so many, as a loop gets them."""
    woken = threading.Event()
    disk.wake = woken.set
    found: list[int] = []
    deadline = time.monotonic() + 10
    while len(found) < count:
        found += disk.take()
        if len(found) < count:
            woken.wait(0.01)
            assert time.monotonic() < deadline, f"only {found}"
    return found


def reread(folder: Path) -> list[bytes]:
    disk = disk_in(folder)
    disk.close()
    return list(disk.records)


def test_what_was_synced_is_there_and_the_rest_too_where_the_process_ended_well(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    assert list(disk.records) == []
    disk.store([b"one", Sync(7), b"two"])
    assert tickets(disk, 1) == [7]
    disk.close()
    assert reread(tmp_path) == [b"one", b"two"]


def test_many_appends_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    synced: list[int] = []
    real = os.fdatasync

    def slow(file: int) -> None:
        begun.set()
        go_on.wait(10)
        synced.append(file)
        real(file)

    disk = disk_in(tmp_path)
    monkeypatch.setattr(os, "fdatasync", slow)
    disk.store([b"first", Sync(0)])
    begun.wait(10)
    for number in range(1, 100):
        disk.store([b"more", Sync(number)])
    assert disk.take() == [], "nothing is synced yet"
    go_on.set()
    assert tickets(disk, 100) == list(range(100))
    assert len(synced) == 2
    disk.close()


def test_old_records_are_forgotten_only_when_a_sync_was_asked_for_after_the_new(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    disk.store([b"old", Sync(1), Anew(), b"half of the new"])
    assert tickets(disk, 1) == [1]
    disk.close()
    assert reread(tmp_path) == [b"old", b"half of the new"]
    disk = disk_in(tmp_path)
    disk.store([Anew(), b"new", Sync(2)])
    assert tickets(disk, 1) == [2]
    disk.close()
    assert reread(tmp_path) == [b"new"]


def test_many_records_are_appended_at_once(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    disk.store([b"one", Run([b"two", b"three"]), Run([]), b"four", Sync(1)])
    assert tickets(disk, 1) == [1]
    assert disk.read(1, 100) == [b"two", b"three", b"four"]
    disk.close()
    assert reread(tmp_path) == [b"one", b"two", b"three", b"four"]


def test_records_are_trimmed_once_a_sync_was_asked_for_after_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 200)
    disk = disk_in(tmp_path)
    for number in range(40):
        disk.store([b"%d" % number, Sync(number)])
        tickets(disk, 1)
    disk.store([Sync(40), Trim(30), b"more"])
    tickets(disk, 1)
    assert disk.read(0, 0) == [b"0"], "nobody said yet that what replaces it is complete"
    disk.store([Sync(41)])
    tickets(disk, 1)
    _until(lambda: _is_gone(disk, 20))
    assert disk.read(30, 0) == [b"30"]
    disk.close()
    disk = disk_in(tmp_path)
    assert 20 < disk.first <= 30
    assert [record for record in disk.records if record.isdigit()][-1] == b"39"
    disk.store([Trim(10**9), Sync(1)])
    tickets(disk, 1)
    assert disk.first <= 41
    disk.close()


def _is_gone(disk: LiveDisk, position: int) -> bool:
    try:
        disk.read(position, 0)
    except TrimmedError:
        return True
    return False


def test_others_read_what_is_synced_while_it_is_written_and_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those do who serve a member that is far behind: never a hole, never what a crash could take."""
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 5000)
    disk = disk_in(tmp_path)
    seen: list[int] = []

    def follow() -> None:
        position = 0
        while position < 3000:
            try:
                found = disk.read(position, 2000)
            except TrimmedError as error:
                position = error.first
                continue
            for record in found:
                assert record == b"%d" % position
                seen.append(position)
                position += 1

    thread = threading.Thread(target=follow)
    thread.start()
    for begin in range(0, 3000, 10):
        disk.store(
            [Run([b"%d" % number for number in range(begin, begin + 10)]), Trim(begin - 500), Sync(begin)]
        )
        tickets(disk, 1)
    thread.join(10)
    assert not thread.is_alive()
    assert seen[-1] == 2999
    disk.close()


def test_several_logs_share_a_folder(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    other, third = disk.log("others"), disk.log("../third")
    disk.store([b"mine", Sync(1)])
    other.store([b"its", b"own", Sync(1)])
    assert tickets(disk, 1) == [1]
    _until(other.ready)
    assert other.take() == [1]
    assert (disk.read(0, 9), other.read(0, 9), third.read(0, 9)) == ([b"mine"], [b"its", b"own"], [])
    with pytest.raises(StorageError, match=r"g/a: the log 'others' is open already"):
        disk.log("others")
    disk.close()
    disk = disk_in(tmp_path)
    assert list(disk.records) == [b"mine"]
    assert list(disk.log("others").records) == [b"its", b"own"]
    disk.close()
    assert not (tmp_path / "g" / "third").exists()


def test_two_processes_never_use_one_folder(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    with pytest.raises(StorageError, match=rf"g/a is in use by process {os.getpid()}: two members cannot"):
        disk_in(tmp_path)
    open_disk(tmp_path, "g", "b", 0).close()
    open_disk(tmp_path, "another", "a", 0).close()
    disk.close()
    disk_in(tmp_path).close()


def test_an_incarnation_is_greater_than_any_that_was_used_whatever_the_clock_says(tmp_path: Path) -> None:
    disk = disk_in(tmp_path, now=5000)
    assert disk.incarnation == 5000
    assert [disk.renew() for _ in range(3)] == [5001, 5002, 5003]
    disk.close()
    disk = disk_in(tmp_path, now=17)
    assert disk.incarnation > 5003
    disk.close()
    disk = disk_in(tmp_path, now=10**9)
    assert disk.incarnation == 10**9
    disk.close()


def test_many_renewals_are_known_after_a_restart(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    for _ in range(2500):
        last = disk.renew()
    disk.close()
    disk = disk_in(tmp_path)
    assert disk.incarnation > last
    disk.close()


def test_names_become_folders_whatever_is_in_them(tmp_path: Path) -> None:
    for group, name in (("..", "."), ("a/b", "../c"), ("ä", "%2E")):
        open_disk(tmp_path, group, name, 0).close()
    assert len(list(tmp_path.iterdir())) == 3
    assert not [path for path in tmp_path.iterdir() if len(list(path.iterdir())) != 1]


def test_the_records_of_somebody_else_are_refused(tmp_path: Path) -> None:
    disk_in(tmp_path).close()
    (tmp_path / "g" / "a").rename(tmp_path / "g" / "b")
    with pytest.raises(StorageError, match="these are the records of a in g"):
        open_disk(tmp_path, "g", "b", 0)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_full_or_broken_disk_is_told_and_nothing_is_acknowledged_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk = disk_in(tmp_path)
    woken = threading.Event()
    disk.wake = woken.set
    monkeypatch.setattr(os, call, full)
    disk.store([b"record", Sync(1)])
    assert woken.wait(10)
    monkeypatch.undo()
    assert disk.ready()
    for _ in range(2):
        with pytest.raises(StorageError, match="g/a: No space left on device: nothing can be kept any more"):
            disk.take()
    disk.store([b"another", Sync(2)])
    with pytest.raises(StorageError):
        disk.take()
    disk.close()
    assert b"another" not in reread(tmp_path)


def test_a_record_that_cannot_be_stored_ends_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_RECORD", 10)
    disk = disk_in(tmp_path)
    disk.store([bytes(11), Sync(1)])
    _until(disk.ready)
    with pytest.raises(StorageError, match="a record of 11 bytes: at most 10"):
        disk.take()
    disk.close()


FILLER = """
import resource, sys
from pathlib import Path
from semcast.core.outbox import Run, Sync
from semcast.storage import StorageError, open_disk
disk = open_disk(Path(sys.argv[1]), "g", "a", 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
number = 0
try:
    while True:
        disk.store([Run([b"%d" % each + bytes(90) for each in range(number, number + 7)]), Sync(number + 6)])
        number += 7
        while not disk.ready():
            pass
        for ticket in disk.take():
            print(ticket, flush=True)
except StorageError as error:
    print(error, flush=True)
disk.close()
"""


def test_a_disk_that_is_really_full_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """The kernel takes a part of the last write, and then no more."""
    told = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ).stdout.splitlines()
    assert told[-1].endswith("g/a: File too large: nothing can be kept any more")
    acknowledged = int(told[-2])
    found = [int(record[:-90]) for record in reread(tmp_path)]
    assert found == list(range(len(found)))
    assert found[-1] >= acknowledged > 500


HOLDER = """
import sys
from pathlib import Path
from semcast.storage import open_disk
disk = open_disk(Path(sys.argv[1]), "g", "a", 0)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(StorageError, match=rf"g/a is in use by process {process.pid}: two members cannot"):
        disk_in(tmp_path)
    process.kill()
    process.communicate()
    disk_in(tmp_path).close()


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may take less than it was given."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:5]))
    disk = disk_in(tmp_path)
    disk.store([b"one record", b"another", Sync(1)])
    assert tickets(disk, 1) == [1]
    disk.close()
    monkeypatch.undo()
    assert reread(tmp_path) == [b"one record", b"another"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file/g/a: Not a directory"):
        disk_in(tmp_path / "file")


def test_tickets_of_a_former_incarnation_are_not_told_to_the_next(tmp_path: Path) -> None:
    disk = disk_in(tmp_path)
    disk.store([b"former", Sync(1)])
    _until(disk.ready)
    disk.renew()
    disk.store([b"next", Sync(2)])
    assert tickets(disk, 1) == [2]
    disk.close()


def _until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.001)


WRITER = """
import sys
from pathlib import Path
from semcast.core.outbox import Anew, Sync
from semcast.storage import open_disk
disk = open_disk(Path(sys.argv[1]), "g", "a", 0)
first = int(disk.records[-1].split()[-1]) + 1 if disk.records else 0
print("first", first, flush=True)
number = first
while True:
    every = [b"%d " % number + b"x" * (number % 700) + b" %d" % number]
    disk.store([Anew(), *every, Sync(number)] if number % 50 == 49 else [*every, Sync(number)])
    number += 1
    for ticket in disk.take():
        print(ticket, flush=True)
    if number - first > 3000:
        import time; time.sleep(0.0005)
"""


def test_kill_9_loses_nothing_that_was_synced(tmp_path: Path) -> None:
    expected = 0
    for round_number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        assert process.stdout is not None
        first = int(process.stdout.readline().split()[1])
        assert first >= expected
        lines = [process.stdout.readline() for _ in range(100 + 77 * round_number)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        acknowledged = [int(line) for line in lines if line.endswith("\n")]
        expected = acknowledged[-1] + 1
    numbers = [int(record.split()[-1]) for record in reread(tmp_path)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no hole"
    assert numbers[-1] >= expected - 1
