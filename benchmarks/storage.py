"""The live log: appends with group commit, against writing the same bytes to a file; and opening it again.

CPU time is that of the whole process: of whoever appends, and of the thread that writes and syncs.
"""

import os
import tempfile
import threading
from collections import deque
from pathlib import Path
from time import perf_counter, process_time
from unittest.mock import patch

from benchmarks.rows import Row, against
from semcast.core.outbox import Run, Sync, Write
from semcast.storage import LiveDisk, open_disk

RECORDS = int(os.environ.get("SEMCAST_BENCH_RECORDS", "400_000"))
SIZE = 100
UNDER_WAY = 50
"""Groups that wait for their sync at any time, as those of many clients do."""


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-", dir=Path.cwd()) as folder:
        rows = [row for group in (1, 20, 100) for row in _appends(Path(folder) / str(group), group)]
        return [*rows, *_reading(Path(folder) / "100")]


def _appends(data: Path, group: int) -> list[Row]:
    count = RECORDS // 10 if group == 1 else RECORDS
    wall, cpu, syncs = _append(data, group, count)
    floor_wall, floor_cpu = _floor(data / "plain", count, syncs)
    name = f"{SIZE} B records, {group} a group, {count / syncs:,.0f} a sync"
    enough, cheap = ("", "") if group == 1 else (">= 100,000 a second", "<= 2 us")
    return [
        against(f"{name}, appends / plain writes", count / wall, "a second", count / floor_wall, enough),
        against(f"{name}, CPU of an append / plain", cpu / count * 1e6, "us", floor_cpu / count * 1e6, cheap),
    ]


def _append(data: Path, group: int, count: int) -> tuple[float, float, int]:
    """Wall and CPU time of appending groups of records, each with a sync of its own; and how many syncs."""
    disk = open_disk(data, "g", "a", 1)
    woken = threading.Event()
    disk.wake = woken.set
    records = [bytes(SIZE)] * group
    asked: deque[int] = deque()
    syncs = 0
    real = os.fdatasync

    def counted(file: int) -> None:
        nonlocal syncs
        syncs += 1
        real(file)

    with patch.object(os, "fdatasync", counted):
        began, busy = perf_counter(), process_time()
        for ticket in range(count // group):
            writes: list[Write] = [Run(records), Sync(ticket)]
            disk.store(writes)
            asked.append(ticket)
            while len(asked) >= UNDER_WAY:
                _take(disk, woken, asked)
        while asked:
            _take(disk, woken, asked)
        wall, cpu = perf_counter() - began, process_time() - busy
    disk.close()
    return wall, cpu, syncs


def _take(disk: LiveDisk, woken: threading.Event, asked: deque[int]) -> None:
    woken.wait()
    woken.clear()
    for ticket in disk.take():
        assert asked.popleft() == ticket


def _floor(path: Path, count: int, syncs: int) -> tuple[float, float]:
    """The same bytes, in as many writes and syncs, by one thread that does nothing else."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began, busy = perf_counter(), process_time()
    for _ in range(syncs):
        os.write(file, b"".join([bytes(SIZE)] * (count // syncs)))
        os.fdatasync(file)
    wall, cpu = perf_counter() - began, process_time() - busy
    os.close(file)
    return wall, cpu


def _reading(data: Path) -> list[Row]:
    """A process starts: the log is checked, and its records are read."""
    began = process_time()
    disk = open_disk(data, "g", "a", 1)
    opened = process_time() - began
    found = sum(map(len, disk.records))
    read = process_time() - began
    disk.close()
    files = list((data / "g" / "a").glob("*.log"))
    began = process_time()
    plain = sum(len(path.read_bytes()) for path in files)
    floor = process_time() - began
    assert plain > found
    count = found // SIZE
    return [
        against(
            "opening a log, CPU of a record / reading files",
            opened / count * 1e6,
            "us",
            floor / count * 1e6,
            "",
        ),
        against("and reading all records", read / count * 1e6, "us", floor / count * 1e6, ""),
    ]
