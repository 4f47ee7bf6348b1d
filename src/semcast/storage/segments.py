"""A log of records in segment files, written by one thread and read by any.

A crash leaves a prefix of what was written, with everything that was synced in it: a block that is not whole
is where the log ends. A segment is synced before the next one begins, and older ones are deleted only after
the newer one was synced, so that there is never a hole between two records. Damage to what was synced is told
from that (`wire/records.py`), and refused.
"""

import logging
import os
import struct
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload
from zlib import crc32

from semcast.storage.errors import DamageError, StorageError, TrimmedError
from semcast.storage.folder import sync_folder
from semcast.wire.records import (
    HEAD_BYTES,
    Block,
    DamagedError,
    block_at,
    head_at,
    packed,
    portions,
    records_of,
    whole_blocks,
)

MAGIC = b"semcast log 2\n"
SEGMENT_BYTES = 64 << 20
_HEADER = struct.Struct("<QII")  # position of the first record, salt, checksum
HEADER_BYTES = len(MAGIC) + _HEADER.size
SUFFIX = ".log"
_STRIDE = 1 << 16  # bytes of a segment between two places that are remembered
_LOG = logging.getLogger("semcast.storage")


class Segment:
    """One file.

    Args:
        path: of the file.
        number: of the segment.
        first: the position of its first record.
        salt: of its blocks.
    """

    def __init__(self, path: Path, number: int, first: int, salt: int) -> None:
        self.path = path
        self.number = number
        self.first = first
        self.salt = salt
        self.size = HEADER_BYTES
        self._positions = array("Q", [first])  # of records, and where their blocks begin
        self._offsets = array("Q", [HEADER_BYTES])

    def grow(self, position: int, size: int) -> None:
        """A block begins at the end, and is so long."""
        if self.size - self._offsets[-1] >= _STRIDE:
            self._offsets.append(self.size)  # before the position, by which others find it
            self._positions.append(position)
        self.size += size

    def offset_near(self, position: int) -> int:
        """Where a block begins that is not far before a record."""
        return self._offsets[bisect_right(self._positions, position) - 1]

    def blocks(self, position: int, upto: int) -> Iterator[tuple[Block, list[bytes]]]:
        """Blocks from that of a record on, up to another. Raises StorageError where one is damaged."""
        with self.path.open("rb") as file:
            offset = self.offset_near(position)
            file.seek(offset)
            while True:
                data = file.read(HEAD_BYTES)
                head = head_at(data, 0, self.salt)
                if head is None or head.first >= upto:
                    if head is None and data:
                        raise self.damaged(offset)
                    return
                if head.next <= position:
                    file.seek(head.end - HEAD_BYTES, os.SEEK_CUR)
                else:
                    data += file.read(head.end - HEAD_BYTES)
                    block = block_at(data, 0, self.salt)
                    if block is None:
                        raise self.damaged(offset)
                    yield block, records_of(data, block)
                offset += head.end

    def damaged(self, offset: int) -> DamageError:
        """What is said of damage there."""
        return DamageError(f"{self.path} is damaged at byte {offset}: these records were synced")


def segment_of(segments: Sequence[Segment], position: int) -> Segment:
    """The one that has a record."""
    return segments[bisect_right([each.first for each in segments], position) - 1]


class ReadingBack:
    """Reads records from anywhere in segments whose blocks are known.

    A block is read and checked as a whole, and may be much larger than what was asked for. Who reads a log in
    order wants the rest of it next, so the last one is kept.
    """

    def __init__(self) -> None:
        self._latest: tuple[int, list[bytes]] = (0, [])  # the block that was read last: from where on, what

    def read(self, segment: Segment, first: int, upto: int, most: int) -> list[bytes]:
        """At least one record from a position on, and then as many as fit into so many bytes."""
        found: list[bytes] = []
        size = 0
        if first >= upto:
            return found
        for begin, records in self._blocks(segment, first, upto):
            for record in records[max(first - begin, 0) :]:
                size += len(record)
                if found and size > most:
                    return found
                found.append(record)
        return found

    def _blocks(self, segment: Segment, first: int, upto: int) -> Iterator[tuple[int, list[bytes]]]:
        """Records by blocks, each with the position of its first."""
        begin, records = self._latest
        if begin <= first < begin + len(records):
            yield begin, records
            first = begin + len(records)
        if first < upto:
            for block, records in segment.blocks(first, upto):
                self._latest = block.first, records
                yield block.first, records


