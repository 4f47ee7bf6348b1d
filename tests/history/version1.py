"""Files as version 1 wrote them, made by hand."""

import struct
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

_ID = pa.struct([("sender", pa.string()), ("incarnation", pa.int64()), ("seq", pa.int64())])
_ANNOTATION = pa.struct(
    [
        ("kind", pa.string()),
        ("item", pa.string()),
        ("base", pa.int64()),
        ("bitmap", pa.binary()),
        ("total", pa.bool_()),
        ("ids", pa.list_(_ID)),
    ]
)
_COLUMNS: dict[str, tuple[pa.DataType, object]] = {
    "run": (pa.string(), "old"),
    "process": (pa.string(), "a"),
    "incarnation": (pa.int64(), 0),
    "index": (pa.int64(), 0),
    "at_ns": (pa.int64(), 0),
    "kind": (pa.string(), ""),
    "group": (pa.string(), "g"),
    "sender": (pa.string(), None),
    "sender_incarnation": (pa.int64(), 0),
    "seq": (pa.int64(), 0),
    "count": (pa.int64(), 0),
    "view": (pa.int64(), None),
    "level": (pa.string(), None),
    "order": (pa.int64(), None),
    "annotation": (_ANNOTATION, None),
    "members": (pa.list_(pa.struct([("name", pa.string()), ("incarnation", pa.int64())])), None),
    "bytes": (pa.int64(), 0),
}
"""The columns of version 1, with what stands there if nothing is said."""


_INFO: dict[str, object] = {
    "run": "old",
    "group": "g",
    "stack": "s-rm",
    "seed": 7,
    "members": [["a", 0], ["b", 0]],
    "buffer_limit": 40,
    "uniform": False,
    "quiesced": True,
    "note": "",
}
"""A run as version 1 described it."""


def write_parquet(path: Path, rows: list[dict[str, object]], **others: object) -> None:
    """One row for each of these, which name only what is not as always."""
    columns = {
        name: pa.array([row.get(name, always) for row in rows], kind)
        for name, (kind, always) in _COLUMNS.items()
    }
    metadata = {b"semcast.schema": b"1", b"semcast.run": msgspec.json.encode({**_INFO, **others})}
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def write_journal(
    path: Path, process: tuple[str, int], chunks: list[tuple[int, list[Any]]], **others: object
) -> None:
    """Chunks of a moment and its rows, arrays that begin with their tag; then the end."""
    header = [1, process, {**_INFO, **others}]
    said = [header, *([at, rows, False] for at, rows in chunks), [99, [], True]]
    payloads = [msgspec.msgpack.encode(each) for each in said]
    frames = [struct.pack("<II", len(data), zlib.crc32(data)) + data for data in payloads]
    path.write_bytes(b"semcast\n" + b"".join(frames))
