"""What can go wrong with a disk."""


class StorageError(Exception):
    """Records cannot be kept, or read; says where and why. The member that depends on them ends."""


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
