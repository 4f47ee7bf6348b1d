"""The rows of a journal become columns, many at a time: an event object for each would cost too much."""

from collections.abc import Iterable
from itertools import accumulate, chain, repeat
from typing import Any

import pyarrow as pa

from semcast.core.annotations import Enumeration, Item
from semcast.core.ids import MemberId, Nanos
from semcast.history.journal import (
    AppliedRow,
    DeliveredRow,
    NotedRow,
    Positions,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
)
from semcast.history.schema import CERTIFICATES, NON_PRIMARY, PRIMARY, SAFE, SCHEMA, AnnotationKind, Kind

_ANNOTATION, _MEMBERS = SCHEMA.field("annotation").type, SCHEMA.field("members").type
_COLUMNS = (
    "kind",
    "at_ns",
    "sender",
    "sender_incarnation",
    "seq",
    "count",
    "view",
    "level",
    "order",
    "bytes",
    "crc",
)
"""What differs from row to row, in the order of its cells."""

_DELIVER, _MULTICAST, _PURGE = Kind.DELIVER.value, Kind.MULTICAST.value, Kind.PURGE.value
_ITEM, _BY = AnnotationKind.ITEM.value, AnnotationKind.BY.value
_NOTE = tuple(field.name for field in _ANNOTATION)
_ONE_ID = (_BY, None, None, None, None, 1)


