"""`semcast verify` on Spark says what the checkers in memory say, on sound and on broken histories."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from semcast.cli.errors import UsageError
from semcast.cli.verify import add_parser, run
from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, MessageId
from semcast.history import Event, History, HistoryError, Kind, RunInfo, read_histories, write_history
from semcast.pipeline.verify import KNOWN, Options, Report, survey, verify
from semcast.sim.mutants import MUTANTS
from semcast.sim.scenario import draw
from semcast.sim.simulate import simulate
from semcast.specs import EVS, PROPERTIES, check

A, B, C = MEMBERS = MemberId("a"), MemberId("b"), MemberId("c", 1)
MOST = 5
NAMES = [name for name in KNOWN if name not in EVS]


# --- histories ------------------------------------------------------------------------------------


def simulated() -> Iterator[History]:
    """Every stack, and every mutant, for a few seeds."""
    for seed in range(12):
        for stack in ("s-rm", "s-srm", "reliable"):
            yield named(simulate(draw(seed, stack)).history, f"{stack}-{seed}")
    for name, mutant in MUTANTS["s-rm"].items():
        for seed in range(4):
            yield named(simulate(draw(seed, "s-rm"), mutant).history, f"{name}-{seed}")


def named(history: History, run: str, **info: object) -> History:
    return History(msgspec.structs.replace(history.info, run=run, **info), history.events)


def renumbered(info: RunInfo, events: list[Event]) -> History:
    """The events, in the given order at each process."""
    places: dict[MemberId, int] = {}
    numbered = []
    for event in events:
        place = places.get(event.process, 0)
        places[event.process] = place + 1
        numbered.append(msgspec.structs.replace(event, index=place))
    return History(info, numbered)


def places(events: list[Event], kind: Kind) -> list[int]:
    return [place for place, event in enumerate(events) if event.kind is kind]


def drop_delivery(events: list[Event], random: Random) -> None:
    del events[random.choice(places(events, Kind.DELIVER))]


def repeat_delivery(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.DELIVER))
    events.insert(place + random.randint(1, 3), events[place])


def swap_deliveries(events: list[Event], random: Random) -> None:
    one = random.choice(places(events, Kind.DELIVER)[:-1])
    same = [n for n in places(events, Kind.DELIVER) if events[n].process == events[one].process and n > one]
    if same:
        events[one], events[same[0]] = events[same[0]], events[one]


def invent_delivery(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.DELIVER))
    events.insert(place + 1, msgspec.structs.replace(events[place], seq=random.choice((700, 900)), count=3))


def overfill(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.BUFFER))
    events[place] = msgspec.structs.replace(events[place], count=10_000)


def change_digest(events: list[Event], random: Random) -> None:
    found = places(events, Kind.APPLY)
    if found:
        events[found[-1]] = msgspec.structs.replace(events[found[-1]], digest="another")


def forget_crash(events: list[Event], random: Random) -> None:
    for place in reversed(places(events, Kind.CRASH)):
        del events[place]


def crash(events: list[Event], random: Random) -> None:
    process = events[-1].process
    events.append(Event(process, 0, events[-1].at, Kind.CRASH, events[-1].group))


def run_in_circles(events: list[Event], random: Random) -> None:
    """Two messages that replace each other."""
    single = [n for n in places(events, Kind.MULTICAST) if events[n].count == 1]
    if len(single) < 2:
        return
    one, other = random.sample(single, 2)
    for place, named in ((one, other), (other, one)):
        of = events[named]
        note = Enumeration((MessageId(of.process, of.seq),))
        events[place] = msgspec.structs.replace(events[place], annotation=note)


def lose_half(events: list[Event], random: Random) -> None:
    for place in reversed(places(events, Kind.DELIVER)):
        if random.random() < 0.5:
            del events[place]


EDITS: list[Callable[[list[Event], Random], None]] = [
    drop_delivery,
    repeat_delivery,
    swap_deliveries,
    invent_delivery,
    overfill,
    change_digest,
    forget_crash,
    crash,
    run_in_circles,
    lose_half,
]


def planted(histories: list[History]) -> Iterator[History]:
    for number, history in enumerate(histories):
        for turn in range(2):
            edit = EDITS[(number + 5 * turn) % len(EDITS)]
            random = Random(f"{number}/{turn}")
            events = list(history.events)
            if not places(events, Kind.DELIVER) or not places(events, Kind.BUFFER):
                continue
            edit(events, random)
            run = f"{history.info.run}-{edit.__name__}"
            info = msgspec.structs.replace(history.info, run=run, quiesced=random.random() < 0.95)
            yield renumbered(info, events)


def small(seed: int) -> History:
    """Three processes that do almost what a protocol would do, with every representation."""
    random = Random(seed)
    sent = {member: random.randint(0, MOST) for member in MEMBERS}
    events: list[Event] = []
    for member in MEMBERS:
        for seq in range(1, sent[member] + 1):
            note, order = annotation(random, member), random.choice((None, None, random.randint(1, 12)))
            events.append(
                Event(member, 0, 0, Kind.MULTICAST, "g", member, seq, 1, annotation=note, order=order)
            )
        events += deliveries(random, member, sent)
        if random.random() < 0.25:
            events.append(Event(member, 0, 0, Kind.CRASH, "g"))
    info = RunInfo(
        f"small-{seed}", "g", "s-rm", None, MEMBERS, 3, uniform=True, quiesced=random.random() < 0.9
    )
    return renumbered(info, events)


def annotation(random: Random, member: MemberId) -> Annotation | None:
    kind = random.choice(("none", "item", "item", "ids", "own", "bitmap", "bitmap", "total"))
    if kind == "item":
        return Item(random.choice("xy"))
    if kind == "ids":
        return Enumeration((MessageId(random.choice(MEMBERS), random.randint(1, MOST)),))
    if kind == "own":
        return Enumeration(tuple(MessageId(member, random.randint(1, MOST)) for _ in range(2)))
    if kind == "bitmap":
        return KEnumeration(random.randint(1, MOST + 1), random.choice((0, 1, 2, 5, 0x301)))
    return KEnumeration(random.randint(1, 12), random.randint(0, 7), total=True) if kind == "total" else None


def deliveries(random: Random, member: MemberId, sent: dict[MemberId, int]) -> list[Event]:
    events = []
    for sender in MEMBERS:
        seqs = [seq for seq in range(1, sent[sender] + 1) if random.randint(0, 3)]
        if random.random() < 0.15:
            seqs.append(random.randint(1, MOST + 2))
        if random.random() < 0.15:
            random.shuffle(seqs)
        if random.random() < 0.15:
            seqs += seqs[-random.randint(1, 4) :]
        events += [Event(member, 0, 0, Kind.DELIVER, "g", sender, seq, 1) for seq in seqs]
        if random.random() < 0.5:
            events.append(Event(member, 0, 0, Kind.APPLY, "g", sender, digest=random.choice("ppppq")))
    if random.random() < 0.5:
        events.append(Event(member, 0, 0, Kind.BUFFER, "g", count=random.randint(0, 6)))
    return events


def recut(history: History, random: Random) -> History:
    """The same history with its runs cut at random."""
    events: list[Event] = []
    for event in history.events:
        if event.sender is None or event.count < 2:
            events.append(event)
            continue
        cuts = sorted(random.sample(range(event.seq + 1, event.last + 1), random.randint(1, event.count - 1)))
        for first, after in zip([event.seq, *cuts], [*cuts, event.last + 1], strict=True):
            events.append(msgspec.structs.replace(event, seq=first, count=after - first))
    return renumbered(history.info, events)


# --- agreement ------------------------------------------------------------------------------------


def write(histories: list[History], folder: Path) -> Path:
    for history in histories:
        write_history(history, folder / f"{history.info.run}.parquet")
    return folder


def on_spark(spark: SparkSession, *paths: Path, names: list[str] | None = None) -> Report:
    return verify(spark, survey(paths), Options(names or NAMES, allow_missing=True))


def said(report: Report) -> dict[tuple[str, str], tuple[str, int]]:
    return {(v.run, v.property): (v.status.value, v.count) for v in report.verdicts}


def in_memory(
    histories: list[History], names: list[str] | None = None
) -> dict[tuple[str, str], tuple[str, int]]:
    return {
        (history.info.run, verdict.property): (verdict.status.value, verdict.count)
        for history in histories
        for verdict in check(history, names or NAMES)
    }


def differences(
    one: dict[tuple[str, str], tuple[str, int]], other: dict[tuple[str, str], tuple[str, int]]
) -> list[object]:
    return [
        (key, one.get(key), other.get(key))
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key)
    ]


@pytest.fixture(scope="module")
def histories() -> list[History]:
    real = list(simulated())
    return [*real, *planted(real), *(small(seed) for seed in range(120))]


def test_it_agrees_with_the_checkers_in_memory(
    spark: SparkSession, histories: list[History], tmp_path: Path
) -> None:
    expected = in_memory(histories)
    assert len(histories) >= 200
    for name in NAMES:
        assert {status for (_, of), (status, _) in expected.items() if of == name} >= {"holds", "violated"}
    report = on_spark(spark, write(histories, tmp_path))
    assert not differences(said(report), expected)
    assert report.events == sum(len(history.events) for history in histories)


def test_nothing_depends_on_cuts_partitions_or_files(
    spark: SparkSession, histories: list[History], tmp_path: Path
) -> None:
    random = Random(7)
    some = [*random.sample(histories[:-120], 8), *histories[-25:]]
    folder = tmp_path / "shuffled"
    for history in some:
        scatter(recut(history, random), folder, random)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before is not None
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        report = on_spark(spark, *sorted(folder.iterdir(), reverse=True))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert not differences(said(report), in_memory(some))


def scatter(history: History, folder: Path, random: Random) -> None:
    """One run in three files, its rows in any order."""
    whole = folder.parent / "whole.parquet"
    write_history(history, whole)
    table = pq.read_table(whole)
    table = table.take(random.sample(range(len(table)), len(table)))
    folder.mkdir(exist_ok=True)
    for part in range(3):
        rows = table.take(list(range(part, len(table), 3)))
        pq.write_table(rows, folder / f"{history.info.run}-{part}.parquet")


def test_deep_chains_of_undelivered_replacements(spark: SparkSession, tmp_path: Path) -> None:
    """Each of 300 messages names the one before; b delivers only the last, c all but the last."""
    members = (A, B, MemberId("c"))
    ids = [MessageId(A, seq) for seq in range(1, 301)]
    notes = [Enumeration(tuple(ids[seq - 2 : seq - 1])) for seq in range(1, 301)]
    sent = [
        Event(A, 0, 0, Kind.MULTICAST, "g", A, seq, 1, annotation=notes[seq - 1]) for seq in range(1, 301)
    ]
    events = [
        *sent,
        Event(A, 0, 0, Kind.DELIVER, "g", A, 1, 300),
        Event(B, 0, 0, Kind.DELIVER, "g", A, 300, 1),
        Event(members[2], 0, 0, Kind.DELIVER, "g", A, 1, 299),
    ]
    info = RunInfo("deep", "g", "s-rm", None, members, None, uniform=False, quiesced=True)
    history = renumbered(info, events)
    report = on_spark(spark, write([history], tmp_path))
    assert not differences(said(report), in_memory([history]))
    (verdict,) = [v for v in report.verdicts if v.property == "semantic_agreement"]
    assert verdict.detail == "c: (a,300) has neither this nor a replacement"
    assert verdict.sample[0].event == "a[299] at 0 ns: multicast"


# --- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write([small(5)], tmp_path / "runs")
    return tmp_path / "runs" / "small-5.parquet"


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table], to: Path | None = None) -> None:
    pq.write_table(change(pq.read_table(file)), to or file)


def relabelled(key: bytes, value: bytes) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata({**table.schema.metadata, key: value})


def other_info(table: pa.Table) -> pa.Table:
    info = table.schema.metadata[b"semcast.run"].replace(b'"uniform":true', b'"uniform":false')
    return relabelled(b"semcast.run", info)(table)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (relabelled(b"semcast.schema", b"99"), "schema version 99; this program reads version 1"),
        (lambda table: table.drop_columns(["level", "order"]), "missing columns: level, order"),
        (lambda table: table.replace_schema_metadata(None), "not a recorded history"),
        (lambda table: table.slice(0, 0), "run small-5 has no events"),
        (
            lambda table: table.set_column(0, table.schema.field(0), pa.array(["x"] * len(table))),
            "rows of run x",
        ),
    ],
)
def test_files_that_are_no_histories(file: Path, change: Callable[[pa.Table], pa.Table], error: str) -> None:
    rewrite(file, change)
    with pytest.raises(HistoryError, match=error):
        survey([file])


def test_files_that_are_damaged_or_not_there(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(HistoryError, match="damaged or cut off"):
        survey([file])
    with pytest.raises(HistoryError, match="no such file or folder"):
        survey([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(HistoryError, match=r"no \*.parquet files"):
        survey([tmp_path / "empty"])


def test_files_that_disagree_about_their_run(file: Path) -> None:
    rewrite(file, other_info, file.with_name("other.parquet"))
    with pytest.raises(HistoryError, match="describes run small-5 differently than"):
        survey([file.parent])


def changed_cell(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        values = table.column(name).to_pylist()
        values[row] = value
        return table.set_column(
            place, table.schema.field(place), pa.array(values, table.schema.field(place).type)
        )

    return change


def emptied_cell(name: str, row: int) -> Callable[[pa.Table], pa.Table]:
    """A recorder that does not keep to the schema, for the column may not be null."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        values = table.column(name).to_pylist()
        values[row] = None
        field = table.schema.field(place).with_nullable(True)
        return table.set_column(place, field, pa.array(values, field.type))

    return change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (changed_cell("kind", 2, "explode"), r"small-5.parquet: row 2: unknown kind explode"),
        (changed_cell("seq", 0, 0), "row 0: multicast of a message below 1"),
        (changed_cell("seq", 0, 1000), r"multicast of \(a,2\) after 1000: the numbers of a sender must grow"),
        (changed_cell("process", 0, "x"), "row 0: multicast by another than its sender"),
        (emptied_cell("at_ns", 1), "row 1: no at_ns"),
        (emptied_cell("group", 0), "row 0: no group"),
        (emptied_cell("bytes", 2), "row 2: no bytes"),
        (lambda table: table.slice(1), "events of a are not numbered 0, 1, 2"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "rows are missing or there twice"),
    ],
)
def test_rows_that_are_no_events(
    spark: SparkSession, file: Path, change: Callable[[pa.Table], pa.Table], error: str
) -> None:
    rewrite(file, change)
    with pytest.raises(HistoryError, match=error):
        on_spark(spark, file)


