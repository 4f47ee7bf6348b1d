"""A log as its folder has it: to list, to check and to replay, whether its logger runs or not."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from semcast.core.ids import MemberId
from semcast.core.messages import Message
from semcast.logger.status import LogStatus, status_of
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.keys import Keys
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import decode
from semcast.protocols.gossip.rows import Rows
from semcast.protocols.gossip.shelf import Cache, ReadBack
from semcast.storage.errors import StorageError
from semcast.storage.looking import Look, members_in

_CACHE = 1 << 24
"""Bytes of messages that are kept in memory; all others stay on disk."""


def books_of(read: ReadBack, keys: int) -> Books:
    """Books for a log that is read from a disk: messages stay there.

    Args:
        read: reads records back.
        keys: how many keys of batches are remembered.
    """
    cache = Cache(_CACHE)
    cache.read = read
    return Books(LogStream, Rows(), Keys(keys), cache)


def settle(books: Books) -> None:
    """All records were read: what is there is logged."""
    for stream in books.streams.values():
        stream.advance()
        stream.logged = stream.contiguous


class LogFolder:
    """The log of one group.

    Args:
        path: of its folder.
        group: the name of the group.
        logger: the name of the logger.
    """

    def __init__(self, path: Path, group: str, logger: str) -> None:
        self.path = path
        self.group = group
        self.logger = logger
        self.records = 0
        self.bytes = 0
        self.torn = 0
        """Bytes at the end that a crash interrupted, or that are being written."""
        self._books: Books | None = None

    def books(self) -> Books:
        """What is in it. Raises StorageError where it is damaged, or no log of a logger."""
        if self._books is None:
            look = Look(self.path)
            books = books_of(look.read, 1)
            for data in look:
                books.cache.synced = look.next
                try:
                    books.replay(0, decode(data), look.next - 1)
                except msgspec.MsgspecError as error:
                    raise StorageError(
                        f"{self.path}: record {self.records} was not written by a logger: {error}"
                    ) from error
                self.records += 1
            settle(books)
            self.bytes, self.torn = look.bytes, look.torn
            self._books = books
        return self._books

    def status(self) -> LogStatus:
        """The same as its logger says of itself."""
        return status_of(self.books())

    def messages(self, sender: str = "", first: int = 0) -> Iterator[Message]:
        """What is in the log, by position, as it was written; then what has no position yet.

        Args:
            sender: of this name only.
            first: of each stream only from this number on.
        """
        books = self.books()
        for run in books.positions.runs():
            stream = books.streams.get(run.sender)
            if stream is not None and sender in ("", run.sender.name):
                yield from _each(stream, range(max(first, run.first), run.last + 1))
        for stream in _ordered(books):
            if sender in ("", stream.sender.name):
                begin = max(first, _placed(books, stream) + 1)
                yield from _each(stream, sorted(seq for seq in stream.messages if seq >= begin))


def _each(stream: LogStream, seqs: Iterable[int]) -> Iterator[Message]:
    for seq in seqs:
        batch = stream.messages.get(seq)
        if batch is not None:
            yield from batch.messages()


def _placed(books: Books, stream: LogStream) -> int:
    """Up to which number messages of a stream have positions."""
    return max((run.last for run in books.positions.within(stream.sender, 1, stream.known)), default=0)


def _ordered(books: Books) -> list[LogStream]:
    return [books.streams[sender] for sender in sorted(books.streams, key=_began)]


def _began(sender: MemberId) -> tuple[int, str]:
    return sender.incarnation, sender.name


def log_folders(data: Path) -> list[LogFolder]:
    """All logs in the folder of a logger. Raises StorageError where it is none."""
    if not data.is_dir():
        raise StorageError(f"{data}: there is no such folder")
    found = [LogFolder(path, owner.group, owner.name) for path, owner in members_in(data)]
    if not found:
        raise StorageError(f"{data}: there is no log in it")
    return found
