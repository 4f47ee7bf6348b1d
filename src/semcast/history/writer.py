"""Writing a history as Parquet: the same events give the same bytes."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.core.annotations import Enumeration, Item
from semcast.core.certificates import Place
from semcast.core.ids import MemberId, MessageId
from semcast.history.columns import SCHEMA
from semcast.history.events import Event, History, RunInfo
from semcast.history.schema import RUN_KEY, SCHEMA_VERSION, VERSION_KEY, AnnotationKind

_NAMES = ("run", "process", "kind", "group", "sender", "level", "annotation.kind")
_COUNTED = ("index", "at_ns", "seq", "count", "view", "order", "bytes", "crc")
HOW: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "use_dictionary": list(_NAMES),
    "column_encoding": dict.fromkeys(_COUNTED, "DELTA_BINARY_PACKED"),
}
"""How Parquet files are written: names are few, and numbers go up in small steps."""


def write_history(history: History, path: Path) -> None:
    """Write one run to one file, and the folders above it where they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(_table(history), path, **HOW)


def metadata_of(info: RunInfo) -> dict[bytes, bytes]:
    """What a file says about itself."""
    return {VERSION_KEY: str(SCHEMA_VERSION).encode(), RUN_KEY: msgspec.json.encode(info)}


def _table(history: History) -> pa.Table:
    events = history.events
    columns = {
        "run": [history.info.run] * len(events),
        "process": [event.process.name for event in events],
        "incarnation": [event.process.incarnation for event in events],
        "index": [event.index for event in events],
        "at_ns": [event.at for event in events],
        "kind": [event.kind.value for event in events],
        "group": [event.group for event in events],
        "sender": [None if event.sender is None else event.sender.name for event in events],
        "sender_incarnation": [0 if event.sender is None else event.sender.incarnation for event in events],
        "seq": [event.seq for event in events],
        "count": [event.count for event in events],
        "view": [event.view for event in events],
        "level": [event.level for event in events],
        "order": [event.order for event in events],
        "annotation": [_annotation(event) for event in events],
        "members": [_members(event.members) for event in events],
        "bytes": [event.size for event in events],
        "crc": [event.crc for event in events],
        "ring": [ring_cell(event.ring) for event in events],
        "vector": [event.vector for event in events],
    }
    return pa.table(columns, schema=SCHEMA.with_metadata(metadata_of(history.info)))


def _annotation(event: Event) -> dict[str, object] | None:
    annotation = event.annotation
    if event.by is not None:
        return {"kind": AnnotationKind.BY.value, "ids": [_id(event.by)]}
    if event.digest is not None:
        return {"kind": AnnotationKind.ITEM.value, "item": event.digest}
    if annotation is None:
        return None
    if isinstance(annotation, Item):
        return {"kind": AnnotationKind.ITEM.value, "item": annotation.item}
    if isinstance(annotation, Enumeration):
        return {"kind": AnnotationKind.ENUMERATION.value, "ids": [_id(named) for named in annotation.ids]}
    return {
        "kind": AnnotationKind.K_ENUMERATION.value,
        "base": annotation.base,
        "bitmap": annotation.bitmap.to_bytes((annotation.bitmap.bit_length() + 7) // 8, "little"),
        "total": annotation.total,
    }


def ring_cell(place: Place | None) -> tuple[int, str | None, int, int, int] | None:
    """A place as it is stored."""
    if place is None:
        return None
    who = place.representative
    name, incarnation = (None, 0) if who is None else (who.name, who.incarnation)
    return place.configuration, name, incarnation, place.packet, place.index


def _id(message: MessageId) -> dict[str, object]:
    sender = message.sender
    return {"sender": sender.name, "incarnation": sender.incarnation, "seq": message.seq}


def _members(members: tuple[MemberId, ...] | None) -> list[dict[str, object]] | None:
    if members is None:
        return None
    return [{"name": member.name, "incarnation": member.incarnation} for member in members]
