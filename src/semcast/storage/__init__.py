"""Live disks: a log of records for each member, with group commit."""

from semcast.storage.disk import LiveDisk, open_disk
from semcast.storage.errors import StorageError
from semcast.storage.folder import MemberFolder
from semcast.storage.segments import SegmentLog

__all__ = ["LiveDisk", "MemberFolder", "SegmentLog", "StorageError", "open_disk"]
