"""Contents on Spark: what lines up, and what differs, is what the checker in memory says."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.history import version1

from semcast.core import MemberId
from semcast.core.messages import batch_of
from semcast.history import (
    KINDS,
    Event,
    GroupInfo,
    History,
    HistoryError,
    Kind,
    Recorder,
    RunInfo,
    add_kind,
    write_history,
)
from semcast.pipeline.verify import Options, contents, survey, verify
from semcast.pipeline.verify.contents import COLUMNS, COMPARED, DIFFERENT, LEFT_OVER, align
from semcast.pipeline.verify.folds import moved
from semcast.specs import check
from semcast.specs.contents import known_contents, stretches

A, B = MemberId("a"), MemberId("b")


def rows(random: Random, kind: Kind, payloads: list[bytes]) -> list[Event]:
    """The messages in runs that are cut anywhere, some of them lost, overlapping or of unknown contents."""
    found: list[Event] = []
    first = 0
    while first < len(payloads):
        end = min(len(payloads), first + random.randint(1, 4))
        data = b"".join(payloads[first:end])
        crc = None if random.random() < 0.03 else crc32(data)
        process = A if kind is Kind.MULTICAST else B
        if random.random() < 0.93:
            event = Event(process, len(found), 0, kind, "g", A, first + 1, end - first, len(data), crc=crc)
            found.append(event)
        overlaps = kind is Kind.DELIVER and random.random() < 0.05
        first = max(0, end - 1) if overlaps and end - first > 1 else end
    return found


def table(pair: tuple[int, int], events: list[Event]) -> pa.Table:
    cells = [
        (LEFT_OVER, *pair, int(e.kind is Kind.MULTICAST), e.seq, e.last, e.size, e.crc, e.index)
        for e in events
        if e.crc is not None
    ]
    columns = [pa.array([row[n] for row in cells], pa.int64()) for n in range(len(COLUMNS))]
    return pa.table(columns, names=list(COLUMNS))


@pytest.mark.parametrize("seed", range(20))
def test_arrays_line_up_as_events_do(seed: int) -> None:
    random = Random(seed)
    tables: list[pa.Table] = []
    compared: dict[tuple[int, int], int] = {}
    different: set[tuple[int, int, int, int]] = set()
    for pair in [(3, 1), (5, 1), (1, 70_000)]:
        sent = [random.randbytes(random.randint(0, 9)) for _ in range(60)]
        got = [payload if random.random() < 0.9 else payload + b"!" for payload in sent]
        sends, deliveries = rows(random, Kind.MULTICAST, sent), rows(random, Kind.DELIVER, got)
        tables += [table(pair, sends), table(pair, deliveries)]
        found = list(stretches(known_contents(sends), known_contents(deliveries)))
        compared[pair] = sum(stretch.messages for stretch in found)
        different |= {
            (*pair, stretch.sent[0].seq, stretch.delivered[0].index) for stretch in found if stretch.differs
        }
    told = align(pa.concat_tables(tables)).to_pylist()
    assert {(r["who"], r["author"]): r["size"] for r in told if r["what"] == COMPARED} == compared
    assert {
        (r["who"], r["author"], r["first"], r["index"]) for r in told if r["what"] == DIFFERENT
    } == different
    assert different


@pytest.mark.parametrize("cut", [1, 2, 7, 30])
def test_what_reaches_over_an_edge_lines_up_in_the_end(cut: int) -> None:
    """In any two parts first and then what is left of both: nothing is lost, and nothing found twice."""
    random = Random(cut)
    sent = [random.randbytes(5) for _ in range(40)]
    got = [payload if place % 6 else b"other" for place, payload in enumerate(sent)]
    both = pa.concat_tables(
        [
            table((1, 2), rows(random, Kind.MULTICAST, sent)),
            table((1, 2), rows(random, Kind.DELIVER, got)),
        ]
    )
    below = pa.array(np.asarray(both["first"]) <= cut)
    parts = [align(both.filter(below)), align(both.filter(pa.compute.invert(below)))]
    left = pa.concat_tables([part.filter(pa.compute.equal(part["what"], LEFT_OVER)) for part in parts])
    found = [*parts, align(left)]

    def told(what: int, tables: list[pa.Table]) -> list[tuple[int, int]]:
        listed = [row for each in tables for row in each.to_pylist() if row["what"] == what]
        if what == COMPARED:
            return [(0, sum(row["size"] for row in listed))]
        return sorted((row["first"], row["last"]) for row in listed)

    for what in (COMPARED, DIFFERENT):
        assert told(what, found) == told(what, [align(both)])


def test_nothing_lines_up_with_nothing() -> None:
    only = table((1, 2), rows(Random(1), Kind.DELIVER, [b"x"] * 5))
    assert {row["what"] for row in align(only).to_pylist()} == {COMPARED, LEFT_OVER}
    assert align(only)["size"][0].as_py() == 0


def test_many_crcs_move_as_one_does() -> None:
    random = Random(5)
    parts = [
        (random.randbytes(random.randint(0, 40)), random.randbytes(size)) for size in (0, 1, 255, 256, 70_000)
    ]
    crcs = np.array([crc32(one) for one, _ in parts])
    together = moved(crcs, np.array([len(other) for _, other in parts])) ^ [
        crc32(other) for _, other in parts
    ]
    assert together.tolist() == [crc32(one + other) for one, other in parts]


def conversation(
    run: str, seed: int, *, changed: bool = False, lost: bool = False, group: str = "g", stack: str = "s-rm"
) -> History:
    """What a and b say, cut otherwise by everybody who hears it."""
    random = Random(seed)
    recorder = Recorder(RunInfo.one(run, group, stack, seed, (A, B), None, uniform=False, quiesced=False))
    for sender in (A, B):
        said = [random.randbytes(random.randint(0, 9)) for _ in range(50)]
        for process in (A, B):
            heard = list(said)
            if changed and process != sender:
                heard[random.randrange(50)] += b"!"
            for at, (first, end) in enumerate(cuts(random, 50)):
                batch = batch_of(sender, first + 1, heard[first:end])
                if not (lost and process == B and at == 3):
                    recorder.deliver(at, process, batch)
        for at, (first, end) in enumerate(cuts(random, 50)):
            recorder.multicast(at, sender, batch_of(sender, first + 1, said[first:end]))
    return recorder.close(quiesced=True)


def cuts(random: Random, count: int) -> list[tuple[int, int]]:
    places = sorted({0, count, *random.sample(range(count), 12)})
    return list(pairwise(places))


NAMES = ["integrity", "fifo_delivery", "semantic_agreement"]


@pytest.mark.parametrize("small", [True, False])
def test_spark_sees_contents_as_memory_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    monkeypatch.setattr(contents, "lined_up", partial(contents.lined_up, bits=3))
    histories = [
        conversation("sound", 1),
        conversation("changed", 2, changed=True),
        conversation("lost", 3, lost=True),
        conversation("both", 4, changed=True, lost=True),
    ]
    for history in histories:
        write_history(history, tmp_path / f"{history.info.run}.parquet")
    options = Options(NAMES, small_rows=1_000_000 if small else 0)
    report = verify(spark, survey([tmp_path]), options)
    told = {(v.run, v.property): (v.status.value, v.count, v.note) for v in report.verdicts}
    expected = {
        (history.info.run, v.property): (v.status.value, v.count, v.note)
        for history in histories
        for v in check(history, NAMES)
    }
    assert told == expected
    assert told["sound", "integrity"] == ("holds", 0, "")
    assert told["changed", "integrity"] == ("violated", 2, "")
    assert told["lost", "integrity"][0] == "holds"
    assert told["lost", "integrity"][2] != ""
    (offence, _) = next(v.sample for v in report.verdicts if v.run == "changed" and v.property == "integrity")
    assert "delivered with other contents than were multicast" in str(offence)
    assert "deliver" in offence.event


@pytest.mark.parametrize("small", [True, False])
def test_groups_and_versions_side_by_side(spark: SparkSession, tmp_path: Path, *, small: bool) -> None:
    """A run of two groups, the messages of one of which were changed, and a run of version 1."""
    one, other = conversation("two", 5, group="g"), conversation("two", 6, group="h", changed=True)
    info = RunInfo("two", (one.info.only, other.info.only), 5, quiesced=True)
    write_history(History(info, [*one.events, *other.events]), tmp_path / "two.parquet")
    multicast = {"kind": "multicast", "sender": "a", "seq": 1, "count": 4, "bytes": 9}
    deliver = {"kind": "deliver", "sender": "a", "seq": 1, "count": 4, "bytes": 9}
    rows: list[dict[str, object]] = [multicast, {**deliver, "index": 1}, {**deliver, "process": "b"}]
    version1.write_parquet(tmp_path / "old.parquet", rows)
    recorded = survey([tmp_path])
    assert list(recorded.runs) == ["old", "two[g]", "two[h]"]
    report = verify(spark, recorded, Options(NAMES, small_rows=1_000_000 if small else 0))
    told = {(v.run, v.property): (v.status.value, v.count, v.note) for v in report.verdicts}
    assert told["old", "integrity"] == ("holds", 0, "contents not compared: 8")
    assert told["two[g]", "integrity"] == ("holds", 0, "")
    assert told["two[h]", "integrity"] == ("violated", 2, "")
    assert {status for (_, name), (status, _, _) in told.items() if name != "integrity"} == {"holds"}


def test_rows_of_a_group_that_nobody_described(tmp_path: Path) -> None:
    stray = History(conversation("run", 1).info, [Event(A, 0, 0, Kind.RECOVER, "other")])
    write_history(stray, tmp_path / "run.parquet")
    with pytest.raises(HistoryError, match="has rows of group other, which it does not describe"):
        survey([tmp_path])


def test_a_family_judges_its_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    info = RunInfo("run", (GroupInfo("g", "s-rm", (A,)),), quiesced=True)
    kind = add_kind("lease", ("sender",), lambda event: "a lease of nobody" if event.sender is None else None)
    try:
        for sender, fault in ((A, None), (None, "row 0 of a: a lease of nobody")):
            write_history(History(info, [Event(A, 0, 0, kind, "g", sender)]), tmp_path / "run.parquet")
            if fault is None:
                assert verify(spark, survey([tmp_path]), Options(["integrity"])).verdicts[0].count == 0
            else:
                with pytest.raises(HistoryError, match=fault):
                    verify(spark, survey([tmp_path]), Options(["integrity"]))
    finally:
        del KINDS["lease"]
    with pytest.raises(HistoryError, match="unknown kind lease"):
        verify(spark, survey([tmp_path]), Options(["integrity"]))
