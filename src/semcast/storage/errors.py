"""What can go wrong with a disk."""


class StorageError(Exception):
    """Records cannot be kept, or read; says where and why. The member that depends on them ends."""