class SegmentLog:
    """The log in one folder. Nobody else may use the folder meanwhile.

    Raises OSError where the disk is full or broken: then it must not be used any more.

    Args:
        folder: where the files are. What is there is checked and, if its end is torn, cut.
        segment_bytes: behind a segment that is as large another one begins; 0 for `SEGMENT_BYTES`.
    """

    def __init__(self, folder: Path, segment_bytes: int = 0) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes or SEGMENT_BYTES
        self._lock = threading.Lock()  # of `_segments` and `synced`, for those who read
        self._segments: list[Segment] = []
        self.next = 0
        """The position of the next record."""
        self._read()
        if self._segments:
            self._file = self._open_last()
        else:
            self._file = self._begin_segment(1)
        self.synced = self.next
        """Records before this position outlive a crash."""
        self._vouched = self.next  # up to there that was written down
        self._back = ReadingBack()
        self.records: Sequence[bytes] = StoredRecords(self, self.first, self.next)
        """What was there. It is read when it is iterated over."""

    @property
    def first(self) -> int:
        """The position of the first record that is there."""
        return self._segments[0].first

    # Reading

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on: at least one, and then as many as fit into so many bytes.

        Nothing if there is none yet. May be called by any thread. Raises TrimmedError if the first is gone.
        """
        with self._lock:
            if first < self.first:
                raise TrimmedError(first, self.first)
            upto = self.synced
            segment = segment_of(self._segments, first)
        try:
            return self._back.read(segment, first, upto, most)
        except FileNotFoundError:  # it was trimmed meanwhile
            raise TrimmedError(first, self.first) from None

    def _read(self) -> None:
        numbers = self._numbers()
        for number in numbers:
            self._read_segment(number, last=number == numbers[-1])

    def _numbers(self) -> list[int]:
        """Segments that count: from a gap back, all were to be deleted."""
        found = self._all_numbers()
        keep = next((n for n in reversed(found) if n - 1 not in found), 0)
        for number in found:
            if number < keep:
                self._path(number).unlink()
        return [number for number in found if number >= keep]

    def _all_numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())

    def _read_segment(self, number: int, *, last: bool) -> None:
        path = self._path(number)
        data = path.read_bytes()
        header = header_of(data)
        if header is None and last and (self._segments or number == 1) and _interrupted(data):
            path.unlink()  # nothing was written behind it
            return
        if not MAGIC.startswith(data[: len(MAGIC)]):
            raise StorageError(f"{path} is not a log of this version")
        if header is None:
            raise DamageError(f"{path} is damaged at byte {len(MAGIC)}: its header was synced")
        if self._segments and header[0] != self.next:
            before = self._segments[-1].path.name
            raise StorageError(f"{path} begins with record {header[0]}, but {before} ends before {self.next}")
        segment = Segment(path, number, *header)
        self.next = segment.first
        try:
            for block in whole_blocks(data, segment.first, segment.salt, HEADER_BYTES):
                segment.grow(block.first, block.end - block.offset)
                self.next = block.next
        except DamagedError as error:
            raise segment.damaged(error.offset) from error
        self._segments.append(segment)
        if segment.size < len(data):
            self._cut(segment, len(data), last=last)

    def _cut(self, segment: Segment, size: int, *, last: bool) -> None:
        if not last:
            raise segment.damaged(segment.size)
        _LOG.warning(
            "%s: cut off %d bytes that a crash interrupted, from byte %d on; %d records are left",
            segment.path,
            size - segment.size,
            segment.size,
            self.next - self.first,
        )
        os.truncate(segment.path, segment.size)

    # Writing: by one thread

    def append(self, records: Sequence[bytes]) -> None:
        """Hand records to the kernel."""
        if not records:
            return
        for portion in portions(records):
            last = self._segments[-1]
            if last.size >= self._segment_bytes and last.first < self.next:
                self.begin_segment()
            self._append(portion)

    def _append(self, records: Sequence[bytes]) -> None:
        segment = self._segments[-1]
        block = packed(records, self.next, self.synced, segment.salt)
        _write(self._file, block)
        self._vouched = self.synced
        segment.grow(self.next, len(block))
        self.next += len(records)

    def unvouched(self) -> bool:
        """Whether records were synced since the last block was written."""
        return self._vouched < self.synced

    def vouch(self) -> None:
        """Write down how far everything was synced, so that damage there can be told from a torn end."""
        self._append(())

    def sync(self) -> None:
        """Everything so far outlives a crash when this returns."""
        os.fdatasync(self._file)
        with self._lock:
            self.synced = self.next

    def begin_segment(self) -> None:
        """What follows goes to a new segment."""
        self.sync()
        self.close()
        self._file = self._begin_segment(self._segments[-1].number + 1)

    def drop(self, before: int) -> None:
        """Delete segments that have only records before a position. What is behind it has to be synced."""
        old = [
            segment
            for segment, later in zip(self._segments, self._segments[1:], strict=False)
            if later.first <= before
        ]
        if not old:
            return
        with self._lock:
            del self._segments[: len(old)]
        for segment in old:
            segment.path.unlink()
        sync_folder(self._folder)

    def replace(self, records: Iterable[bytes]) -> None:
        """Have these in the place of all that is there, and sync them.

        A crash leaves what was there, and perhaps a part of these behind it. Where the disk has no room for
        both, raises OSError, and what was there is left; then the log must not be used any more.
        """
        kept, before = self._segments[-1].number, self.next
        try:
            self.begin_segment()
            some: list[bytes] = []
            size = 0
            for record in records:
                some.append(record)
                size += len(record)
                if size > _PORTION:
                    self.append(some)
                    some, size = [], 0
            self.append(some)
            self.sync()
        except OSError:
            self.close()
            for number in reversed(
                self._all_numbers()
            ):  # the newest first: a gap would drop what is before it
                if number > kept:
                    self._path(number).unlink()
            sync_folder(self._folder)
            raise
        self.drop(before)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin_segment(self, number: int) -> int:
        """A new file, whose header outlives a crash before anything follows it."""
        path = self._path(number)
        salt = int.from_bytes(os.urandom(4), "little")
        file = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        try:
            _write(file, _header(self.next, salt))
            os.fsync(file)
            sync_folder(self._folder)
        except BaseException:
            os.close(file)
            raise
        with self._lock:
            self._segments.append(Segment(path, number, self.next, salt))
        return file

    def _open_last(self) -> int:
        """The last segment, to append to. What was read from it outlives a crash from now on."""
        file = os.open(self._segments[-1].path, _FLAGS)
        try:
            os.fsync(file)
            sync_folder(self._folder)
        except BaseException:
            os.close(file)
            raise
        return file

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:010}{SUFFIX}"


class StoredRecords(Sequence[bytes]):
    """Records of a log, which are read where they are wanted."""

    def __init__(self, log: SegmentLog, first: int, end: int) -> None:
        self._log, self._first, self._end = log, first, end

    def __len__(self) -> int:
        return self._end - self._first

    def __iter__(self) -> Iterator[bytes]:
        position = self._first
        while position < self._end:
            found = self._log.read(position, _PORTION)[: self._end - position]
            yield from found
            position += len(found)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        positions = range(self._first, self._end)[index]
        if isinstance(positions, int):
            return self._log.read(positions, 0)[0]
        return [self._log.read(position, 0)[0] for position in positions]


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_PORTION = 1 << 20


def _header(first: int, salt: int) -> bytes:
    return MAGIC + _HEADER.pack(first, salt, crc32(struct.pack("<QI", first, salt)))


def header_of(data: bytes) -> tuple[int, int] | None:
    """The position of the first record, and the salt."""
    if len(data) < HEADER_BYTES:
        return None
    first, salt, _ = _HEADER.unpack_from(data, len(MAGIC))
    return (first, salt) if data.startswith(MAGIC) and data[:HEADER_BYTES] == _header(first, salt) else None


def _interrupted(data: bytes) -> bool:
    """Whether this is what a crash leaves of a file whose header was not synced yet."""
    return len(data) <= HEADER_BYTES and (MAGIC.startswith(data[: len(MAGIC)]) or not any(data))


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
