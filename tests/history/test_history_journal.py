"""Journals give back what was written, and of a damaged one what lies before the damage."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from semcast.core import Enumeration, Item, KEnumeration, MemberId, MessageId, View
from semcast.core.events import Note
from semcast.history import Event, HistoryError, Kind, RunInfo, read_histories, read_history, record_crash
from semcast.history.journal import (
    DeliveredRow,
    FamilyRow,
    JournalWriter,
    MergedRow,
    NotedRow,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
    journal_name,
    note_of,
)
from semcast.history.replay import read_journal
from semcast.history.schema import kind_named
from semcast.specs.replication import kinds as _kinds  # noqa: F401 (adds the kinds of its rows)

A, B = MemberId("a", 7), MemberId("b")
LIVE = RunInfo.one("run", "g", "ring", None, (), None, uniform=False, quiesced=False)
FIXED = RunInfo.one("run", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=False)
NOTES = (
    Item("x"),
    Enumeration((MessageId(B, 3), MessageId(A, 1))),
    KEnumeration(9, 1 << 200 | 5, total=True),
)
VIEW = View(4, (A, B), primary=False, representative=B)

CHUNKS: list[Sequence[Row]] = [
    [ViewRow(VIEW, transitional=False)],
    [SentRow(1, 5, 320, 4, False), NotedRow(6, 4, True, [1, 2, 3], [note_of(note) for note in NOTES])],
    [DeliveredRow(A, 1, 8, 326), DeliveredRow(B, 2, 1, 64)],
    [PurgedRow(B, [1, 3], B, [2, 4]), PurgedRow(B, [5], None, [0])],
    [ViewRow(View(4, (A,), representative=B), transitional=True), SentRow(9, 1, 0, None, False)],
    [MergedRow(3)],
]


def write(folder: Path, process: MemberId = A, info: RunInfo = LIVE, *, end: bool = True) -> Path:
    writer = JournalWriter(folder, process, info)
    for at, rows in enumerate(CHUNKS):
        writer.append(at, rows)
    if end:
        writer.close(99)
    return writer.path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    journal = read_journal(write(tmp_path))
    assert (journal.process, journal.info, journal.unknown) == (A, LIVE, None)

    def sent(index: int, seq: int, size: int, note: int) -> Event:
        return Event(A, index, 1, Kind.MULTICAST, "g", A, seq, 1, size, NOTES[note], view=4, level="safe")

    assert journal.events == [
        Event(A, 0, 0, Kind.VIEW, "g", B, view=4, level="non-primary", members=(A, B)),
        Event(A, 1, 1, Kind.MULTICAST, "g", A, 1, 5, 320, view=4),
        sent(2, 6, 1, 0),
        sent(3, 7, 2, 1),
        sent(4, 8, 3, 2),
        Event(A, 5, 2, Kind.DELIVER, "g", A, 1, 8, 326),
        Event(A, 6, 2, Kind.DELIVER, "g", B, 2, 1, 64),
        Event(A, 7, 3, Kind.PURGE, "g", B, 1, 1, by=MessageId(B, 2)),
        Event(A, 8, 3, Kind.PURGE, "g", B, 3, 1, by=MessageId(B, 4)),
        Event(A, 9, 3, Kind.PURGE, "g", B, 5, 1),
        Event(A, 10, 4, Kind.TRANSITIONAL, "g", B, view=4, level="primary", members=(A,)),
        Event(A, 11, 4, Kind.MULTICAST, "g", A, 9, 1),
        Event(A, 12, 5, Kind.MERGED, "g", count=3),
        Event(A, 13, 99, Kind.LEFT, "g"),
    ]


def test_cut_anywhere_it_yields_what_comes_before(tmp_path: Path) -> None:
    path = write(tmp_path)
    data, whole = path.read_bytes(), read_journal(path)
    lengths = set()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        journal = read_journal(path)
        assert journal.process == A
        assert journal.unknown is not None
        assert journal.events == whole.events[: len(journal.events)]
        lengths.add(len(journal.events))
    assert lengths == {0, 1, 5, 7, 10, 12, 13}


def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path)
    data, whole = path.read_bytes(), read_journal(path)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        journal = read_journal(path)
        assert journal.unknown is not None
        assert journal.events == whole.events[: len(journal.events)]
        assert len(journal.events) < len(whole.events)


def test_rows_are_there_without_an_end(tmp_path: Path) -> None:
    journal = read_journal(write(tmp_path, end=False))
    assert journal.unknown == "its journal has no end"
    assert journal.events[-1].kind is Kind.MERGED


def test_nothing_follows_the_end(tmp_path: Path) -> None:
    path = write(tmp_path)
    more = write(tmp_path, B).read_bytes()
    begin = more.index(b"semcast\n") + len(b"semcast\n")
    path.write_bytes(path.read_bytes() + more[begin:])
    assert read_journal(path).unknown == "its journal is damaged"


def test_a_supervisor_says_that_it_crashed(tmp_path: Path) -> None:
    path = write(tmp_path, end=False)
    write(tmp_path, MemberId("a", 6), end=False)
    record_crash(tmp_path, "a")
    journal = read_journal(path)
    assert (journal.events[-1].kind, journal.unknown) == (Kind.CRASH, None)
    assert read_history(tmp_path).info.cut_off == (MemberId("a", 6), B)
    record_crash(tmp_path, MemberId("a", 6))
    assert read_history(tmp_path).info.cut_off == (B,)  # in the view, and without a journal
    with pytest.raises(HistoryError, match=r"no journal of c in this folder"):
        record_crash(tmp_path, "c")


def test_a_torn_journal_stays_unknown_when_its_process_crashed(tmp_path: Path) -> None:
    path = write(tmp_path, end=False)
    record_crash(tmp_path, A)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_journal(path).unknown == "its journal is cut off"


def test_nothing_is_appended_to_a_torn_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full for a moment leaves a journal that is cut off, not one with a hole."""
    writer = JournalWriter(tmp_path, A, LIVE)
    writer.append(0, CHUNKS[0])
    really_write = os.write

    def full(fd: int, data: memoryview) -> int:
        if len(data) > 9:
            return really_write(fd, data[:9])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            writer.append(1, CHUNKS[3])
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.append(2, CHUNKS[1])
    writer.close(3)
    journal = read_journal(writer.path)
    assert (len(journal.events), journal.unknown) == (1, "its journal is cut off")


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: really_write(fd, data[:7]))
    assert read_journal(write(tmp_path)).unknown is None