def test_missing_processes_are_an_error_unless_allowed(spark: SparkSession, tmp_path: Path) -> None:
    history = small(5)
    alone = History(history.info, [event for event in history.events if event.process != B])
    recorded = survey([write([alone], tmp_path)])
    with pytest.raises(HistoryError, match=r"run small-5: nothing was recorded of b; .*--allow-missing"):
        verify(spark, recorded, Options())
    report = verify(spark, recorded, Options(NAMES, allow_missing=True))
    assert not differences(said(report), in_memory([alone]))


def test_every_property_has_a_form_in_spark() -> None:
    assert set(KNOWN) == set(PROPERTIES)


# --- the command ----------------------------------------------------------------------------------


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["verify", *arguments])
    return run(args)


def test_the_command_names_what_is_violated(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write([small(seed) for seed in (1, 2, 3)], tmp_path / "runs")
    out = tmp_path / "out"
    assert command(str(folder), "--json", "--out", str(out), "--max-sample", "2") == 1
    found = json.loads(capsys.readouterr().out)
    expected = [verdict for history in read_histories(folder) for verdict in check(history)]
    told = [verdict for run in found["runs"] for verdict in run["verdicts"]]
    assert [(v["property"], v["status"], v["count"]) for v in told] == [
        (v.property, v.status.value, v.count) for v in expected
    ]
    assert all(len(v["offending"]) == min(v["count"], 2) for v in told)
    table = pq.read_table(out / "violations").to_pylist()
    assert sum(row["count"] * row["times"] for row in table) == sum(v.count for v in expected)


def test_the_command_is_content_with_a_sound_history(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write([simulate(draw(0, "s-rm")).history], tmp_path / "runs")
    assert command(str(folder), "--property", "integrity", "--property", "fifo_delivery") == 0
    assert "holds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        ([".", "--property", "colour"], "no such property: colour"),
        ([".", "--max-sample", "0"], "--max-sample must be at least 1"),
    ],
)
def test_the_command_refuses_in_one_line(arguments: list[str], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        command(*arguments)
