"""A log of records in segment files, written by one thread.

A crash leaves a prefix of what was written, with everything that was synced in it: a record that is not whole
is where the log ends. A segment is synced before the next one begins, and older ones are deleted only after
the newer one was synced, so that there is never a hole between two records.
"""

import logging
import os
from pathlib import Path

from semcast.storage.errors import StorageError
from semcast.storage.folder import sync_folder
from semcast.wire.records import framed, read_records

MAGIC = b"semcast log 1\n"
_SUFFIX = ".log"
_LOG = logging.getLogger("semcast.storage")


class SegmentLog:
    """The log in one folder. Nobody else may use the folder meanwhile.

    Raises OSError where the disk is full or broken: then it must not be used any more.

    Args:
        folder: where the files are. What is there is read and, if its end is torn, cut.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.records: list[bytes] = []
        """What was there."""
        self._first, self._last = self._read()
        """Numbers of the oldest segment and of the one that is written to."""
        self._new = True  # the folder may not know of the last segment after a crash
        self._file = self._open()

    # Reading

    def _read(self) -> tuple[int, int]:
        numbers = self._numbers()
        for number in numbers:
            self._read_segment(number, last=number == numbers[-1])
        return (numbers[0], numbers[-1]) if numbers else (1, 1)

    def _numbers(self) -> list[int]:
        """Segments that count: from a gap back, all were to be deleted."""
        found = sorted(int(path.stem) for path in self._folder.glob(f"*{_SUFFIX}") if path.stem.isdecimal())
        keep = next((n for n in reversed(found) if n - 1 not in found), 0)
        for number in found:
            if number < keep:
                self._path(number).unlink()
        return [number for number in found if number >= keep]

    def _read_segment(self, number: int, *, last: bool) -> None:
        path = self._path(number)
        data = path.read_bytes()
        if not MAGIC.startswith(data[: len(MAGIC)]):
            raise StorageError(f"{path} is not a log of this version")
        records, whole = read_records(memoryview(data)[len(MAGIC) :])
        self.records += records
        whole = whole + len(MAGIC) if len(data) >= len(MAGIC) else 0
        if whole == len(data) and whole:
            return
        if not last:
            raise StorageError(
                f"{path} is damaged at byte {whole}: a later segment began after it was synced"
            )
        if whole < len(data):
            _LOG.warning(
                "%s: cut off %d bytes of a record that a crash interrupted; %d records are left",
                path,
                len(data) - whole,
                len(self.records),
            )
        os.truncate(path, whole)

    # Writing

    def append(self, records: list[bytes]) -> None:
        """Hand records to the kernel."""
        _write(self._file, b"".join(map(framed, records)))

    def sync(self) -> None:
        """Everything so far outlives a crash when this returns."""
        os.fdatasync(self._file)
        if self._new:
            sync_folder(self._folder)
            self._new = False

    def begin_anew(self) -> int:
        """What follows goes to a new segment; returns its number."""
        self.sync()
        self.close()
        self._last += 1
        self._file = self._open()
        return self._last

    def forget(self, number: int) -> None:
        """Delete the segments before this one. It has to be synced."""
        if self._first < number:
            for each in range(self._first, number):
                self._path(each).unlink()
            self._first = number
            sync_folder(self._folder)

    @property
    def segment(self) -> int:
        """The one that is written to."""
        return self._last

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> int:
        """The last segment, to append to. What was read from it outlives a crash from now on."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self._path(self._last), flags, 0o600)
        try:
            if os.fstat(file).st_size == 0:
                _write(file, MAGIC)
                self._new = True
            else:
                os.fsync(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:010}{_SUFFIX}"


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
