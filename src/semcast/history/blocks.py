"""The rows of a journal become columns, many at a time: an event object for each would cost too much."""

from collections.abc import Callable
from itertools import accumulate, repeat
from typing import Any, NoReturn

import pyarrow as pa

from semcast.core.annotations import Enumeration, Item
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history.columns import SCHEMA
from semcast.history.events import Event
from semcast.history.journal import (
    AppliedRow,
    ConfirmedRow,
    DeliveredRow,
    FamilyRow,
    MergedRow,
    NotedRow,
    Positions,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
)
from semcast.history.schema import NON_PRIMARY, PRIMARY, SAFE, AnnotationKind, Kind, kind_named
from semcast.history.wellformed import problem
from semcast.history.writer import ring_cell

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
    "ring",
    "vector",
)
"""What differs from row to row, in the order of its cells."""
_WIDTH = len(_COLUMNS)

_DELIVER, _MULTICAST, _PURGE = Kind.DELIVER.value, Kind.MULTICAST.value, Kind.PURGE.value
_ITEM, _BY = AnnotationKind.ITEM.value, AnnotationKind.BY.value
_NOTE = tuple(field.name for field in _ANNOTATION)
_ONE_ID = (_BY, None, None, None, None, 1)


class MalformedRowError(Exception):
    """A row that cannot be: its number, and why."""


