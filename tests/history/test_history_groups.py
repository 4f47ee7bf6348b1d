"""Runs with several groups: files unite them, and each is judged by what its own stack promises."""

from pathlib import Path

import msgspec
import pytest

from semcast.core import MemberId, View
from semcast.core.messages import batch_of
from semcast.history import (
    Event,
    GroupInfo,
    History,
    HistoryError,
    Kind,
    Recorder,
    RunInfo,
    read_history,
    record_crash,
    write_history,
)
from semcast.history.journal import DeliveredRow, JournalWriter, SentRow, ViewRow
from semcast.specs import check

A, B, C = MemberId("a"), MemberId("b"), MemberId("c")
FAST = GroupInfo("fast", "s-rm", (A, B), 40)
SAFE = GroupInfo("safe", "ring")
RUN = RunInfo("run", (FAST, SAFE), 7, quiesced=True)


def of_group(group: GroupInfo, *, lost: bool = False) -> History:
    """One message of a, delivered by a and, unless it is lost, by b."""
    recorder = Recorder(RUN.alone(group))
    if not group.members:
        for process in (A, B):
            recorder.view(0, process, View(1, (A, B)))
    batch = batch_of(A, 1, [group.name.encode()])
    recorder.multicast(1, A, batch)
    for process in (A,) if lost else (A, B):
        recorder.deliver(2, process, batch)
    return recorder.close(quiesced=True)


def both(*, lost: bool = False) -> History:
    return History(RUN, [*of_group(FAST, lost=lost).events, *of_group(SAFE).events])


def test_a_history_comes_apart_by_groups() -> None:
    fast, safe = both().by_group()
    assert (fast.info.only, safe.info.only) == (FAST, SAFE)
    assert fast.events == of_group(FAST).events
    assert safe.events == of_group(SAFE).events
    assert list(RUN.apart()) == ["run[fast]", "run[safe]"]
    assert of_group(FAST).by_group()[0].info.apart() == {"run": RUN.alone(FAST)}
    with pytest.raises(ValueError, match="run run has 2 groups where one was expected"):
        RUN.only  # noqa: B018


def test_verdicts_name_the_group() -> None:
    verdicts = check(both(lost=True), ["integrity", "semantic_agreement"])
    assert [str(verdict).partition("\n")[0] for verdict in verdicts] == [
        "group fast: integrity: holds",
        "group fast: semantic_agreement: violated: b has neither (a,1) nor a replacement",
        "group safe: integrity: holds",
        "group safe: semantic_agreement: holds",
    ]
    assert {verdict.group for verdict in check(both())} == {"fast", "safe"}
    assert any(verdict.property.startswith("evs_") for verdict in check(both()))


def test_several_groups_survive_the_way_through_a_file(tmp_path: Path) -> None:
    write_history(both(), tmp_path / "run.parquet")
    history = read_history(tmp_path)
    assert (history.info, history.events) == (RUN, both().events)


def test_files_of_a_run_unite_their_groups(tmp_path: Path) -> None:
    write_history(of_group(SAFE), tmp_path / "1.parquet")
    write_history(of_group(FAST), tmp_path / "2.parquet")
    history = read_history(tmp_path)
    assert history.info == RUN
    assert {event.group for event in history.of(A)} == {"fast", "safe"}


@pytest.mark.parametrize(
    "other", [GroupInfo("fast", "ring"), msgspec.structs.replace(FAST, buffer_limit=None)]
)
def test_contradictions_about_a_group_are_refused(tmp_path: Path, other: GroupInfo) -> None:
    write_history(of_group(FAST), tmp_path / "1.parquet")
    write_history(of_group(other), tmp_path / "2.parquet")
    with pytest.raises(HistoryError, match=r"2\.parquet: describes run run differently than .*1\.parquet"):
        read_history(tmp_path)


def test_rows_of_a_group_that_is_not_described_are_refused(tmp_path: Path) -> None:
    stray = History(RUN, [Event(A, 0, 0, Kind.RECOVER, "slow")])
    write_history(stray, tmp_path / "run.parquet")
    with pytest.raises(HistoryError, match="row 0: unknown group slow: the run has fast, safe"):
        read_history(tmp_path)


def test_journals_unite_their_groups(tmp_path: Path) -> None:
    """Two processes of one run in different groups, and a third of whom only a view tells."""
    live = {name: RunInfo("run", (GroupInfo(name, "ring"),)) for name in ("g", "h")}
    for process, group in ((A, "g"), (B, "h")):
        writer = JournalWriter(tmp_path, process, live[group])
        members = (process, C) if process is B else (process,)
        writer.append(0, [ViewRow(View(1, members), transitional=False), SentRow(1, 2, 6, 1, False)])
        writer.append(1, [DeliveredRow(process, 1, 2, 6)])
        writer.close(2)
    history = read_history(tmp_path)
    assert [group.name for group in history.info.groups] == ["g", "h"]
    assert history.info.cut_off == (C,)
    assert [len(each.events) for each in history.by_group()] == [4, 4]
    with pytest.raises(FileExistsError):
        JournalWriter(tmp_path, A, live["g"])


def test_a_process_has_a_journal_for_each_of_its_groups(tmp_path: Path) -> None:
    """It may have begun both in one millisecond, so that it is known by one incarnation in both."""
    names = ("g", "g/h", "a name of a group that no name of a file has room for")
    for name in names:
        writer = JournalWriter(tmp_path, A, RunInfo("run", (GroupInfo(name, "ring"),)))
        writer.append(0, [ViewRow(View(1, (A,)), transitional=False), SentRow(1, 2, 6, 1, False)])
    history = read_history(tmp_path)
    assert {group.name for group in history.info.groups} == {*names}
    assert history.info.cut_off == (A,)
    assert [len(each.events) for each in history.by_group()] == [2, 2, 2]


def test_a_crash_ends_the_journals_of_all_groups(tmp_path: Path) -> None:
    """The incarnations differ where the process began in one group after the other."""
    later, earlier = MemberId("a", 9), MemberId("a", 3)
    for process, name in ((earlier, "g"), (MemberId("a", 7), "g"), (later, "h"), (MemberId("a2", 9), "h")):
        JournalWriter(tmp_path, process, RunInfo("run", (GroupInfo(name, "ring"),))).append(
            0, [ViewRow(View(1, (process,)), transitional=False)]
        )
    record_crash(tmp_path, "a")
    assert read_history(tmp_path).info.cut_off == (earlier, MemberId("a2", 9))
    record_crash(tmp_path, earlier)
    assert read_history(tmp_path).info.cut_off == (MemberId("a2", 9),)
    with pytest.raises(HistoryError, match="no journal of b in this folder"):
        record_crash(tmp_path, B)


def test_journals_of_earlier_versions_name_no_group(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, A, RunInfo("run", (GroupInfo("g", "ring"),)))
    writer.append(0, [ViewRow(View(1, (A,)), transitional=False)])
    writer.path.rename(tmp_path / "a-0.journal")
    record_crash(tmp_path, "a")
    assert [event.kind for event in read_history(tmp_path).events] == [Kind.VIEW, Kind.CRASH]


def test_a_journal_is_of_one_group(tmp_path: Path) -> None:
    JournalWriter(tmp_path, A, RUN).close(0)
    with pytest.raises(HistoryError, match="a journal of 2 groups"):
        read_history(tmp_path)
