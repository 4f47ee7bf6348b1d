"""Traces are read from every format, with people's own columns; bad rows are found, counted and shown."""

import csv
import gzip
import io
import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from semcast.pipeline.profile.partial import Cut
from semcast.pipeline.profile.read import TRACE, Columns, Trace, check_rows, read_trace
from semcast.pipeline.profile.segments import Scan, rows, scan
from semcast.pipeline.profile.sources import TraceError, are_parquet

Message = tuple[int, float, str, int, str]

MESSAGES: list[Message] = [
    (0, 0.5, "a", 10, "update"),
    (1, 0.5, 'say "b", twice', 20, "update"),
    (2, 1.25, "", 30, "event"),
    (3, 2.0, "a", 10, "remove"),
    (4, 2.0, "ünï", 0, "create"),
    (5, 1e9, "a", 10, "update"),
]
NAMES = ("seq", "ts", "key", "bytes", "kind")


def csv_of(
    messages: Iterable[tuple[object, ...]], names: tuple[str, ...] = NAMES, delimiter: str = ","
) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(messages)
    return text.getvalue()


def json_of(messages: list[Message]) -> str:
    return "".join(json.dumps(dict(zip(NAMES, message, strict=True))) + "\n" for message in messages)


def write_parquet(path: Path, messages: list[Message]) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, zip(*messages, strict=True), strict=True))), path)


def write(path: Path, text: str) -> str:
    data = text.encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@dataclass
class Checked:
    """A trace, and what is known of it after every row was checked."""

    trace: Trace
    found: Scan

    @property
    def rows(self) -> DataFrame:
        return rows(self.trace, self.found)

    def facts(self) -> list[tuple[object, ...]]:
        return [(each.stream, each.kinds, each.bytes, each.began, each.ended) for each in self.found.streams]


def checked(trace: Trace) -> Checked:
    with ExitStack() as kept:
        return Checked(trace, scan(trace, Cut(), kept))


def read(
    spark: SparkSession, named: list[str], columns: Columns | None = None, *, max_bad: int = 0
) -> Checked:
    return checked(read_trace(spark, named, columns, max_bad=max_bad))


def rows_of(trace: Checked) -> list[tuple[object, ...]]:
    return [tuple(row) for row in trace.rows.orderBy("stream", "seq").collect()]


def bad_of(trace: Checked) -> list[str]:
    return [f"{Path(str(row.file)).name} {row.line}: {row.problem}" for row in trace.found.bad.sample]


# Formats


def test_every_format_gives_the_same_rows(interpreted: SparkSession, tmp_path: Path) -> None:
    folder, parts = tmp_path / "folder", tmp_path / "parts.parquet"
    folder.mkdir()
    parts.mkdir()
    write(folder / "plain.csv", "\ufeff" + csv_of(MESSAGES))
    write(folder / "dos [1] é.csv", csv_of(MESSAGES).replace("\n", "\r\n"))
    write(folder / "packed.csv.gz", csv_of(MESSAGES))
    write(folder / "tabs.tsv", csv_of(MESSAGES, delimiter="\t"))
    write(folder / "lines.jsonl", json_of(MESSAGES))
    write(folder / "packed_lines.ndjson.gz", json_of(MESSAGES))
    write_parquet(folder / "columns.parquet", MESSAGES)
    write(folder / "profile.json", '{"not": "a trace"}')
    write(folder / "README.md", "hello")
    write_parquet(parts / "part-00000.parquet", MESSAGES[3:])
    write_parquet(parts / "part-00001.parquet", MESSAGES[:3])
    write(parts / "_SUCCESS", "")

    trace = read(interpreted, [str(folder), str(parts)])

    names = ["columns", "dos [1] é", "lines", "packed", "packed_lines", "parts", "plain", "tabs"]
    assert [facts.stream for facts in trace.found.streams] == names
    rows = rows_of(trace)
    for name in names:
        assert [row[1:] for row in rows if row[0] == name] == MESSAGES, name
    assert trace.found.dense
    plain = trace.found.streams[-2]
    assert plain.kinds == {"create": 1, "event": 1, "remove": 1, "update": 3}
    assert (plain.bytes, plain.began, plain.ended) == (80, 0.5, 1e9)


def test_what_python_reads_in_place_is_known_before_spark_starts(tmp_path: Path) -> None:
    """By names: then Java is started for little work."""
    (tmp_path / "day").mkdir()
    for name in ("one.parquet", "_SUCCESS", "day/two.PARQUET"):
        (tmp_path / name).touch()
    assert are_parquet([str(tmp_path)])
    assert not are_parquet([str(tmp_path), "s3a://bucket/three.parquet"])
    (tmp_path / "day" / "three.csv").touch()
    assert not are_parquet([f"file://{tmp_path}"])


def test_the_schema(interpreted: SparkSession) -> None:
    rows = interpreted.createDataFrame([("s", 0, 0.0, "a", 1, "update")], TRACE)
    trace = checked(check_rows(rows))
    assertDataFrameEqual(trace.rows, rows)
    assert [(field.name, field.dataType) for field in trace.rows.schema] == [
        (field.name, field.dataType) for field in TRACE
    ]


