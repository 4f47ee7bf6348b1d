"""Reading journals: chunk by chunk, as far as they are sound, into blocks of columns.

However long a journal is, no more than a block of it is held.
"""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa

from semcast.core.ids import MemberId, Nanos
from semcast.history.blocks import Block, MalformedRowError
from semcast.history.decoding import decode, rows_of
from semcast.history.events import Event, HistoryError, RunInfo
from semcast.history.journal import (
    FRAME,
    MAGIC,
    Chunk,
    Header,
    Row,
    crash_mark,
    process_of,
)
from semcast.history.schema import Kind
from semcast.history.versions import RunInfo1, check_version

BLOCK_ROWS = 1 << 16
_CUT_OFF, _DAMAGED = "its journal is cut off", "its journal is damaged"


class _Header1(msgspec.Struct, array_like=True):
    version: int
    process: MemberId
    info: RunInfo1


class JournalContents(msgspec.Struct, frozen=True):
    """What can be read of a journal."""

    process: MemberId
    info: RunInfo | None
    """None if not even the header can be read."""
    events: list[Event]
    unknown: str | None
    """Why it is not known what the process did after its last event; None if that was its end."""


def read_journal(path: Path) -> JournalContents:
    """Read as far as the journal is sound."""
    with Replay(path) as replay:
        events = [decode(row) for block in replay.blocks() for row in rows_of(block)]
        return JournalContents(replay.process, replay.info, events, replay.unknown)


class Replay:
    """One journal, from its header to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process = process_of(path)
        self.unknown: str | None = None
        """Why it is not known what the process did after its last row; to be asked after the last block."""
        self.seen: set[MemberId] = set()
        """The members of its views, those that have been read."""
        self._at: Nanos = 0
        self._ended = False
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise HistoryError(f"{path}: {error.strerror}") from error
        self._chunks = self._sound_chunks(self._file)
        header = next(self._chunks, None)
        try:
            self.info = None if header is None else header_info(path, self.process, header)
        except HistoryError:
            self._file.close()
            raise

    def __enter__(self) -> "Replay":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def blocks(self) -> Iterator[pa.Table]:
        """Its rows, in tables of some `BLOCK_ROWS` rows with the columns of the schema."""
        if self.info is None:
            self.unknown = self.unknown or "its journal has no readable header"
            return
        group = self.info.only
        block = Block(self.info.run, group.name, self.process)
        self.seen = block.seen
        take = block.take
        try:
            for at, rows in self._moments():
                for row in rows:
                    take[type(row)](at, row)
                if len(block) >= BLOCK_ROWS:
                    yield block.flush()
            end = self._end(listed=bool(group.members))
            if end is not None:
                block.end(*end)
            if len(block):
                yield block.flush()
        except MalformedRowError as error:
            raise HistoryError(f"{self.path}: {error}") from error

    def _sound_chunks(self, file: BinaryIO) -> Iterator[bytes]:
        """The chunks up to the first that is not whole."""
        left = file.seek(0, 2)
        file.seek(0)
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            self.unknown = _DAMAGED if left > len(MAGIC) else _CUT_OFF
            return
        left -= len(MAGIC)
        while left:
            left -= FRAME.size
            if left < 0:
                self.unknown = _CUT_OFF
                return
            length, checksum = FRAME.unpack(file.read(FRAME.size))
            left -= length
            if left < 0:
                self.unknown = _CUT_OFF
                return
            payload = file.read(length)
            if zlib.crc32(payload) != checksum:
                self.unknown = _DAMAGED
                return
            yield payload

    def _moments(self) -> Iterator[tuple[Nanos, Sequence[Row]]]:
        """Rows with their time, up to the first chunk that is none, or comes after the end."""
        decode_chunk = msgspec.msgpack.Decoder(Chunk).decode
        for payload in self._chunks:
            try:
                chunk = decode_chunk(payload)
            except msgspec.DecodeError:
                self.unknown = _DAMAGED
                return
            if self._ended:
                self.unknown = _DAMAGED
                return
            self._at, self._ended = chunk.at, chunk.ended
            yield chunk.at, chunk.rows

    def _end(self, *, listed: bool) -> tuple[Nanos, Kind] | None:
        """How the process ended: by itself, under the eyes of a supervisor, or nobody knows.

        Where members come and go, one that ended has left. In a group with a list of members it owes
        what it owed before.
        """
        if self._ended:
            return None if listed else (self._at, Kind.LEFT)
        marker = crash_mark(self.path)
        if self.unknown is None and marker.exists():
            return marker.stat().st_mtime_ns, Kind.CRASH
        self.unknown = self.unknown or "its journal has no end"
        return None


def header_info(path: Path, process: MemberId, payload: bytes) -> RunInfo | None:
    """What the first chunk of a journal says of its run; None if it cannot be read."""
    try:
        version = msgspec.msgpack.decode(msgspec.msgpack.decode(payload, type=list[msgspec.Raw])[0])
        check_version(path, version)
        if version == 1:
            old = msgspec.msgpack.decode(payload, type=_Header1)
            found, info = old.process, old.info.today()
        else:
            header = msgspec.msgpack.decode(payload, type=Header)
            found, info = header.process, header.info
    except (msgspec.DecodeError, IndexError):
        return None
    if found != process:
        raise HistoryError(f"{path}: a journal of {found} under the name of {process}")
    if len(info.groups) != 1:
        raise HistoryError(f"{path}: a journal of {len(info.groups)} groups; it is of a process in one")
    return info
