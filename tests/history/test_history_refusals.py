"""Every way in which a file can be broken is named, with the file and the row."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semcast.core import Item, MemberId, MessageId, Purged, View
from semcast.core.messages import batch_of
from semcast.history import (
    History,
    HistoryError,
    Recorder,
    RunInfo,
    read_histories,
    read_history,
    write_history,
)

A, B = MemberId("a"), MemberId("b")

Row = dict[str, object]


def sound() -> History:
    """Rows 0..3 are of a, 4..8 of b."""
    recorder = Recorder(RunInfo.one("run", "g", "s-rm", 7, (A, B), 40, uniform=False, quiesced=False))
    recorder.view(0, A, View(1, (A, B)))
    recorder.multicast(1, A, batch_of(A, 1, [b"x"], Item("i")))
    recorder.multicast(2, A, batch_of(A, 2, [b"x"], Item("i")))
    recorder.multicast(3, A, batch_of(A, 3, [b"x", b"y"]))
    recorder.view(0, B, View(1, (A, B)))
    recorder.deliver(4, B, batch_of(A, 2, [b"x"], Item("i")))
    recorder.purge(4, B, Purged(MessageId(A, 1), MessageId(A, 2)))
    recorder.buffer(5, B, 3)
    recorder.apply(6, B, A, "digest")
    return recorder.close(quiesced=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_history(sound(), tmp_path / "run.parquet")
    return tmp_path / "run.parquet"


def refusal(path: Path) -> str:
    with pytest.raises(HistoryError) as error:
        read_history(path)
    return str(error.value)


def put(row: int, **columns: object) -> Callable[[list[Row]], None]:
    return lambda rows: rows[row].update(columns)


def without(row: int) -> Callable[[list[Row]], None]:
    return lambda rows: rows.__delitem__(row)


def annotated(row: int, **fields: object) -> Callable[[list[Row]], None]:
    return put(row, annotation=fields)


ROWS: dict[str, tuple[Callable[[list[Row]], None], str]] = {
    "unknown kind": (put(5, kind="dlvr"), "row 5: unknown kind 'dlvr'"),
    "index skipped": (put(3, index=7), "row 3: index 7 of a where 3 should follow"),
    "index repeated": (put(3, index=2), "row 3: index 2 of a where 3 should follow"),
    "index not from 0": (without(4), "row 4: index 1 of b where 0 should follow"),
    "negative index": (put(0, index=-1), "row 0: index -1 of a where 0 should follow"),
    "deliver seq 0": (put(5, seq=0), "row 5: deliver of message 0 of a: they count from 1"),
    "multicast seq -1": (put(3, seq=-1), "row 3: multicast of message -1 of a: they count from 1"),
    "purge seq 0": (put(6, seq=0), "row 6: purge of message 0 of a: they count from 1"),
    "deliver count 0": (put(5, count=0), "row 5: deliver of 0 messages: at least one is needed"),
    "multicast count 0": (put(3, count=0), "row 3: multicast of 0 messages: at least one is needed"),
    "deliver without sender": (put(5, sender=None), "row 5: deliver without a sender"),
    "multicast without sender": (put(3, sender=None), "row 3: multicast without a sender"),
    "purge without sender": (put(6, sender=None), "row 6: purge without a sender"),
    "multicast by another": (
        put(3, sender="b"),
        "row 3: multicast of (b,3) by a, who is not its sender",
    ),
    "multicast by another incarnation": (
        put(3, sender_incarnation=1),
        "row 3: multicast of (a#1,3) by a, who is not its sender",
    ),
    "multicast again": (put(3, seq=2), "row 3: multicast of (a,2) after 2"),
    "annotated run": (
        put(2, count=2),
        "row 2: an annotation speaks for one message, and this row is about 2",
    ),
    "unknown process": (put(8, process="z"), "row 8: unknown process z: the members are a, b"),
    "unknown incarnation": (put(8, incarnation=-1), "row 8: unknown process b#-1: the members are a, b"),
    "another run": (put(8, run="other"), "row 8: belongs to run other, and the file to run run"),
    "view without number": (put(4, view=None), "row 4: view without a number or without members"),
    "view without members": (put(4, members=None), "row 4: view without a number or without members"),
    "incomplete member": (
        put(4, members=[{"name": "a", "incarnation": None}]),
        "row 4: a view with an incomplete member",
    ),
    "negative buffer": (put(7, count=-1), "row 7: buffer of -1 messages"),
    "apply without sender": (put(8, sender=None), "row 8: apply without a sender or without a digest"),
    "apply without digest": (put(8, annotation=None), "row 8: apply without a sender or without a digest"),
    "unknown annotation": (
        annotated(1, kind="colour"),
        "row 1: an annotation of kind 'colour' that is unknown here or incomplete",
    ),
    "annotation without kind": (
        annotated(1, item="i"),
        "row 1: an annotation of kind None that is unknown here or incomplete",
    ),
    "item without item": (
        annotated(1, kind="item"),
        "row 1: an annotation of kind 'item' that is unknown here or incomplete",
    ),
    "k-enumeration without base": (
        annotated(1, kind="k-enumeration", bitmap=b"\1", total=False),
        "row 1: an annotation of kind 'k-enumeration' that is unknown here or incomplete",
    ),
    "enumeration without ids": (
        annotated(1, kind="enumeration"),
        "row 1: an annotation of kind 'enumeration' that is unknown here or incomplete",
    ),
    "enumeration with half an id": (
        annotated(1, kind="enumeration", ids=[{"sender": "a", "incarnation": 0}]),
        "row 1: an annotation of kind 'enumeration' that is unknown here or incomplete",
    ),
    "by on a multicast": (
        annotated(1, kind="by", ids=[{"sender": "a", "incarnation": 0, "seq": 1}]),
        "row 1: an annotation of kind 'by' that is unknown here or incomplete",
    ),
    "item on a purge": (
        annotated(6, kind="item", item="i"),
        "row 6: an annotation of kind 'item' that is unknown here or incomplete",
    ),
    "purge by nobody": (
        annotated(6, kind="by", ids=[]),
        "row 6: an annotation of kind 'by' that is unknown here or incomplete",
    ),
    "no events": (lambda rows: rows.clear(), "run run has no events"),
}


@pytest.mark.parametrize("name", ROWS)
def test_broken_rows(path: Path, name: str) -> None:
    edit, complaint = ROWS[name]
    table = pq.read_table(path)
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert refusal(path) == f"{path}: {complaint}"


@pytest.mark.parametrize("name", ["run", "process", "index", "kind", "seq", "count", "bytes"])
def test_empty_cells(path: Path, name: str) -> None:
    table = pq.read_table(path)
    values = table.column(name).to_pylist()
    values[3] = None
    column = pa.array(values, table.schema.field(name).type)
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, column), path)
    assert refusal(path) == f"{path}: row 3: no {name}"


def test_missing_columns(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop_columns(["seq", "at_ns"]), path)
    assert refusal(path) == f"{path}: missing columns: at_ns, seq"


def test_column_of_another_type(path: Path) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(place, "seq", table.column("seq").cast(pa.string())), path)
    assert refusal(path) == f"{path}: column seq is string, not int64"


def with_metadata(path: Path, **changes: bytes | None) -> None:
    table = pq.read_table(path)
    metadata = {
        **table.schema.metadata,
        **{f"semcast.{key}".encode(): value for key, value in changes.items()},
    }
    kept = {key: value for key, value in metadata.items() if value is not None}
    pq.write_table(table.replace_schema_metadata(kept), path)


def test_unknown_schema_version(path: Path) -> None:
    with_metadata(path, schema=b"3")
    assert refusal(path) == f"{path}: schema version 3; this program reads 1 and 2"


@pytest.mark.parametrize("key", ["schema", "run"])
def test_parquet_that_is_no_history(path: Path, key: str) -> None:
    with_metadata(path, **{key: None})
    assert refusal(path) == f"{path}: a Parquet file, but not a recorded history (no run in its metadata)"


@pytest.mark.parametrize("text", [b"{", b'{"run": 3}', b"\xff"])
def test_unreadable_description(path: Path, text: bytes) -> None:
    with_metadata(path, run=text)
    assert refusal(path).startswith(f"{path}: unreadable description of the run: ")


def test_no_parquet_file(path: Path) -> None:
    path.write_text("process,index\n")
    assert refusal(path).startswith(f"{path}: not a Parquet file, or damaged or cut off: ")


def test_a_file_cut_off_anywhere(path: Path) -> None:
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert refusal(path).startswith(f"{path}: not a Parquet file, or damaged or cut off: ")


def test_damage_never_ends_in_another_error(path: Path) -> None:
    whole, refused = path.read_bytes(), []
    for place in range(0, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x90]) + whole[place + 1 :])
        try:
            read_history(path)
        except HistoryError as error:
            refused.append(str(error))
    assert len(refused) > len(whole) // 13 // 2, "most of a file matters"
    assert all(each.startswith(str(path)) for each in refused)


def test_no_such_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone") == f"{tmp_path / 'gone'}: no such file or folder"


def test_folder_without_histories(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: no *.parquet or *.journal files in this folder"


def test_files_that_disagree_about_their_run(path: Path) -> None:
    history = sound()
    other = path.with_name("second.parquet")
    write_history(History(msgspec.structs.replace(history.info, seed=8), history.events), other)
    assert refusal(path.parent) == f"{other}: describes run run differently than {path}"


def test_the_same_run_twice(path: Path) -> None:
    other = path.with_name("second.parquet")
    other.write_bytes(path.read_bytes())
    assert refusal(path.parent) == f"{other}: row 0: index 0 of a where 1 should follow"


def test_a_run_without_events_among_others(path: Path) -> None:
    empty = path.with_name("empty.parquet")
    write_history(History(msgspec.structs.replace(sound().info, run="empty"), []), empty)
    with pytest.raises(HistoryError, match="run empty has no events"):
        read_histories(path.parent)


def test_unknown_members_may_be_anybody(path: Path) -> None:
    history = sound()
    anybody = msgspec.structs.replace(history.info.only, members=())
    write_history(History(history.info.alone(anybody), history.events), path)
    assert read_history(path).processes == (A, B)


def test_a_restarted_member_is_no_stranger_but_no_member_either(path: Path) -> None:
    again = MemberId("b", 1)
    recorder = Recorder(sound().info)
    recorder.crash(1, B)
    recorder.recover(2, again)
    write_history(recorder.close(quiesced=True), path)
    history = read_history(path)
    assert (history.processes, history.gone, history.correct) == ((A, B, again), (B,), (A,))


def test_a_delivery_of_what_nobody_multicast_is_for_the_checkers(path: Path) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    put(5, seq=99, sender="nobody")(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert read_history(path).of(B)[1].sender == MemberId("nobody")
