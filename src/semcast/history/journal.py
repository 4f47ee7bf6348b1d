"""Journals of live processes: an append-only file for each, that SIGKILL cannot take anything from.

A file is a magic word and chunks, each with its length and checksum: first the header, then rows as
they come, and last, after a clean end, a chunk that says so. A chunk goes to the kernel in one write and is
not synced: the end of the process loses nothing that was written, the end of the machine may. What follows
the first chunk that is torn or damaged is not read, and what the process did then is unknown
(`semcast.history.replay` reads).
"""

import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.certificates import Place
from semcast.core.events import Note as FamilyNote
from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.history.events import HistoryError, RunInfo
from semcast.history.schema import SCHEMA_VERSION

SUFFIX = ".journal"
CRASH_SUFFIX = ".crash"
MAGIC = b"semcast\n"
_GROUP_NAME = 32
"""Characters of a group's name in the name of a file; of a longer one its checksum stands there."""
FRAME = struct.Struct("<II")  # length and checksum of what follows


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
    crc: int | None = None
    """Of all payloads, one behind the other; so it is in all rows. None in version 1."""
    ring: Place | None = None
    """Certificates of the first message (`semcast.core.certificates`); so it is in all rows."""
    vector: tuple[tuple[int, int], ...] | None = None


class NotedRow(msgspec.Struct, array_like=True, tag=2):
    """Consecutive messages left, each with an annotation."""

    seq: int
    view: int | None
    safe: bool
    sizes: list[int]
    notes: list[Note]
    crcs: list[int] | None = None
    ring: Place | None = None
    vector: tuple[tuple[int, int], ...] | None = None


class DeliveredRow(msgspec.Struct, array_like=True, tag=3, gc=False):
    """The application got a run of messages."""

    sender: MemberId
    seq: int
    count: int
    size: int
    order: int | None = None
    """The position of the first in the total order, if there is one."""
    crc: int | None = None
    ring: Place | None = None
    vector: tuple[tuple[int, int], ...] | None = None


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


class MergedRow(msgspec.Struct, array_like=True, tag=7, gc=False):
    """So many views came and went of which the program is told nothing."""

    count: int


class ConfirmedRow(msgspec.Struct, array_like=True, tag=8):
    """The stack said that a message of this process is delivered in a view, or that all there have it."""

    seq: int
    view: View
    safe: bool


class FamilyRow(msgspec.Struct, array_like=True, tag=9, gc=False):
    """A row of a kind that a family of stacks adds to the schema."""

    note: FamilyNote


Row = (
    SentRow
    | NotedRow
    | DeliveredRow
    | PurgedRow
    | ViewRow
    | AppliedRow
    | MergedRow
    | ConfirmedRow
    | FamilyRow
)


class Header(msgspec.Struct, array_like=True):
    """What a journal begins with: a process in one group of a run."""

    version: int
    process: MemberId
    info: RunInfo


class Chunk(msgspec.Struct, array_like=True):
    """Rows of one moment, or the end."""

    at: Nanos
    rows: Sequence[Row]
    ended: bool = False


def note_of(annotation: Annotation) -> Note:
    """An annotation as it is stored."""
    if isinstance(annotation, KEnumeration):
        bitmap = annotation.bitmap
        stored = bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "little")
        return Positions(annotation.base, stored, annotation.total)
    return annotation


class JournalWriter:
    """Appends to the journal of one process in one group. Two incarnations never share one, nor two groups.

    Raises OSError where the file cannot be made, is there already, or takes no more.
    """

    def __init__(self, folder: Path, process: MemberId, info: RunInfo) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / journal_name(process, info.groups[0].name)
        self._encode = msgspec.msgpack.Encoder().encode
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o644)
        self._sound = True
        self._write(MAGIC + _framed(self._encode(Header(SCHEMA_VERSION, process, info))))

    def append(self, at: Nanos, rows: Sequence[Row]) -> None:
        """Rows that belong to one moment; they are in the kernel's hands when this returns."""
        self._write(_framed(self._encode(Chunk(at, rows))))

    def close(self, at: Nanos) -> None:
        """The process has ended well, and nothing is missing."""
        if self._fd >= 0:
            try:
                if self._sound:
                    self._write(_framed(self._encode(Chunk(at, (), ended=True))))
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
    return FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def journal_name(process: MemberId, group: str) -> str:
    """The name of the file, from which the process can be told.

    >>> journal_name(MemberId("a/b", 7), "prices")
    'a%2Fb-7@prices.journal'
    """
    known_as = quote(group, safe="")
    if len(known_as) > _GROUP_NAME:
        known_as = f"{zlib.crc32(group.encode()):08x}"
    return f"{quote(process.name, safe='')}-{process.incarnation}@{known_as}{SUFFIX}"


def process_of(path: Path) -> MemberId:
    """Whose journal it is, by its name; those of earlier versions do not name a group."""
    name, dash, incarnation = _stem(path)[0].rpartition("-")
    if not dash or not incarnation.isdecimal():
        raise HistoryError(f"{path}: the name of a journal is MEMBER-INCARNATION@GROUP{SUFFIX}")
    return MemberId(unquote(name), int(incarnation))


def _stem(path: Path) -> tuple[str, str]:
    """Of a journal's name: what stands for the process, and what for the group."""
    process, _, group = path.name.removesuffix(SUFFIX).partition("@")
    return process, group


def record_crash(folder: Path, member: MemberId | str) -> None:
    """Whoever supervises a run saw `member` die: its journals, one for each group, are all that it did.

    Given a name, the latest incarnation is meant, in each group.
    """
    name = member if isinstance(member, str) else member.name
    found = {path: process_of(path) for path in folder.glob(f"*{SUFFIX}")}
    latest: dict[str, tuple[MemberId, Path]] = {}
    for path, process in found.items():
        if process.name == name and member in (name, process):
            group = _stem(path)[1]
            latest[group] = max(latest.get(group, (process, path)), (process, path))
    if not latest:
        raise HistoryError(f"{folder}: no journal of {member} in this folder")
    for _, path in latest.values():
        crash_mark(path).touch()


def crash_mark(path: Path) -> Path:
    """The file that says of whom a journal is that it crashed."""
    return path.with_name(path.name.removesuffix(SUFFIX) + CRASH_SUFFIX)
