"""Messages of a log as rows: Arrow batches made from columns, without an object for each message."""

from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

import numpy as np
import pyarrow as pa

from semcast.core.ids import Nanos
from semcast.group.logpages import LogRun
from semcast.patterns.repeats import KEY_BYTES, NO_PARTITION, key_problem

SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("sender", pa.string()),
        ("incarnation", pa.int64()),
        ("seq", pa.int64()),
        ("item", pa.string()),
        ("payload", pa.binary()),
    ]
)
DDL = (
    "position bigint, at timestamp, sender string, incarnation bigint, seq bigint, item string,"
    " payload binary"
)

KEYED = pa.schema(
    [
        *SCHEMA,
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("partition", pa.int64()),
        ("row", pa.int64()),
    ]
)
"""With the key of each message, which is taken off its payload; null where there is none."""
_KEYED_DDL = ", query string, batch bigint, partition bigint, row bigint"
_MICRO = 1000
_KEY = np.dtype([("mark", "V4"), ("query", "V16"), ("batch", ">i8"), ("partition", ">u4"), ("row", ">i8")])
"""A key, as `put_key` writes it."""
assert _KEY.itemsize == KEY_BYTES


def ddl(*, keys: bool = False) -> str:
    """The columns, as Spark takes them."""
    return DDL + (_KEYED_DDL if keys else "")


def rows_of(runs: Sequence[LogRun], mode: Literal["log", "latest"] = "log") -> pa.RecordBatch:
    """All messages of some runs, in the order of positions.

    With `latest`, without those that a later one of the same sender about the same item replaces.
    """
    counts = [len(run.payloads) for run in runs]
    offsets = np.concatenate([np.fromiter(run.offsets, np.int64, len(run.payloads)) for run in runs])
    senders = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(runs), dtype=np.int32), counts), pa.array([run.sender.name for run in runs])
    ).cast(pa.string())
    items = [item for run in runs for item in (run.items or [None] * len(run.payloads))]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(offsets + np.repeat([run.position for run in runs], counts)),
            _times(np.repeat([run.at // _MICRO for run in runs], counts)),
            senders,
            pa.array(np.repeat(np.array([run.sender.incarnation for run in runs], np.int64), counts)),
            pa.array(offsets + np.repeat([run.seq for run in runs], counts)),
            pa.array(items, pa.string()),
            pa.array([payload for run in runs for payload in run.payloads], pa.binary()),
        ],
        schema=SCHEMA,
    )
    if mode == "latest":
        who = [run.sender for run, count in zip(runs, counts, strict=True) for _ in range(count)]
        return batch.take(pa.array(_latest(zip(who, items, strict=True))))
    return batch


def _times(micros: np.ndarray) -> pa.Array:
    return pa.array(micros.astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))


def _latest(keys: Iterable[tuple[object, str | None]]) -> list[int]:
    """The places of rows that nothing after them replaces, in order. What is about no item always stays."""
    last: dict[tuple[object, str | None], int] = {}
    events: list[int] = []
    for place, key in enumerate(keys):
        if key[1] is None:
            events.append(place)
        else:
            last[key] = place
    return sorted([*events, *last.values()])


def with_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with the keys of payloads in columns. A payload without a key stays whole."""
    payloads: list[bytes] = batch.column("payload").to_pylist()
    keyed = np.fromiter((not key_problem(payload) for payload in payloads), bool, len(payloads))
    keys = np.frombuffer(
        b"".join([payload[:KEY_BYTES] for payload, has in zip(payloads, keyed, strict=True) if has]), _KEY
    )
    rests = [payload[KEY_BYTES:] if has else payload for payload, has in zip(payloads, keyed, strict=True)]
    columns = dict(zip(SCHEMA.names, batch.columns, strict=True))
    columns["payload"] = pa.array(rests, pa.binary())
    places = pa.array(np.cumsum(keyed) - 1, mask=~keyed)
    columns["query"] = _queries(keys["query"]).take(places)
    for name in ("batch", "partition", "row"):
        values = keys[name].astype(np.int64)
        none = values == NO_PARTITION if name == "partition" else None
        columns[name] = pa.array(values, mask=none).take(places)
    return pa.RecordBatch.from_pydict(columns, schema=KEYED)


def _queries(which: np.ndarray) -> pa.Array:
    """As text, made once for rows that follow each other and have the same."""
    halves = which.copy().view(np.uint64).reshape(-1, 2)
    begins = np.flatnonzero(np.any(halves != np.roll(halves, 1, axis=0), axis=1))
    begins = np.union1d(begins, np.arange(min(1, len(which))))
    names = pa.array([str(UUID(bytes=which[at].tobytes())) for at in begins], pa.string())
    counts = np.diff(np.append(begins, len(which)))
    return names.take(pa.array(np.repeat(np.arange(len(begins)), counts)))


def heartbeat_row(position: int, at: Nanos, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """A row without a message: nothing that comes later is older than this time."""
    columns = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
    columns["position"] = pa.array([position])
    columns["at"] = _times(np.array([at // _MICRO]))
    return pa.RecordBatch.from_pydict(columns, schema=schema)
