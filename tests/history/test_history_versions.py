"""What version 1 wrote is still read, alone and beside files of today."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.history import version1

from semcast.core import Item, KEnumeration, MemberId, MessageId
from semcast.history import Event, GroupInfo, Kind, RunInfo, converted, read_history, write_history
from semcast.history.columns import SCHEMA
from semcast.history.journal import note_of
from semcast.specs import check

A, B = MemberId("a"), MemberId("b")
NOTE = {"kind": "item", "item": "i"}
ROWS: list[dict[str, object]] = [
    {
        "kind": "multicast",
        "sender": "a",
        "seq": 1,
        "count": 1,
        "bytes": 3,
        "annotation": {"kind": "item", "item": "i"},
    },
    {"kind": "multicast", "sender": "a", "seq": 2, "count": 4, "bytes": 9, "index": 1},
    {"kind": "deliver", "sender": "a", "seq": 1, "count": 5, "bytes": 12, "index": 2},
    {"kind": "deliver", "process": "b", "sender": "a", "seq": 1, "count": 5, "bytes": 12},
    {"kind": "crash", "process": "b", "index": 1, "at_ns": 4},
]


def test_a_file_of_version_1(tmp_path: Path) -> None:
    version1.write_parquet(tmp_path / "old.parquet", ROWS)
    history = read_history(tmp_path)
    assert history.info == RunInfo("old", (GroupInfo("g", "s-rm", (A, B), 40),), 7, quiesced=True)
    assert history.events == (
        Event(A, 0, 0, Kind.MULTICAST, "g", A, 1, 1, 3, Item("i")),
        Event(A, 1, 0, Kind.MULTICAST, "g", A, 2, 4, 9),
        Event(A, 2, 0, Kind.DELIVER, "g", A, 1, 5, 12),
        Event(B, 0, 0, Kind.DELIVER, "g", A, 1, 5, 12),
        Event(B, 1, 4, Kind.CRASH, "g"),
    )
    assert [str(verdict) for verdict in check(history, ["integrity"])] == [
        "integrity: holds (contents not compared: 10)"
    ]
    write_history(history, tmp_path / "old.parquet")
    assert read_history(tmp_path).events == history.events
    assert pq.read_schema(tmp_path / "old.parquet").names == SCHEMA.names


def test_a_run_in_files_of_both_versions(tmp_path: Path) -> None:
    version1.write_parquet(tmp_path / "1.parquet", ROWS[:3])
    whole = read_history(tmp_path)
    version1.write_parquet(tmp_path / "2.parquet", ROWS[3:])
    write_history(whole, tmp_path / "1.parquet")
    assert len(read_history(tmp_path).events) == 5


@pytest.mark.parametrize("convert", [False, True])
def test_a_journal_of_version_1(tmp_path: Path, convert: bool) -> None:
    me, positions = MemberId("a", 7), KEnumeration(9, 5, total=True)
    rows = [
        [1, 1, 5, 320, 4, False],  # sent
        [2, 6, 4, True, [1, 2], [note_of(Item("x")), note_of(positions)]],
        [3, ["b", 0], 1, 2, 64],  # delivered
        [3, ["b", 0], 3, 1, 64, 17],
        [4, ["b", 0], [5, 6], ["b", 0], [7, 8]],  # purged
        [6, ["b", 0], "digest", None],  # applied
    ]
    live = tmp_path / "live"
    live.mkdir()
    version1.write_journal(live / "a-7.journal", ("a", 7), [(5, rows)], stack="ring", members=[])
    history = read_history(converted([live], tmp_path / "new")[0] if convert else live)
    assert history.info.only == GroupInfo("g", "ring", (), 40)
    assert history.events == (
        Event(me, 0, 5, Kind.MULTICAST, "g", me, 1, 5, 320, view=4),
        Event(me, 1, 5, Kind.MULTICAST, "g", me, 6, 1, 1, Item("x"), view=4, level="safe"),
        Event(
            me, 2, 5, Kind.MULTICAST, "g", me, 7, 1, 2, KEnumeration(9, 5, total=True), view=4, level="safe"
        ),
        Event(me, 3, 5, Kind.DELIVER, "g", B, 1, 2, 64),
        Event(me, 4, 5, Kind.DELIVER, "g", B, 3, 1, 64, order=17),
        Event(me, 5, 5, Kind.PURGE, "g", B, 5, 1, by=MessageId(B, 7)),
        Event(me, 6, 5, Kind.PURGE, "g", B, 6, 1, by=MessageId(B, 8)),
        Event(me, 7, 5, Kind.APPLY, "g", B, digest="digest"),
        Event(me, 8, 99, Kind.LEFT, "g"),
    )
