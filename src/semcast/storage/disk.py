"""The disk of a live member: a thread that writes, so that the loop never waits for it.

Whatever was handed over while one sync was under way is written and synced together next (group commit).
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from semcast.core.outbox import Anew, Sync, Write
from semcast.storage.errors import StorageError
from semcast.storage.folder import RESERVED, MemberFolder
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
        log = SegmentLog(folder.path)
    except OSError as error:
        folder.close()
        raise StorageError(f"{error.filename or folder.path}: {error.strerror}") from error
    except BaseException:
        folder.close()
        raise
    return LiveDisk(folder, log, incarnation)


class LiveDisk:
    """Made by `open_disk`. All but the thread's own methods are called in the thread of a loop.

    Args:
        folder: held by this process.
        log: in it.
        incarnation: of the member, now.
    """

    def __init__(self, folder: MemberFolder, log: SegmentLog, incarnation: int) -> None:
        self.records: Sequence[bytes] = log.records
        """What was there."""
        self.incarnation = incarnation
        """Of the member, now: greater than any that used the folder before."""
        self.wake: Callable[[], None] = _nobody
        """Called by the thread when `take` has something to say."""
        self._folder, self._log = folder, log
        self._work: list[
            tuple[int, Write | int]
        ] = []  # with the renewals before it; a number is to be reserved
        self._changed = threading.Condition()
        self._closing = False
        self._done: deque[tuple[int, list[int]]] = deque()
        self._renewals = 0
        self._failure: StorageError | None = None
        self._thread: threading.Thread | None = None

    # In the thread of a loop

    def store(self, writes: Sequence[Write]) -> None:
        """Have records written, in order."""
        self._hand_over([(self._renewals, each) for each in writes])

    def ready(self) -> bool:
        """Whether `take` has something to say."""
        return bool(self._done) or self._failure is not None

    def take(self) -> list[int]:
        """Tickets of syncs that were done since. Raises what happened to the disk, if it is of no use now."""
        if self._failure is not None:
            raise self._failure
        tickets: list[int] = []
        while self._done:
            renewals, done = self._done.popleft()
            if renewals == self._renewals:
                tickets += done
        return tickets

    def renew(self) -> int:
        """Another incarnation goes on, which is returned. It never hears of syncs of the former."""
        self._renewals += 1
        self.incarnation += 1
        self._hand_over([(self._renewals, self.incarnation + RESERVED)])
        return self.incarnation

    def close(self) -> None:
        """Write what was handed over, and let go of the folder. After the loop has ended."""
        if self._thread is not None:
            with self._changed:
                self._closing = True
                self._changed.notify()
            self._thread.join()
            self._thread = None
        self._log.close()
        self._folder.close()

    def _hand_over(self, work: list[tuple[int, Write | int]]) -> None:
        with self._changed:
            self._work += work
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"semcast disk {self._folder.path}")
            self._thread.daemon = True
            self._thread.start()

    # The thread

    def _run(self) -> None:
        try:
            while work := self._next():
                self._commit(work)
        except OSError as error:
            where = error.filename or self._folder.path
            self._failure = StorageError(f"{where}: {error.strerror}: nothing can be kept any more")
        except StorageError as error:
            self._failure = error
        except Exception as error:  # whatever it is, nobody may wait for this thread any more
            self._failure = StorageError(f"{self._folder.path}: {error}")
        self.wake()

    def _next(self) -> list[tuple[int, Write | int]]:
        """What was handed over since the last time; nothing where it ends."""
        with self._changed:
            while not self._work and not self._closing:
                self._changed.wait()
            work, self._work = self._work, []
            return work

    def _commit(self, work: list[tuple[int, Write | int]]) -> None:
        """Write all of it, then sync once for all who asked."""
        log = self._log
        records: list[bytes] = []
        done: list[tuple[int, list[int]]] = []
        complete = 0  # the segment in which a sync was asked for last
        reserved = 0
        for renewals, each in work:
            if isinstance(each, bytes):
                records.append(each)
            elif isinstance(each, Sync):
                done.append((renewals, [each.ticket]))
                complete = log.segment
            elif isinstance(each, Anew):
                log.append(records)
                records = []
                log.begin_anew()
            else:
                reserved = each
        log.append(records)
        if reserved:
            self._folder.reserve(reserved)
        if done:
            log.sync()
            self._done += done
            self.wake()
            log.forget(complete)


def _nobody() -> None:
    """There is no loop yet."""
