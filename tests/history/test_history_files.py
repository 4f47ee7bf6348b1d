"""Histories survive the way through Parquet, and the bytes depend on nothing but the events."""

import tempfile
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, MessageId
from semcast.core.messages import batch_of
from semcast.history import (
    KINDS,
    Event,
    History,
    HistoryError,
    Kind,
    Recorder,
    RunInfo,
    read_histories,
    read_history,
    write_history,
)
from semcast.history.columns import SCHEMA

A, B, C = MEMBERS = MemberId("a"), MemberId("b", 3), MemberId("ç\n")

members = st.sampled_from(MEMBERS)
int64 = st.integers(-(2**63), 2**63 - 1)
seqs = st.integers(1, 2**40)
ids = st.builds(MessageId, members, int64)
annotations: st.SearchStrategy[Annotation] = st.one_of(
    st.builds(Item, st.text()),
    st.builds(Enumeration, st.lists(ids, max_size=3).map(tuple)),
    st.builds(KEnumeration, int64, st.integers(0, 2**200), st.booleans()),
)
optional = st.none() | int64
infos = st.builds(
    RunInfo.one,
    run=st.text(),
    group=st.just("g"),
    stack=st.sampled_from(["s-srm", "s-rm", "reliable"]),
    seed=optional,
    members=st.just(MEMBERS),
    buffer_limit=optional,
    uniform=st.booleans(),
    quiesced=st.booleans(),
    note=st.text(),
)


FREE = [kind for kind in KINDS.values() if kind.problem is None]
"""Kinds of rows that may say anything in their columns."""


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any well-formed history, sensible or not."""
    events = [event for process in MEMBERS for event in draw(local_events(process))]
    if not events:
        events.append(Event(A, 0, 0, Kind.CRASH, "g"))
    return History(draw(infos), events)


@st.composite
def local_events(draw: st.DrawFn, process: MemberId) -> list[Event]:
    events = []
    multicast = 0
    for index, kind in enumerate(draw(st.lists(st.sampled_from(FREE), max_size=5))):
        event = Event(process, index, draw(int64), kind, "g")
        match kind:
            case Kind.MULTICAST | Kind.DELIVER | Kind.PURGE:
                annotation = draw(st.none() | annotations) if kind is not Kind.PURGE else None
                event = msgspec.structs.replace(
                    event,
                    sender=process if kind is Kind.MULTICAST else draw(members),
                    seq=multicast + 1 if kind is Kind.MULTICAST else draw(seqs),
                    count=1 if annotation is not None else draw(st.integers(1, 9)),
                    size=draw(st.integers(0, 2**40)),
                    crc=draw(st.none() | st.integers(0, 2**32 - 1)),
                    annotation=annotation,
                    by=draw(st.none() | ids) if kind is Kind.PURGE else None,
                    level=draw(st.none() | st.text(max_size=3)),
                    order=draw(optional),
                    view=draw(optional),
                )
                multicast = event.last if kind is Kind.MULTICAST else multicast
            case Kind.VIEW | Kind.TRANSITIONAL:
                views = st.lists(members, max_size=3).map(tuple)
                event = msgspec.structs.replace(event, view=draw(int64), members=draw(views))
            case Kind.BUFFER:
                event = msgspec.structs.replace(event, count=draw(st.integers(0, 99)))
            case Kind.APPLY:
                event = msgspec.structs.replace(event, sender=draw(members), digest=draw(st.text()))
        events.append(event)
    return events


def same(one: History, other: History) -> bool:
    return one.info == other.info and one.events == other.events


@settings(deadline=None, max_examples=100)
@given(histories())
def test_what_is_written_is_read(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.parquet")
        write_history(history, path)
        assert same(read_history(path), history)


@settings(deadline=None, max_examples=30)
@given(histories(), st.randoms(use_true_random=False))
def test_a_run_may_be_spread_over_files_in_any_order(history: History, random: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_history(history, Path(folder, "whole", "run.parquet"))
        table = pq.read_table(Path(folder, "whole", "run.parquet"))
        rows = list(range(table.num_rows))
        random.shuffle(rows)  # type: ignore[attr-defined]
        for number, part in enumerate([rows[::2], rows[1::2]]):
            (parts := Path(folder, "parts")).mkdir(exist_ok=True)
            pq.write_table(table.take(pa.array(part, pa.int64())), parts / f"{number}.parquet")
        assert same(read_history(parts), history)


def small_history(run: str, cuts: list[int]) -> History:
    recorder = Recorder(RunInfo.one(run, "g", "s-rm", 7, (A, B), 40, uniform=False, quiesced=False))
    first = 1
    for length in cuts:
        recorder.multicast(5, A, batch_of(A, first, [b"x"] * length))
        first += length
    recorder.multicast(6, A, batch_of(A, first, [b"x"], KEnumeration(first, 5)))
    return recorder.close(quiesced=True)


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    for name, cuts in [("one", [6]), ("two", [6]), ("cut", [1, 2, 3])]:
        write_history(small_history("run", cuts), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "cut").read_bytes()


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    write_history(small_history("run", [1]), tmp_path / "run.parquet")
    schema = pq.read_schema(tmp_path / "run.parquet")
    assert schema.metadata[b"semcast.schema"] == b"2"
    assert b'"run":"run"' in schema.metadata[b"semcast.run"]
    assert schema.names == SCHEMA.names


def test_a_folder_of_runs_is_read_run_by_run(tmp_path: Path) -> None:
    for run in ("x", "y"):
        write_history(small_history(run, [2]), tmp_path / f"{run}.parquet")
    assert [history.info.run for history in read_histories(tmp_path)] == ["x", "y"]
    with pytest.raises(HistoryError, match=r"holds 2 runs \(x, y\) where one was expected"):
        read_history(tmp_path)


def test_columns_that_a_later_version_adds_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    history = small_history("run", [2])
    write_history(history, path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("colour", pa.array(["red"] * table.num_rows)), path)
    assert same(read_history(path), history)