def test_two_processes_never_share_a_journal(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(FileExistsError):
        JournalWriter(tmp_path, A, LIVE)


@pytest.mark.parametrize("name", ["", "a-1", "../a", "a.b", "ç\n", "%2F"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    process = MemberId(name, 12)
    path = write(tmp_path, process)
    assert path.parent == tmp_path
    path.write_bytes(b"")
    assert read_journal(path).process == process


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    stray = tmp_path / "notes.journal"
    stray.touch()
    with pytest.raises(HistoryError, match=r"the name of a journal is MEMBER-INCARNATION@GROUP\.journal"):
        read_histories(tmp_path)
    stray.unlink()
    write(tmp_path).rename(tmp_path / journal_name(B, "g"))
    with pytest.raises(HistoryError, match="a journal of a#7 under the name of b"):
        read_histories(tmp_path)


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("semcast.history.journal.SCHEMA_VERSION", 3)
        path = write(tmp_path)
    with pytest.raises(HistoryError, match="schema version 3; this program reads 1 and 2"):
        read_journal(path)


def test_a_folder_of_journals_is_one_run(tmp_path: Path) -> None:
    write(tmp_path, A)
    write(tmp_path, B, end=False)
    write(tmp_path, MemberId("c")).write_bytes(b"semc")
    history = read_history(tmp_path)
    assert history.info == msgspec.structs.replace(LIVE, cut_off=(B, MemberId("c")))
    assert (history.processes, history.correct) == ((A, B, MemberId("c")), ())
    assert len(history.of(A)) == len(history.of(B)) + 1


def test_in_a_fixed_group_who_ends_well_is_correct(tmp_path: Path) -> None:
    write(tmp_path, A, FIXED)
    history = read_history(tmp_path)
    assert (history.gone, history.correct) == ((), (A,))
    assert history.info.cut_off == (B,)


def test_without_a_header_there_is_no_run(tmp_path: Path) -> None:
    write(tmp_path).write_bytes(b"")
    with pytest.raises(HistoryError, match="no journal here has a readable header"):
        read_histories(tmp_path)


def test_rows_of_a_familys_own_kind_are_read(tmp_path: Path) -> None:
    note = Note("colour", B, 3, 2, None, "green", 17)
    writer = JournalWriter(tmp_path, A, LIVE)
    writer.append(5, [FamilyRow(note), FamilyRow(Note("alarm", members=(A, B), digest="b has others"))])
    writer.close(99)
    green, alarm, _ = read_journal(writer.path).events
    assert (green.kind, green.sender, green.seq, green.count) == (kind_named("colour"), B, 3, 2)
    assert (green.view, green.level, green.order) == (None, "green", 17)
    assert (alarm.kind, alarm.members, alarm.annotation) == (
        kind_named("alarm"),
        (A, B),
        Item("b has others"),
    )


def test_a_row_of_a_kind_that_nobody_added_is_refused(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, A, LIVE)
    writer.append(5, [FamilyRow(Note("conjured"))])
    writer.close(99)
    with pytest.raises(HistoryError, match="row 0: unknown kind 'conjured'"):
        read_journal(writer.path)
