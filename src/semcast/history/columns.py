"""The columns of recorded histories as Arrow and Parquet have them. `schema` says what they mean."""

import pyarrow as pa

_MESSAGE_ID = pa.struct([("sender", pa.string()), ("incarnation", pa.int64()), ("seq", pa.int64())])
_MEMBER = pa.struct([("name", pa.string()), ("incarnation", pa.int64())])
_ANNOTATION = pa.struct(
    [
        ("kind", pa.string()),
        ("item", pa.string()),
        ("base", pa.int64()),
        ("bitmap", pa.binary()),  # little-endian
        ("total", pa.bool_()),
        ("ids", pa.list_(_MESSAGE_ID)),
    ]
)

_RING = pa.struct(
    [
        ("configuration", pa.int64()),
        ("representative", pa.string()),
        ("incarnation", pa.int64()),
        ("packet", pa.int64()),
        ("index", pa.int64()),
    ]
)
_VECTOR = pa.list_(pa.struct([("rank", pa.int32()), ("seq", pa.int64())]))

SCHEMA = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("sender", pa.string()),
        pa.field("sender_incarnation", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("view", pa.int64()),
        pa.field("level", pa.string()),
        pa.field("order", pa.int64()),
        pa.field("annotation", _ANNOTATION),
        pa.field("members", pa.list_(_MEMBER)),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("crc", pa.int64()),
        pa.field("ring", _RING),
        pa.field("vector", _VECTOR),
    ]
)


def columns_of(version: int) -> pa.Schema:
    """The columns that files of this version have."""
    later = ("crc", "ring", "vector") if version == 1 else ()
    return pa.schema([field for field in SCHEMA if field.name not in later])
