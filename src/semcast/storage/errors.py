"""What can go wrong with a disk."""

import errno
from pathlib import Path


class StorageError(Exception):
    """Records cannot be kept, or read; says where and why. The member that depends on them ends."""


class FullError(StorageError):
    """The disk has no room. Once it has, the same program goes on where it was."""


class DamageError(StorageError):
    """Records that were synced are not what they were."""


class TrimmedError(StorageError):
    """Records were asked for that were given up.

    Args:
        asked: the position.
        first: of the first record that is there.
    """

    def __init__(self, asked: int, first: int) -> None:
        super().__init__(f"record {asked} is gone: the log begins with {first}")
        self.first = first


def failed(path: Path | str, error: OSError) -> StorageError:
    """What the system says of a file or folder."""
    kind = FullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
    return kind(f"{path}: {error.strerror}")
