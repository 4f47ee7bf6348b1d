"""Live disks: logs of records for each member, with group commit."""

from semcast.storage.disk import LiveDisk, open_disk
from semcast.storage.errors import DamageError, FullError, StorageError, TrimmedError
from semcast.storage.folder import MemberFolder
from semcast.storage.livelog import LiveLog
from semcast.storage.segments import SegmentLog

__all__ = [
    "DamageError",
    "FullError",
    "LiveDisk",
    "LiveLog",
    "MemberFolder",
    "SegmentLog",
    "StorageError",
    "TrimmedError",
    "open_disk",
]
