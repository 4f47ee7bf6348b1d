"""Messages of a log as rows: Arrow batches made from columns, without an object for each message."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from semcast.core.ids import Nanos
from semcast.group.logpages import LogRun

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

_MICRO = 1000


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


def heartbeat_row(position: int, at: Nanos) -> pa.RecordBatch:
    """A row without a message: nothing that comes later is older than this time."""
    columns = {name: pa.nulls(1, SCHEMA.field(name).type) for name in SCHEMA.names}
    columns["position"] = pa.array([position])
    columns["at"] = _times(np.array([at // _MICRO]))
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)
