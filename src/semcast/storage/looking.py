"""Reads a log without touching it: no lock is taken, nothing is cut, nobody is in the way."""

from collections.abc import Iterator
from pathlib import Path

from semcast.storage.errors import StorageError
from semcast.storage.folder import OWNER, Owner, owner_of
from semcast.storage.segments import (
    HEADER_BYTES,
    MAGIC,
    SUFFIX,
    ReadingBack,
    Segment,
    header_of,
    segment_of,
)
from semcast.wire.records import DamagedError, records_of, whole_blocks


class Look:
    """The records in a folder, read when it is iterated over; a logger may be writing meanwhile.

    After that, records can be read back by their position.

    Raises StorageError where what was synced is damaged, or vanishes because the log is written anew.

    Args:
        folder: of the segment files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.bytes = 0
        """Of all segments that were read."""
        self.segments = 0
        self.torn = 0
        """Bytes at the end that are no whole block: a crash interrupted them, or they are being written."""
        self.next = 0
        """The position of the next record."""
        self._found: list[Segment] = []
        self._back = ReadingBack()

    def read(self, first: int, most: int) -> list[bytes]:
        """Records that were iterated over, from a position on: at least one, then as many as fit."""
        if not self._found or not self._found[0].first <= first < self.next:
            return []
        segment = segment_of(self._found, first)
        try:
            return self._back.read(segment, first, self.next, most)
        except OSError as error:
            raise _unreadable(segment.path, error) from error

    def __iter__(self) -> Iterator[bytes]:
        paths = self._paths()
        position: int | None = None
        for path in paths:
            last = path == paths[-1]
            data = _read(path)
            header = header_of(data)
            if header is None and last:
                self.torn = len(data)
                return
            if header is None:
                raise _damaged(path, len(MAGIC))
            if position is not None and header[0] != position:
                raise StorageError(f"{path} begins with record {header[0]}, and {position} was to come")
            position = self.next = header[0]
            end = HEADER_BYTES
            segment = Segment(path, int(path.stem), *header)
            self._found.append(segment)
            try:
                for block in whole_blocks(data, *header, HEADER_BYTES):
                    segment.grow(block.first, block.end - block.offset)
                    for record in records_of(data, block):
                        self.next += 1
                        yield record
                    position, end = block.next, block.end
            except DamagedError as error:
                raise _damaged(path, error.offset) from error
            if end < len(data) and not last:
                raise _damaged(path, end)
            self.bytes += len(data)
            self.segments += 1
            self.torn = len(data) - end
            del data  # before the next file is read

    def _paths(self) -> list[Path]:
        """Segments that count: from a gap back, all are to be deleted."""
        try:
            files = [path for path in self._folder.glob(f"*{SUFFIX}") if path.stem.isdecimal()]
        except OSError as error:
            raise StorageError(f"{self._folder}: {error.strerror}") from error
        found = {int(path.stem): path for path in files}
        numbers = sorted(found)
        keep = next((number for number in reversed(numbers) if number - 1 not in found), 0)
        return [found[number] for number in numbers if number >= keep]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return StorageError(f"{path} is gone: the log is being written anew; look again")
    return StorageError(f"{path}: {error.strerror}")


def _damaged(path: Path, offset: int) -> StorageError:
    return StorageError(f"{path} is damaged at byte {offset}: these records were synced")


def members_in(data: Path) -> list[tuple[Path, Owner]]:
    """The folders of members in a folder of all members of a host, and whose they are."""
    try:
        return [(path.parent, owner_of(path)) for path in sorted(data.glob(f"*/*/{OWNER}"))]
    except OSError as error:
        raise StorageError(f"{data}: {error.strerror}") from error
