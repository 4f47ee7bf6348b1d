"""Messages of a log as rows: Arrow batches made from columns, without an object for each message."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from semcast.core.ids import Nanos
from semcast.group.logpages import LogRun
from semcast.patterns.repeats import split_key

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
    keys, rests = [], []
    for payload in batch.column("payload").to_pylist():
        key, rest = split_key(payload)
        keys.append(key)
        rests.append(rest)
    columns = dict(zip(SCHEMA.names, batch.columns, strict=True))
    columns["payload"] = pa.array(rests, pa.binary())
    columns["query"] = pa.array([None if key is None else str(key.query) for key in keys], pa.string())
    for name in ("batch", "partition", "row"):
        columns[name] = pa.array([None if key is None else getattr(key, name) for key in keys], pa.int64())
    return pa.RecordBatch.from_pydict(columns, schema=KEYED)


def heartbeat_row(position: int, at: Nanos, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """A row without a message: nothing that comes later is older than this time."""
    columns = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
    columns["position"] = pa.array([position])
    columns["at"] = _times(np.array([at // _MICRO]))
    return pa.RecordBatch.from_pydict(columns, schema=schema)
