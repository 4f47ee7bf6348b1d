"""Journals that are still written: what came since the last look, as far as it is whole."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from semcast.history.blocks import Block, MalformedRowError
from semcast.history.decoding import decode, rows_of
from semcast.history.events import Event, HistoryError, RunInfo
from semcast.history.journal import FRAME, MAGIC, Chunk, crash_mark, process_of
from semcast.history.replay import BLOCK_ROWS, header_info
from semcast.history.schema import Kind

_MOST = 1 << 22
"""Bytes that are read at a time."""


class Following:
    """One journal, from its header on. No more than a few megabytes of it are held."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process = process_of(path)
        self.info: RunInfo | None = None
        """None until the header is there."""
        self.ended = False
        """Whether the journal says that the process ended, or a mark says that it crashed."""
        self.position = 0
        """Bytes that were read."""
        self._block: Block | None = None
        self._decode = msgspec.msgpack.Decoder(Chunk).decode

    def unread(self) -> int:
        """Bytes that are there, and were not read yet."""
        return self.path.stat().st_size - self.position

    def read(self) -> Iterator[list[Event]]:
        """What came since the last call. Raises HistoryError where the journal is damaged."""
        marked = crash_mark(self.path).exists()  # before the last rows are read, so that none come after it
        for payload in self._chunks():
            if self._block is None:
                self._begin(payload)
                continue
            try:
                chunk = self._decode(payload)
                if self.ended:
                    raise HistoryError(f"{self.path}: rows after the end")
                for row in chunk.rows:
                    self._block.take[type(row)](chunk.at, row)
            except (msgspec.DecodeError, MalformedRowError) as error:
                raise HistoryError(f"{self.path}: {error}") from error
            if chunk.ended and not self._listed():
                self._block.end(chunk.at, Kind.LEFT)
            self.ended = chunk.ended
            if len(self._block) >= BLOCK_ROWS:
                yield self._flush()
        if marked and self._block is not None and not self.ended:
            self._block.end(crash_mark(self.path).stat().st_mtime_ns, Kind.CRASH)
            self.ended = True
        if self._block is not None and len(self._block):
            yield self._flush()

    def _begin(self, payload: bytes) -> None:
        self.info = header_info(self.path, self.process, payload)
        if self.info is None:
            raise HistoryError(f"{self.path}: no readable header")
        self._block = Block(self.info.run, self.info.only.name, self.process)

    def _listed(self) -> bool:
        return self.info is not None and bool(self.info.only.members)

    def _flush(self) -> list[Event]:
        assert self._block is not None
        try:
            return [decode(row) for row in rows_of(self._block.flush())]
        except MalformedRowError as error:
            raise HistoryError(f"{self.path}: {error}") from error

    def _chunks(self) -> Iterator[bytes]:
        """Whole chunks; what is not whole yet is read again the next time."""
        with self.path.open("rb") as file:
            room = _MOST
            while True:
                file.seek(self.position)
                data = file.read(room)
                place = self._after_magic(data)
                room = _MOST
                while place + FRAME.size <= len(data):
                    length, checksum = FRAME.unpack_from(data, place)
                    end = place + FRAME.size + length
                    if end > len(data):
                        room = max(room, end)
                        break
                    payload = data[place + FRAME.size : end]
                    if zlib.crc32(payload) != checksum:
                        raise HistoryError(f"{self.path}: damaged at byte {self.position + place}")
                    yield payload
                    place = end
                self.position += place
                if file.seek(0, 2) - self.position < min(room, FRAME.size) or (not place and room == _MOST):
                    return
                if room > _MOST and file.seek(0, 2) - self.position < room:
                    return  # a large chunk that is not whole yet

    def _after_magic(self, data: bytes) -> int:
        """Where the first chunk begins in what was read."""
        if self.position or len(data) < len(MAGIC):
            return 0
        if data[: len(MAGIC)] != MAGIC:
            raise HistoryError(f"{self.path}: not a journal")
        return len(MAGIC)
