"""The recorder: a few values per call while the run goes on, everything else when it is over."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.certificates import Certificate, Certified, Place, cut, later
from semcast.core.events import Note, Purged, Sent
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.history.crc import crc32, crc32_combine
from semcast.history.events import Event, History, RunInfo
from semcast.history.schema import NON_PRIMARY, PRIMARY, SAFE, Kind, kind_named

# Looked up once: the hot path uses them.
_MULTICAST, _DELIVER, _PURGE, _BUFFER = Kind.MULTICAST, Kind.DELIVER, Kind.PURGE, Kind.BUFFER


class _State(NamedTuple):
    digest: str
    view: int | None


class _Receipt(NamedTuple):
    by: MessageId | None
    order: int


class _Claim(NamedTuple):
    view: View
    safe: bool


class _Left(NamedTuple):
    sent: Sent
    certificate: Certificate | None


class _Vector(NamedTuple):
    changes: tuple[tuple[int, int], ...]


_Extra = (
    Note | _Claim | Annotation | MessageId | View | _Left | _State | _Receipt | Place | _Vector | int | None
)
_Row = tuple[Kind, Nanos, MemberId, MemberId | None, int, int, int, int | None, _Extra]
"""kind, at, process, sender, seq, count, size, crc, and what only this kind has."""
_ROW_CELLS = 9
_Columns = dict[str, Any]


class Recorder:
    """Collects the events of one run.

    The run has one group. No payloads are kept, only their size and CRC. Events of one process are given in
    their local order.

    >>> from semcast.core import MemberId
    >>> from semcast.core.messages import batch_of
    >>> a, b = MemberId("a"), MemberId("b")
    >>> info = RunInfo.one("demo", "g", "reliable", None, (a, b), 40, uniform=False, quiesced=False)
    >>> recorder = Recorder(info)
    >>> batch = batch_of(a, 1, [b"x", b"y"])
    >>> recorder.multicast(0, a, batch)
    >>> recorder.deliver(5, b, batch)
    >>> for event in recorder.close(quiesced=True).events:
    ...     print(event)
    a[0] at 0 ns: multicast (a,1..2)
    b[0] at 5 ns: deliver (a,1..2)
    """

    __slots__ = ("_add", "_cells", "_marks", "info")

    def __init__(self, info: RunInfo) -> None:
        self.info = info
        # Rows one behind the other in one list: tuples that stay would each cost the garbage collector.
        self._cells: list[Kind | MemberId | int | _Extra] = []
        self._add = self._cells.extend
        self._marks: dict[MemberId, int] = {}

    def view(self, at: Nanos, process: MemberId, view: View) -> None:
        """`process` installed a view."""
        self._add((Kind.VIEW, at, process, view.representative, 0, 0, 0, None, view))

    def transitional(self, at: Nanos, process: MemberId, view: View) -> None:
        """`process` goes on from a view with some of its members."""
        self._add((Kind.TRANSITIONAL, at, process, view.representative, 0, 0, 0, None, view))

    def merged(self, at: Nanos, process: MemberId, views: int) -> None:
        """`process` was in so many views of which its application is told nothing."""
        self._add((Kind.MERGED, at, process, None, 0, views, 0, None, None))

    def sent(self, at: Nanos, process: MemberId, sent: Sent, certified: Sequence[Certified] = ()) -> None:
        """Messages of `process` that waited have left, in a view."""
        for batch, certificate in cut(sent.batch, certified):
            singles = [batch] if batch.items is None else batch.singles()
            for place, single in enumerate(singles):
                data = b"".join(single.payloads)
                count, size, crc = len(single.payloads), len(data), crc32(data)
                left = _Left(Sent(single, sent.view, sent.safe), later(certificate, place))
                self._add((_MULTICAST, at, process, single.sender, single.first, count, size, crc, left))

    def multicast(self, at: Nanos, process: MemberId, batch: Batch) -> None:
        """`process` multicast its own messages."""
        data = b"".join(batch.payloads)
        count, size, crc = len(batch.payloads), len(data), crc32(data)
        self._add((_MULTICAST, at, process, batch.sender, batch.first, count, size, crc, batch.annotation))

    def deliver(
        self,
        at: Nanos,
        process: MemberId,
        batch: Batch,
        order: int | None = None,
        certified: Sequence[Certified] = (),
    ) -> None:
        """The application at `process` got these messages; `order` is the position of the first, if any."""
        for part, certificate in cut(batch, certified):
            data = b"".join(part.payloads)
            count, size, crc = len(part.payloads), len(data), crc32(data)
            extra = order if certificate is None else _as_extra(certificate)
            self._add((_DELIVER, at, process, part.sender, part.first, count, size, crc, extra))

    def purge(self, at: Nanos, process: MemberId, purged: Purged, order: int | None = None) -> None:
        """`process` gave up messages for another; `order` is the position that one would have had, if any."""
        extra = purged.by if order is None else _Receipt(purged.by, order)
        for seq in range(purged.id.seq, purged.id.seq + purged.count):
            self._add((_PURGE, at, process, purged.id.sender, seq, 1, 0, None, extra))

    def buffer(self, at: Nanos, process: MemberId, messages: int) -> None:
        """The buffers of `process` hold this many messages; a row only if they never held more."""
        if messages > self._marks.get(process, 0):
            self._marks[process] = messages
            self._add((_BUFFER, at, process, None, 0, messages, 0, None, None))

    def crash(self, at: Nanos, process: MemberId) -> None:
        """`process` stopped for good."""
        self._add((Kind.CRASH, at, process, None, 0, 0, 0, None, None))

    def left(self, at: Nanos, process: MemberId) -> None:
        """`process` is out of its group for good."""
        self._add((Kind.LEFT, at, process, None, 0, 0, 0, None, None))

    def recover(self, at: Nanos, process: MemberId) -> None:
        """`process` started again."""
        self._add((Kind.RECOVER, at, process, None, 0, 0, 0, None, None))

    def apply(
        self, at: Nanos, process: MemberId, sender: MemberId, digest: str, view: int | None = None
    ) -> None:
        """At `process` the state that `sender` owns has this digest, at the beginning of `view` if given."""
        self._add((Kind.APPLY, at, process, sender, 0, 0, 0, None, _State(digest, view)))

    def confirmed(self, at: Nanos, process: MemberId, message: MessageId, view: View, *, safe: bool) -> None:
        """The stack of `process` said that its message is delivered in a view, or that all there have it."""
        claim = _Claim(view, safe)
        self._add((Kind.CONFIRMED, at, process, message.sender, message.seq, 1, 0, None, claim))

    def note(self, at: Nanos, process: MemberId, note: Note) -> None:
        """`process` did something that its family has rows of its own for."""
        self._add((kind_named(note.kind), at, process, note.sender, note.seq, note.count, 0, None, note))

    def close(self, *, quiesced: bool) -> History:
        """What was recorded so far."""
        events_of: dict[MemberId, list[Event]] = {}
        open_rows: dict[MemberId, _Row] = {}
        for row in self._rows():
            before = open_rows.get(row[2])
            if before is not None and _continues(before, row):
                open_rows[row[2]] = _joined(before, row)
                continue
            if before is not None:
                self._emit(before, events_of)
            open_rows[row[2]] = row
        for row in open_rows.values():
            self._emit(row, events_of)
        info = msgspec.structs.replace(self.info, quiesced=quiesced)
        return History(info, chain.from_iterable(events_of.values()))

    def _rows(self) -> Iterator[_Row]:
        return cast("Iterator[_Row]", zip(*[iter(self._cells)] * _ROW_CELLS, strict=True))

    def _emit(self, row: _Row, events_of: dict[MemberId, list[Event]]) -> None:
        events = events_of.setdefault(row[2], [])
        events.append(_event(self.info.only.name, len(events), row))


def _continues(before: _Row, row: _Row) -> bool:
    """Whether `row` goes on where `before` ends: next messages, same moment, nothing else to say."""
    return (
        row[4] == before[4] + before[5]
        and row[3] is not None
        and _says_no_more(before, row)
        and row[:4] == before[:4]
    )


def _says_no_more(before: _Row, row: _Row) -> bool:
    """Whether neither has anything of its own, or `row` only what follows from what `before` says."""
    if isinstance(before[8], int):
        return row[8] == before[8] + before[5]
    if isinstance(before[8], Place):
        return row[8] == before[8].after(before[5])
    if isinstance(before[8], _Vector):
        return row[8] == _UNCHANGED
    return row[8] is None and before[8] is None


_UNCHANGED = _Vector(())


def _as_extra(certificate: Certificate) -> Place | _Vector:
    return certificate if isinstance(certificate, Place) else _Vector(certificate)


def _joined(before: _Row, row: _Row) -> _Row:
    kind, at, process, sender, seq, count, size, crc, extra = before
    if crc is not None and row[7] is not None:
        crc = crc32_combine(crc, row[7], row[6])
    return kind, at, process, sender, seq, count + row[5], size + row[6], crc, extra


def _event(group: str, index: int, row: _Row) -> Event:
    kind, at, process, sender, seq, count, size, crc, extra = row
    if extra is None:
        return Event(process, index, at, kind, group, sender, seq, count, size, crc=crc)
    if isinstance(extra, Place):  # most rows of a ring
        return Event(process, index, at, kind, group, sender, seq, count, size, crc=crc, ring=extra)
    own = _COLUMNS[type(extra)](extra)
    return Event(process, index, at, kind, group, sender, seq, count, size, crc=crc, **own)


# What only one kind of row has, by its columns.


def _view(view: View) -> _Columns:
    level = PRIMARY if view.primary else NON_PRIMARY
    return {"view": view.id, "level": level, "order": view.reformed, "members": view.members}


def _left(left: _Left) -> _Columns:
    sent = left.sent
    columns: _Columns = {
        "view": sent.view,
        "level": _level(safe=sent.safe),
        "annotation": sent.batch.annotation,
    }
    if left.certificate is not None:
        columns["ring" if isinstance(left.certificate, Place) else "vector"] = left.certificate
    return columns


def _claim(claim: _Claim) -> _Columns:
    return {"view": claim.view.id, "level": _level(safe=claim.safe), "members": claim.view.members}


def _level(*, safe: bool) -> str | None:
    return SAFE if safe else None


def _note(note: Note) -> _Columns:
    return {
        "annotation": None if note.digest is None else Item(note.digest),
        "view": note.view,
        "level": note.level,
        "order": note.order,
        "members": note.members,
    }


def _annotation(annotation: Annotation) -> _Columns:
    return {"annotation": annotation}


_COLUMNS: dict[type, Callable[[Any], _Columns]] = {
    View: _view,
    _Left: _left,
    _Claim: _claim,
    Note: _note,
    Item: _annotation,
    Enumeration: _annotation,
    KEnumeration: _annotation,
    _Vector: lambda vector: {"vector": vector.changes},
    MessageId: lambda by: {"by": by},
    _Receipt: lambda receipt: {"by": receipt.by, "order": receipt.order},
    _State: lambda state: {"digest": state.digest, "view": state.view},
    int: lambda order: {"order": order},
}