def test_own_names_and_defaults(interpreted: SparkSession, tmp_path: Path) -> None:
    """No seq: the order in the file; no stream: its name; no kind: by key; no bytes: 0."""
    path = write(
        tmp_path / "feed.csv",
        "symbol,t,other\nIBM,2024-01-01T00:00:00Z,x\n\n,2024-01-01 00:00:01.5,y\nIBM,1704067202,z\n",
    )
    trace = read(interpreted, [path], Columns(key="symbol", ts="t"))
    rows = rows_of(trace)
    assert [row[2:] for row in rows] == [
        (1704067200.0, "IBM", 0, "update"),
        (1704067201.5, "", 0, "event"),
        (1704067202.0, "IBM", 0, "update"),
    ]
    assert {row[0] for row in rows} == {"feed"}
    assert not trace.found.dense  # the blank line left a gap


def test_columns_of_parquet_may_have_other_types(interpreted: SparkSession, tmp_path: Path) -> None:
    moment = pa.array([1_500_000, 2_000_000], pa.timestamp("us"))
    table = pa.table({"n": [0.0, 1.0], "when": moment, "id": [7, 8], "lane": pa.array([1, 1], pa.int16())})
    pq.write_table(table, tmp_path / "other.parquet")
    trace = read(
        interpreted, [str(tmp_path / "other.parquet")], Columns(stream="lane", seq="n", ts="when", key="id")
    )
    assert rows_of(trace) == [("1", 0, 1.5, "7", 0, "update"), ("1", 1, 2.0, "8", 0, "update")]


def test_lines_are_counted_over_the_blocks_of_a_file(interpreted: SparkSession, tmp_path: Path) -> None:
    """A large file is read in pieces by several tasks; rows still know their line."""
    lines = [(n / 10, f"k{n % 7}") for n in range(500)]
    lines[321] = (-1.0, "bad")
    text = csv_of(lines, ("ts", "key")).replace("-1.0,bad", "soon,bad")
    paths = [write(tmp_path / name, text) for name in ("one.csv", "two.csv")]
    interpreted.conf.set("spark.sql.files.maxPartitionBytes", "700")
    try:
        assert interpreted.read.text(paths).rdd.getNumPartitions() > 10
        trace = read(interpreted, paths, max_bad=2)
        found = rows_of(trace)
    finally:
        interpreted.conf.unset("spark.sql.files.maxPartitionBytes")
    assert bad_of(trace) == ["one.csv 323: not a time: soon", "two.csv 323: not a time: soon"]
    for name in ("one", "two"):
        good = [row for row in found if row[0] == name]
        assert [row[2:4] for row in good] == [line for line in lines if line[1] != "bad"]


# Bad rows

BAD = """\
stream,seq,ts,key,bytes,kind
a,0,1.5,k,3,update

a,1,x,k,3,update
a,-1,2,k,3,update
"a,2,3
a,2,2,k,,
a,3,2
,4,2,k,1,update
a,5,2,,1,update
a,6,3,k,1,boo
a,7,3,q,1.5,update
a,2,8,x,9,event
a,8,inf,g,9,event
a,9,,g,9,event
a,,9,g,9,event
"""
PROBLEMS = {
    4: "not a time: x",
    5: "seq is negative: -1",
    6: "cannot be parsed",
    8: "cannot be parsed",
    9: "no stream",
    10: "an update without a key",
    11: "unknown kind: boo",
    12: "bytes is not a whole number: 1.5",
    14: "not a time: inf",
    15: "no time",
    16: "no seq",
}


