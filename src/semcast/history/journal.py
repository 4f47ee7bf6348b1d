"""Journals of live processes: an append-only file for each, that SIGKILL cannot take anything from.

A file is a magic word and chunks, each with its length and checksum: first the header, then rows as
they come, and last, after a clean end, a chunk that says so. A chunk goes to the kernel in one write and is
not synced: the end of the process loses nothing that was written, the end of the machine may. What follows
the first chunk that is torn or damaged is not read, and what the process did then is unknown.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.views import View
from semcast.history.events import Event, HistoryError, RunInfo
from semcast.history.schema import NON_PRIMARY, PRIMARY, SAFE, SCHEMA_VERSION, Kind

SUFFIX = ".journal"
CRASH_SUFFIX = ".crash"
_MAGIC = b"semcast\n"
_FRAME = struct.Struct("<II")  # length and checksum of what follows


class Positions(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A k-enumeration as stored: its bitmap may be longer than any integer of the format."""

    base: int
    bitmap: bytes  # little-endian
    total: bool


Note = Item | Enumeration | Positions


class SentRow(msgspec.Struct, array_like=True, tag=1, gc=False):
    """A run of messages without annotations left."""

    seq: int
    count: int
    size: int
    view: int | None
    safe: bool


class NotedRow(msgspec.Struct, array_like=True, tag=2):
    """Consecutive messages left, each with an annotation."""

    seq: int
    view: int | None
    safe: bool
    sizes: list[int]
    notes: list[Note]


class DeliveredRow(msgspec.Struct, array_like=True, tag=3, gc=False):
    """The application got a run of messages."""

    sender: MemberId
    seq: int
    count: int
    size: int
    order: int | None = None
    """The position of the first in the total order, if there is one."""


class PurgedRow(msgspec.Struct, array_like=True, tag=4):
    """Messages of one sender that were given up, each for one of another or the same."""

    sender: MemberId
    seqs: list[int]
    by: MemberId | None
    by_seqs: list[int]
    """As many as `seqs`; of no meaning where it is not known for whose."""


class ViewRow(msgspec.Struct, array_like=True, tag=5):
    """A view, or a transitional one."""

    view: View
    transitional: bool


class AppliedRow(msgspec.Struct, array_like=True, tag=6, gc=False):
    """A digest of what one sender owns in the state, at the beginning of a view if one is given."""

    sender: MemberId
    digest: str
    view: int | None


Row = SentRow | NotedRow | DeliveredRow | PurgedRow | ViewRow | AppliedRow


class _Header(msgspec.Struct, array_like=True):
    version: int
    process: MemberId
    info: RunInfo


class _Chunk(msgspec.Struct, array_like=True):
    at: Nanos
    rows: Sequence[Row]
    ended: bool = False


class Journal(msgspec.Struct, frozen=True):
    """What can be read of a journal."""

    process: MemberId
    info: RunInfo | None
    """None if not even the header can be read."""
    events: list[Event]
    unknown: str | None
    """Why it is not known what the process did after its last event; None if that was its end."""


def note_of(annotation: Annotation) -> Note:
    """An annotation as it is stored."""
    if isinstance(annotation, KEnumeration):
        bitmap = annotation.bitmap
        stored = bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "little")
        return Positions(annotation.base, stored, annotation.total)
    return annotation


class JournalWriter:
    """Appends to the journal of one process. Two incarnations never share one.

    Raises OSError where the file cannot be made, is there already, or takes no more.
    """

    def __init__(self, folder: Path, process: MemberId, info: RunInfo) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / journal_name(process)
        self._encode = msgspec.msgpack.Encoder().encode
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o644)
        self._sound = True
        self._write(_MAGIC + _framed(self._encode(_Header(SCHEMA_VERSION, process, info))))

    def append(self, at: Nanos, rows: Sequence[Row]) -> None:
        """Rows that belong to one moment; they are in the kernel's hands when this returns."""
        self._write(_framed(self._encode(_Chunk(at, rows))))

    def close(self, at: Nanos) -> None:
        """The process has ended well, and nothing is missing."""
        if self._fd >= 0:
            try:
                if self._sound:
                    self._write(_framed(self._encode(_Chunk(at, (), ended=True))))
            finally:
                os.close(self._fd)
                self._fd = -1

    def _write(self, data: bytes) -> None:
        sound, self._sound = self._sound, False  # whatever is raised below, nothing may follow it
        if not sound:
            raise OSError(f"{self.path}: an earlier write failed")
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]
        self._sound = True


