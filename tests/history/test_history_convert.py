"""Journals on their way into Parquet files: block by block, and what comes out is what reading them gives."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, MessageId, View
from semcast.history import (
    GroupInfo,
    History,
    HistoryError,
    RunInfo,
    converted,
    read_histories,
    read_history,
    record_crash,
    write_history,
)
from semcast.history.journal import (
    AppliedRow,
    DeliveredRow,
    JournalWriter,
    NotedRow,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
    note_of,
)

A, B, C = MEMBERS = MemberId("a", 1), MemberId("b", 2), MemberId("c")
NOTES: tuple[Annotation, ...] = (
    Item("i"),
    Enumeration((MessageId(B, 3), MessageId(A, 1))),
    Enumeration(()),
    KEnumeration(9, 5),
)
LIVE = RunInfo("run", (GroupInfo("g", "ring"),))


def write(folder: Path, process: MemberId, chunks: int = 30, info: RunInfo = LIVE) -> JournalWriter:
    """A journal with rows of all kinds."""
    random = Random(process.name)
    writer = JournalWriter(folder, process, info)
    seq = 1
    for at in range(chunks):
        rows: list[Row] = [
            ViewRow(View(at + 1, MEMBERS, representative=random.choice([None, B])), transitional=at % 3 == 1),
            SentRow(seq, 5, 50, random.choice([None, 3]), random.random() < 0.5, 77),
            DeliveredRow(random.choice(MEMBERS), 1 + at, 2, 20, random.choice([None, at]), at),
            PurgedRow(B, [1, 2, 3], random.choice([None, A]), [4, 5, 6]),
            NotedRow(seq + 5, 3, False, [1, 2, 3, 4], list(map(note_of, NOTES)), [6, 7, 8, 9]),
            AppliedRow(A, "digest", random.choice([None, 3])),
        ]
        random.shuffle(rows)
        rows.sort(key=lambda row: getattr(row, "seq", 0) if isinstance(row, SentRow | NotedRow) else 0)
        writer.append(at, rows)
        seq += 9
    return writer


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_what_is_converted_is_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    live = tmp_path / "live"
    write(live, A).close(99)
    write(live, B)
    write(live, C)
    record_crash(live, "c")
    plain = read_history(live)
    monkeypatch.setattr("semcast.history.replay.BLOCK_ROWS", block)
    (path,) = converted([live], tmp_path / "new")
    history = read_history(path)
    assert history.info == plain.info
    assert history.info.cut_off == (B,)
    assert history.events == plain.events
    assert pq.ParquetFile(path).num_row_groups == {1: 92, 7: 92, 1 << 16: 3}[block]


def test_runs_go_to_files_of_their_own(tmp_path: Path) -> None:
    live, plain = tmp_path / "live", tmp_path / "plain.parquet"
    write(live, A).close(99)
    write(live, B, info=RunInfo("other", LIVE.groups)).close(99)
    (live / "c-0.journal").write_bytes(b"semc")
    write_history(read_histories(live)[0], plain)
    found = converted([plain, live], tmp_path / "new")
    assert found[0] == plain
    assert [read_history(path).info for path in found[1:]] == [each.info for each in read_histories(live)]
    assert all(C in read_history(path).info.cut_off for path in found[1:])


def test_journals_of_a_run_may_be_named_one_by_one_and_lie_in_several_folders(tmp_path: Path) -> None:
    """Processes on two hosts write to two folders. One is not cut off because the other is elsewhere."""
    live, one, two = tmp_path / "live", tmp_path / "one", tmp_path / "two"
    for folder in (live, one):
        write(folder, A).close(99)
        write(folder, C).close(99)
    for folder in (live, two):
        write(folder, B).close(99)
    whole = read_history(live)
    assert whole.info.cut_off == ()
    for number, paths in enumerate([[live], sorted(live.iterdir()), [one, two], [live, *live.iterdir()]]):
        (path,) = converted(paths, tmp_path / str(number))
        assert read_history(path).info == whole.info
        assert same_rows(read_history(path), whole)


def test_folders_are_searched_to_the_bottom(tmp_path: Path) -> None:
    """Whoever names a folder is not told that all holds while half of it was not read."""
    write(tmp_path / "runs", A).close(99)
    write(tmp_path / "runs" / "below" / "deep", B, info=RunInfo("other", LIVE.groups)).close(99)
    write(tmp_path / "runs" / ".hidden", B, info=RunInfo("hidden", LIVE.groups)).close(99)
    write(tmp_path / "runs", MemberId("_c"), info=RunInfo("third", LIVE.groups)).close(99)
    found = converted([tmp_path / "runs"], tmp_path / "new")
    assert {read_history(path).info.run for path in found} == {"run", "other", "third"}
    assert {history.info.run for history in read_histories(tmp_path / "runs")} == {"run", "other", "third"}


def test_a_journal_without_a_header_is_of_the_runs_beside_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs / "one", A).close(99)
    (runs / "one" / "c-0.journal").write_bytes(b"semc")
    write(runs / "two", B, info=RunInfo("other", LIVE.groups)).close(99)
    (runs / "two" / "d-0.journal").write_bytes(b"semc")
    found = [read_history(path) for path in converted([runs / "one", runs / "two"], tmp_path / "new")]
    cut_off = {history.info.run: history.info.cut_off for history in found}
    assert cut_off == {"run": (B, C), "other": (A, C, MemberId("d"))}
    assert {each.info.run: each.info.cut_off for each in read_histories(runs)} == cut_off


def same_rows(one: History, other: History) -> bool:
    return one.processes == other.processes and all(
        list(one.of(process)) == list(other.of(process)) for process in one.processes
    )


def test_parquet_files_beside_journals_go_with_them(tmp_path: Path) -> None:
    live = tmp_path / "live"
    write(live, A).close(99)
    write_history(read_history(live), tmp_path / "whole.parquet")
    (live / "a-1@g.journal").unlink()
    table = pq.read_table(tmp_path / "whole.parquet")
    metadata = table.schema.metadata | {
        b"semcast.run": table.schema.metadata[b"semcast.run"].replace(
            b'"cut_off":[["b",2],["c",0]]', b'"cut_off":[]'
        )
    }
    pq.write_table(table.replace_schema_metadata(metadata), live / "a.parquet")
    write(live, B).close(99)
    plain = read_history(live)
    assert plain.info.cut_off == (C,)
    history = read_history(converted([live], tmp_path / "new")[0])
    assert (history.info, history.events) == (plain.info, plain.events)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (DeliveredRow(B, 0, 1, 1), "row 1: deliver of message 0 of b#2: they count from 1"),
        (DeliveredRow(B, 1, 0, 1), "row 1: deliver of 0 messages: at least one is needed"),
        (SentRow(0, 1, 1, 1, False), "row 1: multicast of message 0 of a#1: they count from 1"),
        (SentRow(5, 1, 1, 1, False), r"row 1: multicast of \(a#1,5\) after 5"),
        (NotedRow(3, 1, False, [1], [Item("i")]), r"row 1: multicast of \(a#1,3\) after 5"),
        (NotedRow(6, 1, False, [], []), "row 1: multicast of 0 messages: at least one is needed"),
        (PurgedRow(B, [3, 0], None, [0, 0]), "row 1: purge of message 0 of b#2: they count from 1"),
        (DeliveredRow(B, 1 << 63, 1, 1), "row 0 or one that follows: .*"),
    ],
)
def test_rows_that_cannot_be_are_refused(tmp_path: Path, row: Row, fault: str) -> None:
    writer = JournalWriter(tmp_path, A, LIVE)
    writer.append(0, [SentRow(1, 5, 1, 1, False), row])
    for read in (lambda: read_history(tmp_path), lambda: converted([tmp_path], tmp_path / "new")):
        with pytest.raises(HistoryError, match=rf"a-1@g\.journal: {fault}"):
            read()


def test_strangers_are_refused(tmp_path: Path) -> None:
    fixed = RunInfo("run", (GroupInfo("g", "s-rm", (A, B)),))
    write(tmp_path, C, info=fixed).close(9)
    for read in (lambda: read_history(tmp_path), lambda: converted([tmp_path], tmp_path / "new")):
        with pytest.raises(HistoryError, match="row 0: unknown process c: the members are a#1, b#2"):
            read()


def test_without_rows_there_is_no_history(tmp_path: Path) -> None:
    JournalWriter(tmp_path, A, LIVE)
    with pytest.raises(HistoryError, match="run run has no events"):
        converted([tmp_path], tmp_path / "new")
