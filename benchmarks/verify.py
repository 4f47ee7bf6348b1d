"""Verify: long histories on Spark, with views and without, against counting their rows.

`SEMCAST_BENCH_DELIVERIES` says how long they are, `SEMCAST_BENCH_LARGE` how long those of the cases with
targets are besides. They are written in pieces, so that 100 million deliveries take no more memory than one.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.cpu import load, now, since
from benchmarks.rows import Row, against
from semcast.core import MemberId
from semcast.history import SCHEMA_VERSION, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.schema import CAUSAL, RUN_KEY, TOTAL, VERSION_KEY
from semcast.pipeline.session import spark_session
from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.events import events_of, read_rows
from semcast.specs import Status

_Ints = npt.NDArray[np.int64]

DELIVERIES = int(os.environ.get("SEMCAST_BENCH_DELIVERIES", "10_000_000"))
LARGE = int(os.environ.get("SEMCAST_BENCH_LARGE", "0"))
PROCESSES = tuple(MemberId(name) for name in "abcde")
PIECE = 500_000
SKIPPED = 10
"""Of so many messages all but the first process skip one, which the next one replaces."""

AGREED = ("integrity", "fifo_delivery", "semantic_agreement")
IN_VIEWS = ("integrity", "fifo_delivery", "total_order", "vs_view_synchrony")
ALSO_CAUSAL = (*IN_VIEWS, "causal_delivery")
BY_VECTORS = ("integrity", "fifo_delivery", "vs_view_synchrony", "vector_certificate", "causal_delivery")


def run() -> list[Row]:
    """All rows."""
    spark = spark_session("semcast bench", rows_hint=LARGE or DELIVERIES)
    rows = [
        *_measured(spark, DELIVERIES, "plain", {"reliable": (AGREED, 0)}),
        *_measured(spark, DELIVERIES, "with purged messages", {"reliable": (AGREED, 0)}, items=True),
    ]
    for deliveries in (DELIVERIES, LARGE):
        if deliveries:
            rows += _in_views(spark, deliveries)
    return rows


def _in_views(spark: SparkSession, deliveries: int) -> list[Row]:
    judged = {
        "integrity, FIFO, total order, view synchrony": (IN_VIEWS, 100),
        "and causal order": (ALSO_CAUSAL, 160),
    }
    timed = {"integrity, FIFO, view synchrony, causal order": (BY_VECTORS, 160)}
    return [
        *_measured(spark, deliveries, "in a view", judged, views=True),
        *_measured(spark, deliveries, "with vector times", timed, views=True, vectors=True),
    ]


def _measured(
    spark: SparkSession,
    deliveries: int,
    name: str,
    judged: Mapping[str, tuple[Sequence[str], int]],
    *,
    items: bool = False,
    views: bool = False,
    vectors: bool = False,
) -> list[Row]:
    """Of each case its properties, and how many seconds 100 million deliveries may take, 0 for any."""
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        generate(spark, Path(folder), deliveries, items=items, views=views, vectors=vectors)
        recorded = survey([Path(folder)])
        began = now()
        events_of(read_rows(spark, recorded.files)).groupBy("process", "kind").max("last").collect()
        floor = since(began)
        rows = []
        for what, (properties, most) in judged.items():
            began, busy = now(), load()
            report = verify(spark, recorded, Options(properties))
            taken = since(began)
            assert all(verdict.status is Status.HOLDS for verdict in report.verdicts)
            title = f"verify {deliveries // 1_000_000} M deliveries, {name}: {what} / one pass over the rows"
            target = f"<= {most * deliveries / 100_000_000:.0f} s" if most else ""
            rows.append(against(f"{title}, {busy}", taken.wall, "s", floor.wall, target))
            rows.append(against(title, taken.cpu, "CPU s", floor.cpu, ""))
    return rows


def generate(
    spark: SparkSession,
    folder: Path,
    deliveries: int,
    *,
    items: bool = False,
    views: bool = False,
    vectors: bool = False,
) -> None:
    """Write a sound run: all multicast, all deliver everything in turn, one file for each task."""
    stack, order = "vsync" if views else "s-rm", CAUSAL if vectors else TOTAL
    info = RunInfo.one("bench", "g", stack, None, PROCESSES, None, uniform=False, quiesced=True, order=order)
    metadata = {VERSION_KEY: str(SCHEMA_VERSION).encode(), RUN_KEY: msgspec.json.encode(info)}
    messages = deliveries // len(PROCESSES) ** 2
    rounds = max(1, PIECE // len(PROCESSES))
    tasks = [
        (process, begin, min(begin + rounds, messages))
        for process in range(len(PROCESSES))
        for begin in range(0, messages, rounds)
    ]

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.to_pylist():
                place = task["process"], task["begin"], task["end"]
                table = _piece(*place, items=items, views=views, vectors=vectors)
                path = folder / f"{task['process']}-{task['begin']:012}.parquet"
                pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
            yield batch

    schema = "process int, begin long, end long"
    spark.createDataFrame(tasks, schema).repartition(2).mapInArrow(write, schema).count()


def _piece(process: int, begin: int, end: int, *, items: bool, views: bool, vectors: bool) -> pa.Table:
    """A process in rounds begin..end: in each it multicasts one message and delivers one of each sender.

    With views, one comes before everything.
    """
    width = len(PROCESSES) + 1
    rounds = np.repeat(np.arange(begin, end), width)
    place = np.tile(np.arange(width), end - begin)
    multicast = place == 0
    skips = items and process > 0
    kept = multicast | (rounds % SKIPPED != 0) if skips else np.ones(len(rounds), dtype=np.bool_)
    before = begin * width - (len(PROCESSES) * -(-begin // SKIPPED) if skips else 0)
    table = _table(process, before + views, rounds[kept], place[kept], items=items, views=views)
    if vectors:
        sender = np.where(place == 0, process, place - 1)[kept]
        table = table.set_column(SCHEMA.names.index("vector"), "vector", _vectors(sender, rounds[kept]))
        table = table.set_column(SCHEMA.names.index("order"), "order", pa.nulls(len(table), pa.int64()))
    return pa.concat_tables([_view(process), table]) if views and not begin else table


def _view(process: int) -> pa.Table:
    members = [{"name": member.name, "incarnation": 0} for member in PROCESSES]
    row = {"run": "bench", "process": PROCESSES[process].name, "kind": "view", "group": "g", "view": 1}
    numbers = dict.fromkeys(
        ("incarnation", "index", "at_ns", "sender_incarnation", "seq", "count", "bytes"), 0
    )
    return pa.Table.from_pylist([{**row, **numbers, "members": members}], schema=SCHEMA)


def _table(process: int, before: int, rounds: _Ints, place: _Ints, *, items: bool, views: bool) -> pa.Table:
    rows = len(rounds)
    multicast = place == 0
    positions = pa.array(rounds * len(PROCESSES) + place, mask=multicast)
    names = np.array([member.name for member in PROCESSES])
    ones = np.ones(rows, dtype=np.int64)
    nothing = pa.nulls(rows)
    columns = {
        "run": ["bench"] * rows,
        "process": [names[process]] * rows,
        "incarnation": 0 * ones,
        "index": before + np.arange(rows),
        "at_ns": rounds * 1000 + place,
        "kind": np.where(multicast, "multicast", "deliver"),
        "group": ["g"] * rows,
        "sender": names[np.where(multicast, process, place - 1)],
        "sender_incarnation": 0 * ones,
        "seq": rounds + 1,
        "count": ones,
        "annotation": _items(rounds, multicast) if items else nothing.cast(SCHEMA.field("annotation").type),
        "bytes": 100 * ones,
        "crc": crc32(bytes(100)) * ones,
        "order": positions if views else nothing,
        "view": pa.array(ones, mask=~multicast) if views else nothing,
    }
    arrays = [columns.get(field.name, nothing) for field in SCHEMA]
    return pa.table(
        [
            pa.array(array, field.type) if not isinstance(array, pa.Array) else array.cast(field.type)
            for array, field in zip(arrays, SCHEMA, strict=True)
        ],
        schema=SCHEMA,
    )


def _items(rounds: _Ints, multicast: npt.NDArray[np.bool_]) -> pa.Array:
    """Two messages of a sender in a row are about the same item."""
    kind = SCHEMA.field("annotation").type
    rows = len(rounds)
    given = {"kind": pa.array(["item"] * rows), "item": pa.array((rounds // 2).astype(str))}
    fields = [given.get(field.name, pa.nulls(rows, field.type)) for field in kind]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pa.array(~multicast))


def _vectors(sender: _Ints, rounds: _Ints) -> pa.Array:
    """Before it multicasts, a process has delivered all messages of the rounds before, one of each member."""
    kind = SCHEMA.field("vector").type
    others = np.array([[r for r in range(len(PROCESSES)) if r != s] for s in range(len(PROCESSES))])
    changed = rounds > 0
    offsets = np.concatenate(([0], np.cumsum(np.where(changed, others.shape[1], 0))))
    rank = pa.array(others[sender[changed]].ravel(), kind.value_type.field("rank").type)
    seq = pa.array(np.repeat(rounds[changed], others.shape[1]))
    changes = pa.StructArray.from_arrays([rank, seq], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), changes, type=kind)