def test_bad_rows_are_shown_with_their_line(interpreted: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", BAD)
    with pytest.raises(TraceError) as refused:
        read(interpreted, [path])
    shown = [f"  {path}: line {line}: {problem}" for line, problem in PROBLEMS.items()][:10]
    expected = ["11 bad rows, more than the 0 allowed (--max-bad):", *shown, "  and 1 more"]
    assert str(refused.value).splitlines() == expected


def test_bad_rows_are_left_out_if_so_many_are_allowed(interpreted: SparkSession, tmp_path: Path) -> None:
    """The twelfth is the second row with seq 2: the first of them, in the file, counts."""
    path = write(tmp_path / "bad.csv", BAD)
    with pytest.raises(TraceError, match=r"12 bad rows, more than the 11 allowed"):
        read(interpreted, [path], max_bad=11)
    trace = read(interpreted, [path], max_bad=12)
    assert trace.found.bad.count == 12
    assert rows_of(trace) == [("a", 0, 1.5, "k", 3, "update"), ("a", 2, 2.0, "k", 0, "update")]


def test_bad_rows_of_other_formats(interpreted: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path / "lines.jsonl",
        json_of(MESSAGES) + '{"seq": 6, "ts": 3\n[1]\n{"seq": 6, "ts": 7, "key": "z"}\n',
    )
    write_parquet(
        tmp_path / "columns.parquet", [*MESSAGES, (6, 2.0, "a", -5, "update"), (7, 1.0, "b", 0, "?")]
    )
    trace = read(interpreted, [str(tmp_path)], max_bad=4)
    assert bad_of(trace) == [
        "columns.parquet 7: bytes is negative: -5",
        "columns.parquet 8: unknown kind: ?",
        "lines.jsonl 7: cannot be parsed",
        "lines.jsonl 8: cannot be parsed",
    ]
    assert [facts.messages for facts in trace.found.streams] == [6, 7]


def test_fields_of_json_that_come_late_count(interpreted: SparkSession, tmp_path: Path) -> None:
    """The names of fields are taken from the first thousand rows."""
    plain = "".join(f'{{"ts": {at}, "key": "k"}}\n' for at in range(1200))
    late = '{"ts": 1200, "key": "k", "kind": "remove", "bytes": 7}\n'
    path = write(tmp_path / "late.jsonl", plain + late)
    assert read(interpreted, [path]).facts() == [("late", {"update": 1200, "remove": 1}, 7, 0.0, 1200.0)]
    path = write(tmp_path / "late.jsonl", plain + '{"ts": 1200, "key": "k", "stream": "other"}\n')
    with pytest.raises(TraceError, match=r"late.jsonl: line 1201: cannot be parsed"):
        read(interpreted, [path])


def test_duplicate_numbers_are_found_where_counting_does_not_show_them(
    interpreted: SparkSession, tmp_path: Path
) -> None:
    """0 1 1 3: as many as from 0 to 3. And the same number in two streams is no duplicate."""
    rows = [("a", n, 0.0, key, 0, "update") for n, key in ((3, "w"), (1, "x"), (0, "y"), (1, "z"))]
    rows += [("b", n, 0.0, "k", 0, "update") for n in (2, 1, 0)]
    path = write(tmp_path / "copies.csv", csv_of(rows, ("stream", *NAMES)))
    with pytest.raises(
        TraceError, match=r"1 bad row, .*\n.*copies.csv: line 5: seq 1 is in stream a already"
    ):
        read(interpreted, [path])
    trace = read(interpreted, [path], max_bad=1)
    assert [row[3] for row in rows_of(trace)][:3] == ["y", "x", "w"]


# Refusals


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("empty.csv", "", Columns(), r"empty.csv is empty"),
        ("header.csv", "ts,key\n\n\n", Columns(), r"header.csv holds no rows"),
        ("blank.jsonl", "\n", Columns(), r"blank.jsonl holds no rows"),
        ("what.txt", "x", Columns(), r"what.txt: what is it\? Known are .csv"),
        ("none.csv", "ts,symbol\n0,a\n", Columns(), r"no column 'key' for the key; there are ts, symbol"),
        ("time.csv", "t,key\n0,a\n", Columns(), r"no column 'ts' for the time; .*--time"),
        ("named.csv", "ts,key\n0,a\n", Columns(bytes="size"), r"no column 'size' for the bytes"),
        ("twice.csv", "ts,key,ts\n0,a,0\n", Columns(), r"line 1: column 'ts' is there twice"),
        ("all.csv", "ts,key\nx,a\n", Columns(), r"1 bad row"),
        ("torn.parquet", "PAR1", Columns(), r"torn.parquet: cannot be read"),
    ],
)
def test_refusals(
    interpreted: SparkSession, tmp_path: Path, name: str, text: str, columns: Columns, message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        read(interpreted, [write(tmp_path / name, text)], columns)


def test_more_refusals(interpreted: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "trace.csv", csv_of(MESSAGES))
    torn = tmp_path / "torn.csv.gz"
    torn.write_bytes(gzip.compress((csv_of(MESSAGES) * 2000).encode())[:-100])
    pq.write_table(
        pa.table({"ts": pa.array([], pa.float64()), "key": pa.array([], pa.string())}),
        tmp_path / "none.parquet",
    )
    (tmp_path / "folder").mkdir()
    for named, message in (
        ([], "no trace was named"),
        ([str(tmp_path / "nowhere.csv")], "nowhere.csv: no such file or folder"),
        ([str(tmp_path / "folder")], "folder: no trace in this folder"),
        ([path, path], "trace.csv is named twice"),
        ([str(torn)], "torn.csv.gz"),
        ([str(tmp_path / "none.parquet")], "none.parquet holds no rows"),
    ):
        with pytest.raises(TraceError, match=message):
            read(interpreted, named)
    with pytest.raises(TraceError, match=r"no rows but bad ones: .*line 2: not a time: x"):
        read(interpreted, [write(tmp_path / "all.csv", "ts,key\nx,a\n")], max_bad=1)
    with pytest.raises(TraceError, match=r"^no rows$"):
        checked(check_rows(interpreted.createDataFrame([], TRACE)))


def test_rows_in_any_order_are_the_same_trace(interpreted: SparkSession, tmp_path: Path) -> None:
    shuffled = MESSAGES[:]
    Random(1).shuffle(shuffled)
    sorted_, mixed = (
        read(interpreted, [write(tmp_path / f"{name}" / "t.csv", csv_of(rows))])
        for name, rows in (("sorted", MESSAGES), ("mixed", shuffled))
    )
    assert mixed.facts() == sorted_.facts()
    assert mixed.found.dense
