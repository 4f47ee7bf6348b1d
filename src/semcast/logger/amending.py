"""Writes to a log whose logger does not run: drops its oldest messages, or has it go on without another."""

from collections.abc import Sequence
from pathlib import Path

from semcast.logger.offline import LogFolder
from semcast.protocols.gossip.records import Expired, Forgot, Record, encode
from semcast.protocols.gossip.spans import spans_of
from semcast.storage.errors import StorageError
from semcast.storage.folder import MemberFolder
from semcast.storage.segments import SegmentLog


def trim(data: Path, log: LogFolder, keep: int) -> int:
    """Leave so many messages of each stream; returns how many were dropped.

    Sessions that lack them are told that they expired. Raises StorageError where the logger runs.

    Args:
        data: folder of the logger.
        log: of one group in it.
        keep: messages of each stream that stay.
    """
    folder = _held(data, log)
    try:
        records: list[Record] = []
        dropped = 0
        for sender, stream in sorted(log.books().streams.items()):
            there = sorted(seq for seq in stream.messages if seq <= stream.logged)
            old = there[: max(0, len(stream.messages) - keep)]
            if old:
                records.append(Expired(sender, spans_of(old)))
                dropped += len(old)
        _append(folder, records)
        return dropped
    finally:
        folder.close()


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
    if not records:
        return
    try:
        segments = SegmentLog(folder.path)
        try:
            segments.append([encode(record) for record in records])
            segments.sync()
        finally:
            segments.close()
    except OSError as error:
        raise StorageError(f"{error.filename or folder.path}: {error.strerror}") from error
