"""Drops the oldest messages of a log whose logger does not run; whoever asks for them is told that."""

from pathlib import Path

from semcast.logger.offline import LogFolder
from semcast.protocols.gossip.records import Expired, encode
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
    folder = MemberFolder(data, log.group, log.logger)
    try:
        records, dropped = [], 0
        for sender, stream in sorted(log.books().streams.items()):
            there = sorted(seq for seq in stream.messages if seq <= stream.logged)
            old = there[: max(0, len(stream.messages) - keep)]
            if old:
                records.append(encode(Expired(sender, spans_of(old))))
                dropped += len(old)
        if records:
            segments = SegmentLog(folder.path)
            try:
                segments.append(records)
                segments.sync()
            finally:
                segments.close()
        return dropped
    except OSError as error:
        raise StorageError(f"{error.filename or folder.path}: {error.strerror}") from error
    finally:
        folder.close()
