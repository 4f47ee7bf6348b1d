"""Reads a log without touching it: no lock is taken, nothing is cut, nobody is in the way."""

from collections.abc import Iterator
from pathlib import Path

from semcast.storage.errors import StorageError
from semcast.storage.folder import OWNER, Owner, owner_of
from semcast.storage.segments import HEADER_BYTES, MAGIC, SUFFIX, header_of
from semcast.wire.records import DamagedError, records_of, whole_blocks


class Look:
    """The records in a folder, read when it is iterated over; a logger may be writing meanwhile.

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
            position, end = header[0], HEADER_BYTES
            try:
                for block in whole_blocks(data, *header, HEADER_BYTES):
                    yield from records_of(data, block)
                    position, end = block.next, block.end
            except DamagedError as error:
                raise _damaged(path, error.offset) from error
            if end < len(data) and not last:
                raise _damaged(path, end)
            self.bytes += len(data)
            self.segments += 1
            self.torn = len(data) - end

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
    except FileNotFoundError:
        raise StorageError(f"{path} is gone: the log is being written anew; look again") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def _damaged(path: Path, offset: int) -> StorageError:
    return StorageError(f"{path} is damaged at byte {offset}: these records were synced")


def members_in(data: Path) -> list[tuple[Path, Owner]]:
    """The folders of members in a folder of all members of a host, and whose they are."""
    try:
        return [(path.parent, owner_of(path)) for path in sorted(data.glob(f"*/*/{OWNER}"))]
    except OSError as error:
        raise StorageError(f"{data}: {error.strerror}") from error