def _framed(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def journal_name(process: MemberId) -> str:
    """The name of the file, from which the process can be told.

    >>> journal_name(MemberId("a/b", 7))
    'a%2Fb-7.journal'
    """
    return f"{quote(process.name, safe='')}-{process.incarnation}{SUFFIX}"


def _process_of(path: Path) -> MemberId:
    name, dash, incarnation = path.stem.rpartition("-")
    if not dash or not incarnation.isdecimal():
        raise HistoryError(f"{path}: the name of a journal is MEMBER-INCARNATION{SUFFIX}")
    return MemberId(unquote(name), int(incarnation))


def record_crash(folder: Path, member: MemberId | str) -> None:
    """Whoever supervises a run saw `member` die: its journal is all that it did.

    Given a name, the latest incarnation is meant.
    """
    if isinstance(member, str):
        known = [_process_of(path) for path in folder.glob(f"*{SUFFIX}")]
        latest = max((process for process in known if process.name == member), default=None)
        if latest is None:
            raise HistoryError(f"{folder}: no journal of {member} in this folder")
        member = latest
    (folder / journal_name(member)).with_suffix(CRASH_SUFFIX).touch()


def read_journal(path: Path) -> Journal:
    """Read as far as the journal is sound."""
    process = _process_of(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from error
    payloads, damage = _payloads(data)
    info = _info(path, process, payloads[0]) if payloads else None
    if info is None:
        return Journal(process, None, [], damage or "its journal has no readable header")
    reading = _Reading(process, info.group)
    for payload in payloads[1:]:
        if not reading.take(payload):
            damage = "its journal is damaged"
            break
    return _ended(path, info, reading, damage)


def _payloads(data: bytes) -> tuple[list[bytes], str | None]:
    """The chunks up to the first that is not whole, and what is wrong there."""
    found: list[bytes] = []
    if not data.startswith(_MAGIC):
        return found, "its journal is damaged" if len(data) > len(_MAGIC) else "its journal is cut off"
    at = len(_MAGIC)
    while at < len(data):
        begin = at + _FRAME.size
        if begin > len(data):
            return found, "its journal is cut off"
        length, checksum = _FRAME.unpack_from(data, at)
        at = begin + length
        if at > len(data):
            return found, "its journal is cut off"
        payload = data[begin:at]
        if zlib.crc32(payload) != checksum:
            return found, "its journal is damaged"
        found.append(payload)
    return found, None


def _info(path: Path, process: MemberId, payload: bytes) -> RunInfo | None:
    try:
        version = msgspec.msgpack.decode(payload, type=list[msgspec.Raw])[0]
        if msgspec.msgpack.decode(version) != SCHEMA_VERSION:
            found = msgspec.msgpack.decode(version)
            raise HistoryError(f"{path}: schema version {found}; this program reads {SCHEMA_VERSION}")
        header = msgspec.msgpack.decode(payload, type=_Header)
    except (msgspec.DecodeError, IndexError):
        return None
    if header.process != process:
        raise HistoryError(f"{path}: a journal of {header.process} under the name of {process}")
    return header.info


def _ended(path: Path, info: RunInfo, reading: "_Reading", damage: str | None) -> Journal:
    """How the process ended: by itself, under the eyes of a supervisor, or nobody knows.

    Where members come and go, one that ended has left, which the checkers know as a crash. In a group
    with a list of members it owes what it owed before.
    """
    marker = path.with_suffix(CRASH_SUFFIX)
    unknown = damage
    if reading.ended:
        if not info.members:
            reading.crash(reading.at)
    elif damage is None and marker.exists():
        reading.crash(marker.stat().st_mtime_ns)
    else:
        unknown = unknown or "its journal has no end"
    return Journal(reading.process, info, reading.events, unknown)


class _Reading:
    """Chunks become events."""

    def __init__(self, process: MemberId, group: str) -> None:
        self.process = process
        self.events: list[Event] = []
        self.at: Nanos = 0
        self.ended = False
        self._group = group
        self._decode = msgspec.msgpack.Decoder(_Chunk).decode

    def take(self, payload: bytes) -> bool:
        """Take the next chunk; False if it is none, or comes after the end."""
        try:
            chunk = self._decode(payload)
        except msgspec.DecodeError:
            return False
        if self.ended:
            return False
        self.at, self.ended = chunk.at, chunk.ended
        for row in chunk.rows:
            for event in self._events_of(row):
                self._add(event)
        return True

    def crash(self, at: Nanos) -> None:
        """The last event."""
        self._add(Event(self.process, 0, at, Kind.CRASH, self._group))

    def _add(self, event: Event) -> None:
        self.events.append(msgspec.structs.replace(event, index=len(self.events)))

    def _events_of(self, row: Row) -> Iterator[Event]:
        me, at, group = self.process, self.at, self._group
        if isinstance(row, DeliveredRow):
            yield Event(
                me, 0, at, Kind.DELIVER, group, row.sender, row.seq, row.count, row.size, order=row.order
            )
        elif isinstance(row, SentRow):
            level = SAFE if row.safe else None
            yield Event(
                me,
                0,
                at,
                Kind.MULTICAST,
                group,
                me,
                row.seq,
                row.count,
                row.size,
                view=row.view,
                level=level,
            )
        elif isinstance(row, NotedRow):
            yield from self._noted(row)
        elif isinstance(row, PurgedRow):
            for seq, by_seq in zip(row.seqs, row.by_seqs, strict=False):
                by = None if row.by is None else MessageId(row.by, by_seq)
                yield Event(me, 0, at, Kind.PURGE, group, row.sender, seq, 1, by=by)
        elif isinstance(row, AppliedRow):
            yield Event(me, 0, at, Kind.APPLY, group, row.sender, digest=row.digest, view=row.view)
        else:
            view, kind = row.view, Kind.TRANSITIONAL if row.transitional else Kind.VIEW
            yield Event(
                me,
                0,
                at,
                kind,
                group,
                view.representative,
                view=view.id,
                level=PRIMARY if view.primary else NON_PRIMARY,
                members=view.members,
            )

    def _noted(self, row: NotedRow) -> Iterator[Event]:
        me, level = self.process, SAFE if row.safe else None
        for seq, (size, note) in enumerate(zip(row.sizes, row.notes, strict=False), row.seq):
            annotation = _annotation(note)
            yield Event(
                me,
                0,
                self.at,
                Kind.MULTICAST,
                self._group,
                me,
                seq,
                1,
                size,
                annotation,
                view=row.view,
                level=level,
            )


def _annotation(note: Note) -> Annotation:
    if isinstance(note, Positions):
        return KEnumeration(note.base, int.from_bytes(note.bitmap, "little"), note.total)
    return note