class Block:
    """Rows of one process in one group, gathered until there are enough for an Arrow table.

    Cells lie one behind the other in flat lists: what a row puts there in one go is taken apart by columns
    later. Annotations and the members of views stand aside, with the number of their row.

    Args:
        run: its name.
        group: its name.
        process: whose rows these are.
    """

    def __init__(self, run: str, group: str, process: MemberId) -> None:
        self._same = {
            "run": run,
            "process": process.name,
            "incarnation": process.incarnation,
            "group": group,
        }
        self._process = process
        self.seen: set[MemberId] = set()
        """The members of its views."""
        self._first = 0  # the index of the first row here
        self._latest = 0  # the last message that the process multicast
        self._clear()
        self.take: dict[type[Row], Callable[[Nanos, Any], None]] = {
            DeliveredRow: self._delivered,
            SentRow: self._sent,
            NotedRow: self._noted,
            PurgedRow: self._purged,
            ViewRow: self._view,
            AppliedRow: self._applied,
            MergedRow: self._merged,
            ConfirmedRow: self._confirmed,
            FamilyRow: self._of_family,
        }
        """Appends what a row of a journal stands for, by its type."""

    def _clear(self) -> None:
        self._cells: list[Any] = []
        self._noted_rows: list[int] = []
        self._notes: list[Any] = []
        self._ids: list[Any] = []
        self._members: dict[int, tuple[MemberId, ...]] = {}

    def __len__(self) -> int:
        return len(self._cells) // _WIDTH

    def end(self, at: Nanos, kind: Kind) -> None:
        """The last row of all."""
        self._cells += (kind.value, at, None, 0, 0, 0, None, None, None, 0, None, None, None)

    def _delivered(self, at: Nanos, row: DeliveredRow) -> None:
        who = row.sender
        if row.seq < 1 or row.count < 1:
            self._refuse(Kind.DELIVER, who, row.seq, row.count)
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
            row.ring,
            row.vector,
        )

    def _sent(self, at: Nanos, row: SentRow) -> None:
        who, level = self._process, SAFE if row.safe else None
        self._check_multicast(row.seq, row.count)
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
            row.ring,
            row.vector,
        )

    def _noted(self, at: Nanos, row: NotedRow) -> None:
        before = len(self)
        crcs = repeat(None, len(row.sizes)) if row.crcs is None else row.crcs
        messages = list(zip(row.sizes, crcs, row.notes, strict=False))
        count = len(messages)
        self._check_multicast(row.seq, count)
        name, incarnation = self._process.name, self._process.incarnation
        view, level, cells = row.view, SAFE if row.safe else None, self._cells
        ring, vector = row.ring, row.vector
        for place, (size, crc, _) in enumerate(messages):
            where = None if ring is None else ring.after(place)
            cells += (_MULTICAST, at, name, incarnation, row.seq + place, 1, view, level, None, size, crc)
            cells += (where, vector)
            vector = None if vector is None else ()
        self._noted_rows += range(before, before + count)
        for _, _, note in messages:
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
        count = min(len(row.seqs), len(row.by_seqs))
        if count and min(row.seqs) < 1:
            self._refuse(Kind.PURGE, who, min(row.seqs), 1)
        name, incarnation, cells = who.name, who.incarnation, self._cells
        for seq in row.seqs[:count]:
            cells += (_PURGE, at, name, incarnation, seq, 1, None, None, None, 0, None, None, None)
        if row.by is not None:
            self._noted_rows += range(before, before + count)
            self._notes += _ONE_ID * count
            name, incarnation = row.by.name, row.by.incarnation
            for seq in row.by_seqs[:count]:
                self._ids += (name, incarnation, seq)

    def _view(self, at: Nanos, row: ViewRow) -> None:
        view, who = row.view, row.view.representative
        kind = Kind.TRANSITIONAL if row.transitional else Kind.VIEW
        level = PRIMARY if view.primary else NON_PRIMARY
        name, incarnation = (None, 0) if who is None else (who.name, who.incarnation)
        self._members[len(self)] = view.members
        if not row.transitional:
            self.seen.update(view.members)
        self._cells += (kind.value, at, name, incarnation, 0, 0, view.id, level, view.reformed, 0, None)
        self._cells += (None, None)

    def _merged(self, at: Nanos, row: MergedRow) -> None:
        self._cells += (Kind.MERGED.value, at, None, 0, 0, row.count, None, None, None, 0, None, None, None)

    def _confirmed(self, at: Nanos, row: ConfirmedRow) -> None:
        who, level = self._process, SAFE if row.safe else None
        self._members[len(self)] = row.view.members
        self._cells += (Kind.CONFIRMED.value, at, who.name, who.incarnation, row.seq, 1, row.view.id, level)
        self._cells += (None, 0, None, None, None)

    def _of_family(self, at: Nanos, row: FamilyRow) -> None:
        note = row.note
        name, incarnation = (None, 0) if note.sender is None else (note.sender.name, note.sender.incarnation)
        if note.members is not None:
            self._members[len(self)] = note.members
        if note.digest is not None:
            self._noted_rows.append(len(self))
            self._notes += (_ITEM, note.digest, None, None, None, None)
        kind = self._kind(note.kind)
        self._cells += (kind, at, name, incarnation, note.seq, note.count, note.view, note.level, note.order)
        self._cells += (0, None, None, None)

    def _kind(self, name: str) -> str:
        try:
            return kind_named(name).value
        except ValueError as error:
            raise MalformedRowError(f"row {self._first + len(self)}: {error}") from error

    def _applied(self, at: Nanos, row: AppliedRow) -> None:
        who = row.sender
        self._noted_rows.append(len(self))
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
            None,
            None,
        )

    def _check_multicast(self, seq: int, count: int) -> None:
        """Whether the numbers of its own messages count from 1 and grow."""
        if seq < 1 or count < 1:
            self._refuse(Kind.MULTICAST, self._process, seq, count)
        if seq <= self._latest:
            after = f"multicast of {MessageId(self._process, seq)} after {self._latest}"
            raise MalformedRowError(f"row {self._first + len(self)}: {after}")
        self._latest = seq + count - 1

    def _refuse(self, kind: Kind, sender: MemberId, seq: int, count: int) -> NoReturn:
        index = self._first + len(self)
        fault = problem(Event(self._process, index, 0, kind, "", sender, seq, count))
        raise MalformedRowError(f"row {index}: {fault}")

    def flush(self) -> pa.Table:
        """The rows so far as columns of the schema; what follows begins anew."""
        try:
            table = self._table()
        except (pa.ArrowInvalid, OverflowError) as error:
            raise MalformedRowError(f"row {self._first} or one that follows: {error}") from error
        self._first += table.num_rows
        self._clear()
        return table

    def _table(self) -> pa.Table:
        count = len(self)
        columns = {name: _column(name, self._cells[place::_WIDTH]) for place, name in enumerate(_COLUMNS)}
        for name, value in self._same.items():
            columns[name] = pa.repeat(pa.scalar(value, SCHEMA.field(name).type), count)
        columns["index"] = pa.array(range(self._first, self._first + count), pa.int64())
        columns["annotation"] = self._annotations(count)
        columns["members"] = self._views(count)
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _annotations(self, count: int) -> pa.Array:
        if not self._noted_rows:
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
        for place, row in enumerate(self._noted_rows):
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


_MADE = {"ring": ring_cell}
"""How the cells of a column are made, where they are not kept as they are written."""


def _column(name: str, cells: list[Any]) -> pa.Array:
    kind = SCHEMA.field(name).type
    made = _MADE.get(name)
    if made is not None:
        cells = list(map(made, cells))
    return pa.array(cells, kind)
