"""The first pass: what it counts of each process, and which rows it is in doubt about. No Spark is needed."""

from collections.abc import Callable
from functools import reduce
from operator import xor
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.histories import deep_chain, recut, scatter, small, two_groups, write
from tests.pipeline.rings import deep, sound
from tests.pipeline.test_pipeline_verify import changed_cell, emptied_cell, rewrite

from semcast.core import KEnumeration
from semcast.history import Event, History, HistoryError, Kind
from semcast.history.columns import SCHEMA
from semcast.pipeline.verify import survey
from semcast.pipeline.verify.counting import Total, totals, trail_of


def counted(folder: Path) -> list[Total]:
    recorded = survey([folder])
    return totals(None, recorded.files, recorded.runs, here=True)  # type: ignore[arg-type]


def by_hand(history: History) -> dict[object, tuple[int, ...]]:
    """Rows, messages, the highest message, the lowest and the highest index."""
    found: dict[object, list[Event]] = {}
    for event in history.events:
        key = history.info.run, event.process, event.kind.value, event.sender
        found.setdefault(key, []).append(event)
    return {
        key: (
            len(some),
            sum(event.count for event in some),
            max(event.last for event in some),
            min(event.index for event in some),
            max(event.index for event in some),
        )
        for key, some in found.items()
    }


def test_everything_is_counted(tmp_path: Path) -> None:
    histories = [*map(small, range(20)), deep_chain(), deep(), sound(1)]
    found = counted(write(histories, tmp_path))
    expected = {key: told for history in histories for key, told in by_hand(history).items()}
    assert expected == {
        (t.run, t.process, t.kind, t.sender): (t.rows, t.messages, t.latest, t.begin, t.end) for t in found
    }
    assert not any(each.doubtful for each in found)
    for history in histories:
        for process in history.processes:
            mine = [each for each in found if (each.run, each.process) == (history.info.run, process)]
            assert reduce(xor, (each.trail for each in mine)) == trail_of(sum(each.rows for each in mine))


def test_no_fingerprint_depends_on_cuts_or_on_the_order_of_rows(tmp_path: Path) -> None:
    whole = sound(2)
    plain = {
        (t.process, t.kind, t.sender): (t.print, t.latest) for t in counted(write([whole], tmp_path / "one"))
    }
    scatter(recut(whole, Random(3)), tmp_path / "other", Random(4))
    again = {(t.process, t.kind, t.sender): (t.print, t.latest) for t in counted(tmp_path / "other")}
    of_messages = [key for key in plain if key[1] in (Kind.MULTICAST.value, Kind.DELIVER.value)]
    assert len(of_messages) > 5
    assert {key: again[key] for key in of_messages} == {key: plain[key] for key in of_messages}


def test_one_message_more_or_another_one_changes_the_fingerprint(tmp_path: Path) -> None:
    def prints(change: Callable[[pa.Table], pa.Table]) -> list[tuple[int, int, int]]:
        file = write([deep_chain()], tmp_path) / "deep.parquet"
        rewrite(file, change)
        return [each.print for each in counted(tmp_path) if each.kind == Kind.DELIVER.value]

    plain = prints(lambda table: table)
    assert prints(changed_cell("count", 300, 299)) != plain
    assert prints(changed_cell("seq", 301, 299)) != plain


def test_groups_of_a_run_are_counted_apart(tmp_path: Path) -> None:
    assert {each.run for each in counted(write([two_groups()], tmp_path))} == {"two-groups[g]"}


def noted(index: int, **fields: object) -> Callable[[pa.Table], pa.Table]:
    """An annotation with these fields only."""
    empty = dict.fromkeys(("kind", "item", "base", "bitmap", "total", "ids"))
    return changed_cell("annotation", index, {**empty, **fields})


