"""Writes to a log whose logger does not run: drops its oldest messages, or has it go on without another."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from semcast.logger.offline import LogFolder, books_of, settle
from semcast.logger.spare import give_up_spare, keep_spare
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.records import Forgot, Record, decode, encode
from semcast.protocols.gossip.spans import spans_of
from semcast.storage.errors import FullError, StorageError, failed
from semcast.storage.folder import MemberFolder
from semcast.storage.segments import SegmentLog

_KEYS = 1 << 20
"""Of batches: more than any logger keeps."""


def trim(data: Path, log: LogFolder, keep: int) -> int:
    """Leave so many messages of each stream; returns how many were dropped.

    What stays is written anew, and only then is anything deleted: so the disk has more room afterwards. Where
    it has none for that, the spare room of the logger is used. Sessions that lack what was dropped are told
    that it expired. Raises StorageError where the logger runs, and FullError where nothing could be done.

    Args:
        data: folder of the logger.
        log: of one group in it.
        keep: messages of each stream that stay.
    """
    log.books()  # raises where this is no log of a logger
    folder = _held(data, log)
    try:
        try:
            return _trim(folder.path, keep)
        except FullError:
            give_up_spare(data)
            return _trim(folder.path, keep)
    except FullError as error:
        raise FullError(
            f"{error}: nothing was trimmed, since what stays is written first. Make room, or keep fewer"
        ) from error
    finally:
        keep_spare(data)
        folder.close()


def _trim(path: Path, keep: int) -> int:
    try:
        segments = SegmentLog(path)
        try:
            books = _read(segments)
            dropped = _drop(books, keep)
            if dropped:
                segments.replace(_encoded(books.records()))
            return dropped
        finally:
            segments.close()
    except OSError as error:
        raise failed(error.filename or path, error) from error


def _read(segments: SegmentLog) -> Books:
    """As a logger does that starts; messages stay on disk."""
    books = books_of(segments.read, _KEYS)
    for position, data in enumerate(segments.records, segments.first):
        books.cache.synced = position + 1
        books.replay(0, decode(data), position)
    settle(books)
    return books


def _drop(books: Books, keep: int) -> int:
    dropped = 0
    for _, stream in sorted(books.streams.items()):
        there = sorted(seq for seq in stream.messages if seq <= stream.logged)
        old = there[: max(0, len(stream.messages) - keep)]
        if old:
            books.expire(stream, spans_of(old))
            dropped += len(old)
    return dropped


def _encoded(records: Iterable[Record]) -> Iterable[bytes]:
    return map(encode, records)


def forget(data: Path, log: LogFolder, logger: str) -> None:
    """When it starts, the logger goes on without another one, and tells all others.

    Raises StorageError where it runs, or is told to forget itself.

    Args:
        data: folder of the logger.
        log: of one group in it.
        logger: the name of the one that never comes back.
    """
    if logger == log.logger:
        raise StorageError(f"{data} is the folder of {logger}: another logger must forget it")
    folder = _held(data, log)
    try:
        if logger not in log.books().forgotten:
            _append(folder, [Forgot(logger)])
    finally:
        folder.close()


def _held(data: Path, log: LogFolder) -> MemberFolder:
    try:
        return MemberFolder(data, log.group, log.logger)
    except OSError as error:
        raise StorageError(f"{error.filename or data}: {error.strerror}") from error


def _append(folder: MemberFolder, records: Sequence[Record]) -> None:
    try:
        segments = SegmentLog(folder.path)
        try:
            segments.append([encode(record) for record in records])
            segments.sync()
        finally:
            segments.close()
    except OSError as error:
        raise StorageError(f"{error.filename or folder.path}: {error.strerror}") from error