class Block:
    """Rows of one process, gathered until there are enough for an Arrow table.

    Cells lie one behind the other in flat lists: what a row puts there in one go is taken apart by columns
    later. Annotations and the members of views stand aside, with the number of their row.
    """

    def __init__(self, run: str, group: str, process: MemberId, first: int) -> None:
        self._same = {
            "run": run,
            "process": process.name,
            "incarnation": process.incarnation,
            "group": group,
        }
        self._process = process
        self._first = first
        self._cells: list[Any] = []
        self._noted: list[int] = []
        self._notes: list[Any] = []
        self._ids: list[Any] = []
        self._members: dict[int, tuple[MemberId, ...]] = {}

    def __len__(self) -> int:
        return len(self._cells) // len(_COLUMNS)

    def take(self, at: Nanos, row: Row) -> None:
        """Append what a row of a journal stands for."""
        if isinstance(row, DeliveredRow):
            self._delivered(at, row)
        elif isinstance(row, SentRow):
            self._sent(at, row)
        elif isinstance(row, NotedRow):
            self._noted_messages(at, row)
        elif isinstance(row, PurgedRow):
            self._purged(at, row)
        elif isinstance(row, ViewRow):
            self._view(at, row)
        else:
            self._applied(at, row)

    def end(self, at: Nanos, kind: Kind) -> None:
        """The last row of all."""
        self._cells += (kind.value, at, None, 0, 0, 0, None, None, None, 0, None)

    def _delivered(self, at: Nanos, row: DeliveredRow) -> None:
        who = row.sender
        self._cells += (
            _DELIVER,
            at,
            who.name,
            who.incarnation,
            row.seq,
            row.count,
            None,
            None,
            row.order,
            row.size,
            row.crc,
        )

    def _sent(self, at: Nanos, row: SentRow) -> None:
        who, level = self._process, SAFE if row.safe else None
        self._cells += (
            _MULTICAST,
            at,
            who.name,
            who.incarnation,
            row.seq,
            row.count,
            row.view,
            level,
            None,
            row.size,
            row.crc,
        )

    def _noted_messages(self, at: Nanos, row: NotedRow) -> None:
        before, who = len(self), self._process
        self._run(
            repeat(_MULTICAST, min(len(row.sizes), len(row.notes))),
            repeat(at),
            repeat(who.name),
            repeat(who.incarnation),
            range(row.seq, row.seq + len(row.sizes)),
            repeat(1),
            repeat(row.view),
            repeat(SAFE if row.safe else None),
            repeat(None),
            row.sizes,
            repeat(None) if row.crcs is None else row.crcs,
        )
        self._noted += range(before, len(self))
        for note in row.notes[: len(self) - before]:
            if type(note) is Item:
                self._notes += (_ITEM, note.item, None, None, None, None)
            elif isinstance(note, Positions):
                kind = AnnotationKind.K_ENUMERATION.value
                self._notes += (kind, None, note.base, note.bitmap, note.total, None)
            else:
                assert isinstance(note, Enumeration)
                self._notes += (AnnotationKind.ENUMERATION.value, None, None, None, None, len(note.ids))
                for each in note.ids:
                    self._ids += (each.sender.name, each.sender.incarnation, each.seq)

    def _purged(self, at: Nanos, row: PurgedRow) -> None:
        before, who = len(self), row.sender
        self._run(
            repeat(_PURGE, min(len(row.seqs), len(row.by_seqs))),
            repeat(at),
            repeat(who.name),
            repeat(who.incarnation),
            row.seqs,
            repeat(1),
            repeat(None),
            repeat(None),
            repeat(None),
            repeat(0),
            repeat(None),
        )
        if row.by is not None:
            count = len(self) - before
            self._noted += range(before, len(self))
            self._notes += _ONE_ID * count
            replacing = zip(repeat(row.by.name, count), repeat(row.by.incarnation), row.by_seqs, strict=False)
            self._ids += chain.from_iterable(replacing)

    def _view(self, at: Nanos, row: ViewRow) -> None:
        view, who = row.view, row.view.representative
        kind = Kind.TRANSITIONAL if row.transitional else Kind.VIEW
        level = PRIMARY if view.primary else NON_PRIMARY
        name, incarnation = (None, 0) if who is None else (who.name, who.incarnation)
        self._members[len(self)] = view.members
        self._cells += (kind.value, at, name, incarnation, 0, 0, view.id, level, None, 0, None)

    def _applied(self, at: Nanos, row: AppliedRow) -> None:
        who = row.sender
        self._noted.append(len(self))
        self._notes += (_ITEM, row.digest, None, None, None, None)
        self._cells += (
            Kind.APPLY.value,
            at,
            who.name,
            who.incarnation,
            0,
            0,
            row.view,
            None,
            None,
            0,
            None,
        )

    def table(self) -> pa.Table:
        """The rows as columns of the schema."""
        count, width = len(self), len(_COLUMNS)
        columns = {
            name: pa.array(self._cells[place::width], SCHEMA.field(name).type)
            for place, name in enumerate(_COLUMNS)
        }
        for name, value in self._same.items():
            columns[name] = pa.repeat(pa.scalar(value, SCHEMA.field(name).type), count)
        columns["index"] = pa.array(range(self._first, self._first + count), pa.int64())
        columns["annotation"] = self._annotations(count)
        columns["members"] = self._views(count)
        columns |= {name: pa.nulls(count, SCHEMA.field(name).type) for name in CERTIFICATES}
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _run(self, *columns: Iterable[Any]) -> None:
        """Rows of one kind, given by columns; the shortest says how many."""
        self._cells += chain.from_iterable(zip(*columns, strict=False))

    def _annotations(self, count: int) -> pa.Array:
        if not self._noted:
            return pa.nulls(count, _ANNOTATION)
        cells = {name: self._notes[place :: len(_NOTE)] for place, name in enumerate(_NOTE)}
        fields = [
            self._listed_ids(cells[field.name])
            if field.name == "ids"
            else pa.array(cells[field.name], field.type)
            for field in _ANNOTATION
        ]
        notes = pa.StructArray.from_arrays(fields, fields=list(_ANNOTATION))
        if len(notes) == count:
            return notes
        places: list[int | None] = [None] * count
        for place, row in enumerate(self._noted):
            places[row] = place
        return notes.take(pa.array(places, pa.int64()))

    def _listed_ids(self, counts: list[int | None]) -> pa.Array:
        listed = _ANNOTATION.field("ids").type
        parts = list(listed.value_type)
        values = [pa.array(self._ids[place :: len(parts)], part.type) for place, part in enumerate(parts)]
        ends = accumulate((count or 0 for count in counts), initial=0)
        return pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()),
            pa.StructArray.from_arrays(values, fields=parts),
            type=listed,
            mask=pa.array([count is None for count in counts]),
        )

    def _views(self, count: int) -> pa.Array:
        if not self._members:
            return pa.nulls(count, _MEMBERS)
        rows: list[list[tuple[str, int]] | None] = [None] * count
        for row, members in self._members.items():
            rows[row] = [(member.name, member.incarnation) for member in members]
        return pa.array(rows, _MEMBERS)
