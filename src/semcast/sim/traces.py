"""Replay of recorded traffic: one row a message, columns stream, seq, ts, key, bytes, kind.

Only `update` rows with a key overwrite, and are overwritten; everything else is never obsolete.
"""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.sim.replica import Record, RecordKind
from semcast.sim.workloads import Content, Representation

COLUMNS = ("seq", "ts", "key", "bytes", "kind")


class TraceError(Exception):
    """A trace that cannot be read; says where and why."""


class TraceRow(msgspec.Struct, frozen=True, gc=False):
    """One recorded message."""

    ts: float
    key: str
    size: int
    update: bool


def read_trace(path: Path, most: int | None = None) -> list[TraceRow]:
    """The rows of a CSV trace (gzip if its name ends in .gz), in order of arrival."""
    rows: list[TraceRow] = []
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf8", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path.name}: no column {', '.join(missing)}")
            for row in reader:
                if most is not None and len(rows) >= most:
                    break
                rows.append(_row(path, reader.line_num, row))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise TraceError(f"{path.name}: {error}") from error
    if not rows:
        raise TraceError(f"{path.name}: no messages")
    return rows


def _row(path: Path, line: int, row: dict[str, str]) -> TraceRow:
    try:
        return TraceRow(
            float(row["ts"]), row["key"], int(row["bytes"]), row["kind"] == "update" and row["key"] != ""
        )
    except (TypeError, ValueError) as error:
        raise TraceError(f"{path.name}: line {line}: {error}") from error


def replay_arrivals(rows: list[TraceRow], speed: float = 1.0) -> Iterator[Nanos]:
    """The recorded intervals, `speed` times as fast."""
    before = rows[0].ts
    for row in rows:
        yield max(0, int((row.ts - before) / speed * SECOND))
        before = max(before, row.ts)


def replay_contents(rows: list[TraceRow], representation: Representation) -> Iterator[Content]:
    """The recorded messages, with the size they had."""
    for value, row in enumerate(rows, 1):
        padding = bytes(max(0, min(row.size, 60_000) - len(row.key) - 12))
        if row.update:
            yield Record(RecordKind.UPDATE, row.key, value, padding), representation.update(row.key)
        else:
            representation.reliable()
            yield Record(RecordKind.PLAIN, "", value, padding), None
