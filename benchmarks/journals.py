"""Journals into Parquet files: time for a row, against decoding alone, and the most memory at any moment.

It runs in a process of its own, whose memory is nobody else's.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import msgspec
import pyarrow.parquet as pq

from benchmarks.rows import Row, against
from semcast.core import Item, MemberId, View
from semcast.history import RunInfo, converted
from semcast.history.journal import (
    FRAME,
    MAGIC,
    Chunk,
    DeliveredRow,
    JournalWriter,
    NotedRow,
    PurgedRow,
    SentRow,
    ViewRow,
)

ROWS = int(os.environ.get("SEMCAST_BENCH_JOURNAL_ROWS", "5_000_000"))
MEMBERS = tuple(MemberId(name, 1) for name in "abcd")
ROWS_A_ROUND = 10


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        generate(Path(folder), ROWS)
        command = [sys.executable, "-m", "benchmarks.journals", folder]
        told = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    wall, cpu, floor, most, imported = map(float, told.stdout.split())
    name = f"{ROWS // 1_000_000} M rows of journals into Parquet"
    return [
        against(f"{name}, time / decoding chunks", wall, "us a row", floor, "<= 3"),
        against(f"{name}, CPU time / decoding chunks", cpu, "us a row", floor, "<= 3"),
        against(f"{name}, memory / imports", most, "MiB", imported, "<= 300"),
    ]


def generate(folder: Path, rows: int) -> None:
    """The journal of a process: runs of plain messages, updates, and receipts for what was purged."""
    info = RunInfo.one("bench", "g", "ring", None, (), None, uniform=False, quiesced=False)
    writer = JournalWriter(folder, MEMBERS[0], info)
    writer.append(0, [ViewRow(View(1, MEMBERS), transitional=False)])
    for turn in range(rows // ROWS_A_ROUND):
        seq = turn * 20 + 1
        sent = SentRow(seq, 10, 1000, 1, False, seq)
        writer.append(turn, [sent, *(DeliveredRow(who, seq, 10, 1000, None, seq) for who in MEMBERS)])
        items = [Item(f"item {(seq + n) % 999}") for n in range(3)]
        updates = NotedRow(seq + 10, 1, False, [100] * 3, list(items), [seq] * 3)
        writer.append(turn, [updates, PurgedRow(MEMBERS[1], [seq, seq + 1], MEMBERS[1], [seq + 5, seq + 6])])
    writer.close(rows)


def _measure(folder: Path) -> None:
    """Wall and CPU time of conversion, the time of decoding, the most memory, and that before."""
    before = _most()
    began, busy = perf_counter(), process_time()
    (path,) = converted([folder], folder / "converted")
    wall, cpu = perf_counter() - began, process_time() - busy
    with pq.ParquetFile(path) as parquet:
        rows = parquet.metadata.num_rows
    most = _most()
    began = perf_counter()
    for journal in folder.glob("*.journal"):
        _decode(journal)
    floor = perf_counter() - began
    print(wall / rows * 1e6, cpu / rows * 1e6, floor / rows * 1e6, most, before)


def _decode(path: Path) -> None:
    decode = msgspec.msgpack.Decoder(Chunk).decode
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        header = True
        while frame := file.read(FRAME.size):
            payload = file.read(FRAME.unpack(frame)[0])
            if not header:
                decode(payload)
            header = False


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    _measure(Path(sys.argv[1]))
