"""From the columns of a row to an event. What cannot be an event raises ValueError."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec
import pyarrow as pa

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.certificates import Place
from semcast.core.ids import MemberId, MessageId
from semcast.history.columns import SCHEMA
from semcast.history.events import Event
from semcast.history.schema import AnnotationKind, Kind, kind_named

_Struct = dict[str, object]


class Columns(msgspec.Struct, gc=False):
    """A row as stored: the columns that make an event, named and ordered as in the schema."""

    run: str
    process: str
    incarnation: int
    index: int
    at_ns: int
    kind: str
    group: str
    sender: str | None
    sender_incarnation: int
    seq: int
    count: int
    view: int | None
    level: str | None
    order: int | None
    annotation: _Struct | None
    members: list[_Struct | None] | None
    bytes: int
    crc: int | None
    ring: _Struct | None
    vector: list[_Struct | None] | None


def rows_of(table: pa.Table) -> Iterator[Columns]:
    """The rows of a table that has at least these columns."""
    return map(Columns, *(table.column(name).to_pylist() for name in SCHEMA.names))


def decode(row: Columns) -> Event:
    """The event that a row stands for."""
    kind = kind_named(row.kind)
    annotation, by, digest = (None, None, None) if row.annotation is None else _meaning(kind, row.annotation)
    return Event(
        process=_member(row.process, row.incarnation),
        index=row.index,
        at=row.at_ns,
        kind=kind,
        group=row.group,
        sender=None if row.sender is None else _member(row.sender, row.sender_incarnation),
        seq=row.seq,
        count=row.count,
        size=row.bytes,
        annotation=annotation,
        by=by,
        digest=digest,
        view=row.view,
        level=row.level,
        order=row.order,
        members=None if row.members is None else tuple(map(_member_of, row.members)),
        crc=row.crc,
        ring=None if row.ring is None else _place(row.ring),
        vector=None if row.vector is None else tuple(map(_change, row.vector)),
    )


@lru_cache(maxsize=1024)
def _member(name: str, incarnation: int) -> MemberId:
    return MemberId(name, incarnation)


def _member_of(struct: _Struct | None) -> MemberId:
    match struct:
        case {"name": str(name), "incarnation": int(incarnation)}:
            return _member(name, incarnation)
    raise ValueError("a view with an incomplete member")


def _place(struct: _Struct) -> Place:
    match struct:
        case {"configuration": int(number), "packet": int(packet), "index": int(index)}:
            name, incarnation = struct["representative"], struct["incarnation"]
            who = (
                _member(name, incarnation) if isinstance(name, str) and isinstance(incarnation, int) else None
            )
            return Place(number, who, packet, index)
    raise ValueError("an incomplete place in the order of the ring")


def _change(struct: _Struct | None) -> tuple[int, int]:
    match struct:
        case {"rank": int(rank), "seq": int(seq)}:
            return rank, seq
    raise ValueError("an incomplete vector time")


def _meaning(kind: Kind, struct: _Struct) -> tuple[Annotation | None, MessageId | None, str | None]:
    """The annotation column as annotation, replacement or digest, whichever the kind of event says."""
    if kind is Kind.PURGE:
        return None, _by(struct), None
    if kind is Kind.APPLY:
        return None, None, _item(struct)
    return _annotation(struct), None, None


def _annotation(struct: _Struct) -> Annotation:
    match struct:
        case {"kind": AnnotationKind.ITEM.value}:
            return Item(_item(struct))
        case {"kind": AnnotationKind.ENUMERATION.value}:
            return Enumeration(_ids(struct))
        case {
            "kind": AnnotationKind.K_ENUMERATION.value,
            "base": int(base),
            "bitmap": bytes(bitmap),
            "total": bool(total),
        }:
            return KEnumeration(base, int.from_bytes(bitmap, "little"), total)
    raise _unreadable(struct)


def _item(struct: _Struct) -> str:
    match struct:
        case {"kind": AnnotationKind.ITEM.value, "item": str(item)}:
            return item
    raise _unreadable(struct)


def _by(struct: _Struct) -> MessageId:
    ids = _ids(struct) if struct["kind"] == AnnotationKind.BY.value else ()
    if len(ids) != 1:
        raise _unreadable(struct)
    return ids[0]


def _ids(struct: _Struct) -> tuple[MessageId, ...]:
    ids = struct["ids"]
    if not isinstance(ids, list):
        raise _unreadable(struct)
    return tuple(_id(named, struct) for named in ids)


def _id(named: _Struct | None, struct: _Struct) -> MessageId:
    match named:
        case {"sender": str(sender), "incarnation": int(incarnation), "seq": int(seq)}:
            return MessageId(_member(sender, incarnation), seq)
    raise _unreadable(struct)


def _unreadable(struct: _Struct) -> ValueError:
    return ValueError(f"an annotation of kind {struct['kind']!r} that is unknown here or incomplete")
