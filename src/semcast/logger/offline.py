"""A log as its folder has it: to list, to check and to replay, whether its logger runs or not."""

from collections.abc import Iterator
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
from semcast.storage.errors import StorageError
from semcast.storage.looking import Look, members_in


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
            look, books = Look(self.path), Books(LogStream, Rows(), Keys(1))
            for data in look:
                try:
                    books.replay(0, decode(data))
                except msgspec.MsgspecError as error:
                    raise StorageError(
                        f"{self.path}: record {self.records} was not written by a logger: {error}"
                    ) from error
                self.records += 1
            for stream in books.streams.values():
                stream.advance()
                stream.logged = stream.contiguous
            self.bytes, self.torn = look.bytes, look.torn
            self._books = books
        return self._books

    def status(self) -> LogStatus:
        """The same as its logger says of itself."""
        return status_of(self.books())

    def messages(self, sender: str = "", first: int = 0) -> Iterator[Message]:
        """What is in the log, stream by stream.

        Args:
            sender: of this name only.
            first: of each stream only from this number on.
        """
        for stream in _ordered(self.books()):
            if sender and stream.sender.name != sender:
                continue
            for seq in sorted(seq for seq in stream.messages if seq >= first):
                yield from stream.messages[seq].messages()


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
