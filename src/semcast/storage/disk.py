"""The disk of a live member: a folder that one process holds, its incarnations, and its logs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from semcast.core.outbox import Write
from semcast.storage.errors import StorageError, TrimmedError, failed
from semcast.storage.folder import RESERVED, MemberFolder
from semcast.storage.livelog import LiveLog
from semcast.storage.segments import SegmentLog


def open_disk(data: Path, group: str, name: str, now: int) -> "LiveDisk":
    """The disk of a member, which no other process may use until it is closed.

    Args:
        data: folder of all members of this host.
        group: the name of the group.
        name: the member's.
        now: its incarnation, unless the folder knows of one that is not smaller.
    """
    folder = MemberFolder(data, group, name)
    try:
        incarnation = folder.incarnation(now)
        return LiveDisk(folder, _open_log(folder.path), incarnation)
    except BaseException:
        folder.close()
        raise


class LiveDisk:
    """Made by `open_disk`. What a stack writes goes to its first log; there may be others beside it.

    Args:
        folder: held by this process.
        log: in it.
        incarnation: of the member, now.
    """

    def __init__(self, folder: MemberFolder, log: LiveLog, incarnation: int) -> None:
        self.incarnation = incarnation
        """Of the member, now: greater than any that used the folder before."""
        self._folder = folder
        self._log = log
        self._beside: dict[str, LiveLog] = {}

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def records(self) -> Sequence[bytes]:
        """What was there."""
        return self._log.records

    @property
    def first(self) -> int:
        """The position of the first of these."""
        return self._log.first

    @property
    def wake(self) -> Callable[[], None]:
        """Called by a thread when `take` has something to say."""
        return self._log.wake

    @wake.setter
    def wake(self, wake: Callable[[], None]) -> None:
        self._log.wake = wake

    @property
    def before_sync(self) -> Callable[[], None]:
        """Called by a thread before it syncs what the stack wrote (see `LiveLog.before_sync`)."""
        return self._log.before_sync

    @before_sync.setter
    def before_sync(self, wait: Callable[[], None]) -> None:
        self._log.before_sync = wait

    def store(self, writes: Sequence[Write]) -> None:
        """Have records written, in order. They must not change any more."""
        self._log.store(writes)

    def ready(self) -> bool:
        """Whether `take` has something to say."""
        return self._log.ready()

    def take(self) -> list[int]:
        """Tickets of syncs that were done since. Raises what happened to the disk, if it is of no use now."""
        return self._log.take()

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on (see `LiveLog.read`), in any thread."""
        return self._log.read(first, most)

    def read_back(self, first: int, most: int) -> list[bytes]:
        """The same for a stack; nothing if the first was given up."""
        try:
            return self._log.read(first, most)
        except TrimmedError:
            return []

    def log(self, name: str) -> LiveLog:
        """Another log in this folder, with a thread and positions of its own; closed with the disk."""
        if name in self._beside:
            raise StorageError(f"{self._folder.path}: the log {name!r} is open already")
        path = self._folder.beside(name)
        self._beside[name] = opened = _open_log(path)
        return opened

    def renew(self) -> int:
        """Another incarnation goes on, which is returned. It never hears of syncs of the former."""
        self.incarnation += 1
        upto = self.incarnation + RESERVED
        self._log.renew(lambda: self._folder.reserve(upto))
        return self.incarnation

    def close(self) -> None:
        """Write what was handed over, and let go of the folder. After the loop has ended."""
        for log in (self._log, *self._beside.values()):
            log.close()
        self._folder.close()


def _open_log(path: Path) -> LiveLog:
    try:
        return LiveLog(path, SegmentLog(path))
    except OSError as error:
        raise failed(error.filename or path, error) from error