REQUIRED = [field.name for field in SCHEMA if not field.nullable and field.name != "run"]
NOBODY = {"sender": None, "incarnation": 0, "seq": 1}
STRANGE: dict[str, Callable[[pa.Table], pa.Table]] = {
    **{f"no {name}": emptied_cell(name, 1) for name in REQUIRED},
    "unknown kind": changed_cell("kind", 2, "explode"),
    "no sender": changed_cell("sender", 0, None),
    "message 0": changed_cell("seq", 0, 0),
    "no message": changed_cell("count", 0, 0),
    "size": changed_cell("bytes", 0, -1),
    "crc": changed_cell("crc", 0, 1 << 32),
    "crc below 0": changed_cell("crc", 0, -1),
    "by another": changed_cell("process", 0, "x"),
    "by another life": changed_cell("sender_incarnation", 0, 5),
    "view without number": changed_cell("kind", 1, "view"),
    "member without name": changed_cell("members", 1, [{"name": None, "incarnation": 1}]),
    "member without life": changed_cell("members", 1, [{"name": "a", "incarnation": None}]),
    "member without anything": changed_cell("members", 1, [{"name": None, "incarnation": None}]),
    "apply without digest": changed_cell("kind", 1, "apply"),
    "kind of annotation": noted(0, kind="poem"),
    "annotation of no kind": noted(0, item="x"),
    "annotation of nothing": lambda table: reduce(
        lambda some, row: noted(row)(some), range(len(table)), table
    ),
    "item that is not said": noted(0, kind="item"),
    "no list": noted(0, kind="enumeration"),
    "an incomplete message": noted(0, kind="enumeration", ids=[NOBODY]),
    "bitmap without base": noted(0, kind="k-enumeration", bitmap=b"1", total=False),
    "bitmap without bits": noted(0, kind="k-enumeration", base=1, total=False),
    "bitmap of no order": noted(0, kind="k-enumeration", base=1, bitmap=b"1"),
    "receipt that names nobody": changed_cell("kind", 0, "purge"),
    "note about several": lambda table: changed_cell("count", 0, 2)(noted(0, kind="item", item="x")(table)),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
def test_rows_that_cannot_be_events_are_in_doubt(
    change: Callable[[pa.Table], pa.Table], tmp_path: Path
) -> None:
    """Those that Spark then refuses, with their row (`test_rows_that_are_no_events`)."""
    file = write([noted_history()], tmp_path) / "noted.parquet"
    assert not any(each.doubtful for each in counted(tmp_path))
    rewrite(file, change)
    assert any(each.doubtful for each in counted(tmp_path))


def noted_history() -> History:
    """Its first messages have annotations."""
    history = small(5)
    info = type(history.info).one(
        "noted", "g", "s-rm", None, history.info.only.members, 3, uniform=True, quiesced=True
    )
    first = history.events[0]
    assert first.kind is Kind.MULTICAST
    note = msgspec.structs.replace(first, annotation=KEnumeration(1, 1))
    return History(info, [note, *history.events[1:]])


def test_without_statistics_rows_are_in_doubt(tmp_path: Path) -> None:
    file = write([small(5)], tmp_path) / "small-5.parquet"
    table = pq.read_table(file)
    pq.write_table(table, file, write_statistics=False)
    assert all(each.doubtful for each in counted(tmp_path))


def test_annotations_about_the_order_are_told(tmp_path: Path) -> None:
    histories = [small(seed) for seed in range(30)]
    found = counted(write(histories, tmp_path))
    for history in histories:
        notes = [(event, event.annotation) for event in history.events if event.annotation is not None]
        total = any(isinstance(note, KEnumeration) and note.total for _, note in notes)
        mine = [each for each in found if each.run == history.info.run]
        assert any(each.total for each in mine) is total
        named = [(event, message) for event, note in notes for message in getattr(note, "ids", ())]
        others = any(m.sender != event.sender or m.seq > event.seq for event, m in named)
        assert any(each.odd for each in mine) is (total or others)


def test_a_damaged_page_is_refused_in_one_line(tmp_path: Path) -> None:
    file = write([sound(1)], tmp_path) / "sound-1.parquet"
    recorded = survey([tmp_path])
    data = bytearray(file.read_bytes())
    place = pq.ParquetFile(file).metadata.row_group(0).column(3).dictionary_page_offset or 4
    data[place + 40] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(HistoryError, match=r"sound-1.parquet: .*damaged"):
        totals(None, recorded.files, recorded.runs, here=True)  # type: ignore[arg-type]
