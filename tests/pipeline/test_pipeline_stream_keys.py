"""Rows that say which they are: members skip those that come twice, and Spark has the keys in columns."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk, stream
from tests.pipeline.test_pipeline_stream_sink import Task, publish

from semcast import Message, Repeats, RowKey, blocking, put_key, split_key
from semcast.group.errors import ConfigurationError
from semcast.group.logclient import LogError
from semcast.patterns.repeats import MAX_PARTITION, MAX_ROW
from semcast.pipeline.stream.options import SinkOptions, Where, sink_options, source_options, where
from semcast.pipeline.stream.rows import KEYED, SCHEMA, ddl, heartbeat_row, with_keys
from semcast.pipeline.stream.sink import LogStreamWriter, check_columns

PATIENCE = 60.0
QUERY = UUID(int=5)


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path / "out", *FORGETS_NOTHING) as made:
        yield made


def given(members: blocking.BlockingSubscription, count: int) -> list[Message]:
    """The next so many messages."""
    found: list[Message] = []
    for batch in members.batches(timeout=PATIENCE):
        found += batch
        if len(found) >= count:
            break
    return found


def test_members_skip_a_batch_that_came_twice(
    streaming: SparkSession, prices: Desk, out: Desk, tmp_path: Path
) -> None:
    """The logger's disk is lost, with its keys; Spark does not know that its last batch was published."""
    prices.events(0, 900)
    frame = stream(streaming, prices.group, maxRowsPerTrigger=450).select("payload")
    checkpoint = tmp_path / "checkpoint"
    with blocking.subscribe(out.group, start="all") as members:
        publish(frame, out, checkpoint, keys="true")
        messages = given(members, 900)
        out.kill()
        shutil.rmtree(out.folder)
        (checkpoint / "commits" / "1").unlink()
        (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
        out.start()
        publish(frame, out, checkpoint, keys="true")
        messages += given(members, 450)
    assert len({message.sender for message in messages}) == 2, "a logger that starts again is another sender"
    every = Counter(split_key(message.payload)[1] for message in messages)
    assert sum(every.values()) == 1350, "members get the last batch twice"
    repeats = Repeats()
    kept = [message for message in messages if not repeats.repeated(message)]
    assert Counter(split_key(message.payload)[1] for message in kept) == Counter(
        b"%d" % number for number in range(900)
    )
    assert (repeats.stats.repeated, repeats.stats.without_key) == (450, 0)
    assert {key.batch for key, _ in map(split_key, (each.payload for each in kept)) if key} == {0, 1}


def test_a_table_with_keys_is_read_back(streaming: SparkSession, out: Desk) -> None:
    """With a query and a batch of the program's, a table is logged once, however often it is written."""
    rows = streaming.createDataFrame([("x", "1", 7), (None, "2", 9)], "item string, payload string, row int")
    writer = rows.coalesce(1).write.format("semcast").mode("append").option("keys", "true")
    writer = writer.option("query", str(QUERY)).option("batch", 3)
    for _ in range(2):
        writer.save(out.group)
    expected = [put_key(RowKey(QUERY, 3, 7), b"1"), put_key(RowKey(QUERY, 3, 9), b"2")]
    assert out.logged() == expected
    out.events(5, 1)
    plain = rows.select("payload").coalesce(1)
    plain.write.format("semcast").mode("append").option("keys", "true").save(out.group)
    found = streaming.read.format("semcast").option("keys", "true").load(out.group).orderBy("position")
    told = [
        (bytes(row.payload), row.item, row.query, row.batch, row.partition, row.row)
        for row in found.collect()
    ]
    other = told[3][2]
    assert told == [
        (b"1", "x", str(QUERY), 3, None, 7),
        (b"2", None, str(QUERY), 3, None, 9),
        (b"5", None, None, None, None, None),
        (b"1", None, other, 0, 0, 0),
        (b"2", None, other, 0, 0, 1),
    ]
    assert UUID(other) != QUERY
    whole = streaming.read.format("semcast").load(out.group).orderBy("position").collect()
    assert [bytes(row.payload) for row in whole[:2]] == expected, (
        "without the option they are left as they are"
    )
    twice = streaming.createDataFrame([("1", 7), ("2", 7)], "payload string, row bigint").coalesce(1)
    with pytest.raises(PySparkException, match="two rows have the number 7"):
        twice.write.format("semcast").mode("append").option("keys", "true").save(out.group)


def staged(
    patch: pytest.MonkeyPatch, query: str | None, batch: str | None, *rows: dict[str, pa.Array]
) -> list[bytes]:
    """What a task of partition 4 gives to its logger."""
    given: list[bytes] = []

    class Log:
        loggers = ("log1",)

        def stage(self, _stage: str, payloads: list[bytes], _items: object, first: int) -> int:
            given.extend(payloads)
            return first + 1

    task = Task(4, query)
    task.said["streaming.sql.batchId"] = batch
    patch.setattr(TaskContext, "get", lambda: task)
    patch.setattr("semcast.pipeline.stream.sink.connection", lambda _where: Log())
    patch.setattr("semcast.pipeline.stream.sink.identity", lambda _log: "log1#1")
    writer = LogStreamWriter(Where(group="g"), SinkOptions(keys=True))
    writer.write(iter([pa.RecordBatch.from_pydict(each) for each in rows]))
    return given


def test_rows_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their partition, over all its pieces; or as the program says."""
    query = uuid4()
    first, second = {"payload": pa.array(["a", "b"])}, {"payload": pa.array(["c"])}
    assert staged(monkeypatch, str(query), "12", first, second) == [
        put_key(RowKey(query, 12, row, 4), payload) for row, payload in enumerate((b"a", b"b", b"c"))
    ]
    numbered = [each | {"row": pa.array(rows)} for each, rows in ((first, [5, 3]), (second, [9]))]
    assert staged(monkeypatch, str(query), "12", *numbered) == [
        put_key(RowKey(query, 12, row), payload) for row, payload in ((5, b"a"), (3, b"b"), (9, b"c"))
    ]
    for rows, why in (
        ([5, None], "1 rows have no number"),
        ([5, -1], "row -1: too large for a key, or less than 0"),
        ([3, 3], "two rows have the number 3"),
    ):
        with pytest.raises(ValueError, match=why):
            staged(monkeypatch, str(query), "12", first | {"row": pa.array(rows, pa.int64())})
    with pytest.raises(ValueError, match="two rows have the number 5"):
        staged(monkeypatch, str(query), "12", numbered[0], second | {"row": pa.array([5])})
    for unknown in ((None, "12"), (str(query), None)):
        with pytest.raises(LogError, match="which query and batch this is"):
            staged(monkeypatch, *unknown, first)


def unkeyed(*payloads: bytes) -> pa.RecordBatch:
    """Rows as they are read."""
    columns = {field.name: pa.nulls(len(payloads), field.type) for field in SCHEMA}
    columns["payload"] = pa.array(payloads, pa.binary())
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


row_keys = st.builds(
    RowKey,
    st.sampled_from([UUID(int=1), UUID(int=1 << 100), UUID(int=(1 << 128) - 1)]),
    st.integers(0, MAX_ROW),
    st.integers(0, MAX_ROW),
    st.none() | st.integers(0, MAX_PARTITION),
)
pieces = st.binary(max_size=60)
either = pieces | pieces.map(lambda rest: b"\x93sr\x01" + rest) | st.builds(put_key, row_keys, pieces)


@drawn(st.lists(either, max_size=20))
def test_columns_say_what_split_key_says(payloads: list[bytes]) -> None:
    """Whatever the payloads are, also such as look like keys."""
    found = with_keys(unkeyed(*payloads))
    assert found.schema == KEYED
    for payload, row in zip(payloads, found.to_pylist(), strict=True):
        key, rest = split_key(payload)
        assert row["payload"] == rest
        told = (row["query"], row["batch"], row["partition"], row["row"])
        assert told == ((None,) * 4 if key is None else (str(key.query), key.batch, key.partition, key.row))


def test_options_of_keys() -> None:
    named = {"keys": "TRUE", "Query": str(QUERY), "batch": "3"}
    assert sink_options(named) == SinkOptions(keys=True, query=QUERY, batch=3)
    assert sink_options({}) == SinkOptions()
    assert source_options({"keys": "true"}).keys
    where(named | {"path": "g"}, "table")
    for options, why in (
        ({"keys": "yes"}, "keys = 'yes': there are true, false"),
        ({"query": str(QUERY)}, "query and batch belong together"),
        ({"batch": "1"}, "query and batch belong together"),
        ({"query": "nightly", "batch": "1"}, "query = 'nightly': a UUID is wanted"),
        ({"query": str(QUERY), "batch": "-1"}, "batch = '-1': a number of 0 or more"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            sink_options(options)
    with pytest.raises(ConfigurationError, match="no such option: batch"):
        where({"path": "g", "batch": "1"}, "stream")
    keyed = StructType().add("payload", BinaryType()).add("row", LongType())
    check_columns(keyed, SinkOptions(keys=True))
    with pytest.raises(ConfigurationError, match="a column row needs the option keys"):
        check_columns(keyed, SinkOptions())
    with pytest.raises(ConfigurationError, match=r"row \(bigint\), and no others"):
        check_columns(
            StructType().add("payload", BinaryType()).add("row", StringType()), SinkOptions(keys=True)
        )
    assert [each.split()[0] for each in ddl(keys=True).split(", ")] == KEYED.names
    assert heartbeat_row(12, 9000, KEYED).schema == KEYED
