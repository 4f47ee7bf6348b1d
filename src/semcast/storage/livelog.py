"""A log that a thread of its own writes and syncs, so that a loop never waits for the disk.

Whatever was handed over while one sync was under way is written and synced together next (group commit).
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from semcast.core.outbox import Anew, Run, Sync, Trim, Write
from semcast.storage.errors import StorageError
from semcast.storage.segments import SegmentLog

Errand = Callable[[], None]
"""Something else that the thread shall do, before it answers a sync that was asked for later.

Of several that wait only the last is done.
"""


class LiveLog:
    """All but the thread's own methods, and `read`, are called in the thread of a loop.

    Args:
        folder: of the files. Another process must not use it.
        log: in it.
    """

    def __init__(self, folder: Path, log: SegmentLog) -> None:
        self.records: Sequence[bytes] = log.records
        """What was there. It is read when it is iterated over."""
        self.first = log.first
        """The position of the first of these."""
        self.wake: Callable[[], None] = _nobody
        """Called by the thread when `take` has something to say."""
        self.before_sync: Callable[[], None] = _nobody
        """Called by the thread before it syncs: trials have a disk take its time with it."""
        self._folder, self._log = folder, log
        self._work: list[tuple[int, Sequence[Write] | Errand]] = []  # with the renewals before it
        self._changed = threading.Condition()
        self._closing = False
        self._done: deque[tuple[int, int]] = deque()
        self._renewals = 0
        self._failure: StorageError | None = None
        self._thread: threading.Thread | None = None
        self._floor = 0  # records before this position are of no use

    # In the thread of a loop

    def store(self, writes: Sequence[Write]) -> None:
        """Have records written, in order. They must not change any more."""
        self._hand_over(writes)

    def ready(self) -> bool:
        """Whether `take` has something to say."""
        return bool(self._done) or self._failure is not None

    def take(self) -> list[int]:
        """Tickets of syncs that were done since. Raises what happened to the disk, if it is of no use now."""
        if self._failure is not None:
            raise self._failure
        tickets: list[int] = []
        while self._done:
            renewals, ticket = self._done.popleft()
            if renewals == self._renewals:
                tickets.append(ticket)
        return tickets

    def renew(self, errand: Errand | None = None) -> None:
        """Another incarnation goes on, which never hears of syncs of the former."""
        self._renewals += 1
        if errand is not None:
            self._hand_over(errand)

    def close(self) -> None:
        """Write what was handed over, and end the thread. After the loop has ended."""
        if self._thread is not None:
            with self._changed:
                self._closing = True
                self._changed.notify()
            self._thread.join()
            self._thread = None
        self._log.close()

    def _hand_over(self, work: Sequence[Write] | Errand) -> None:
        with self._changed:
            self._work.append((self._renewals, work))
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"semcast disk {self._folder}")
            self._thread.daemon = True
            self._thread.start()

    # In any thread

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on: at least one, and then as many as fit into so many bytes.

        Nothing if there is none yet. Raises TrimmedError if the first of them was given up.
        """
        try:
            return self._log.read(first, most)
        except OSError as error:
            raise self._told(error) from error

    # The thread

    def _run(self) -> None:
        try:
            while work := self._next():
                self._commit(work)
                if not self._work and self._log.unvouched():
                    self._log.vouch()  # nobody waits for it, and nobody waits meanwhile
        except OSError as error:
            self._failure = self._told(error, ": nothing can be kept any more")
        except StorageError as error:
            self._failure = error
        except Exception as error:  # whatever it is, nobody may wait for this thread any more
            self._failure = StorageError(f"{self._folder}: {error}")
        self.wake()

    def _next(self) -> list[tuple[int, Sequence[Write] | Errand]]:
        """What was handed over since the last time; nothing where it ends."""
        with self._changed:
            while not self._work and not self._closing:
                self._changed.wait()
            work, self._work = self._work, []
            return work

    def _commit(self, work: list[tuple[int, Sequence[Write] | Errand]]) -> None:
        """Write all of it, then sync once for all who asked."""
        log = self._log
        records: list[bytes] = []
        done: list[tuple[int, int]] = []
        complete = 0  # the floor when a sync was asked for last
        errand: Errand | None = None
        for renewals, each in work:
            if callable(each):
                errand = each
                continue
            for write in each:
                if isinstance(write, bytes):
                    records.append(write)
                elif isinstance(write, Run):
                    records += write.records
                elif isinstance(write, Sync):
                    done.append((renewals, write.ticket))
                    complete = self._floor
                elif isinstance(write, Trim):
                    self._floor = max(self._floor, min(write.before, log.next + len(records)))
                else:
                    assert isinstance(write, Anew)
                    log.append(records)
                    records = []
                    log.begin_segment()
                    self._floor = log.next
        log.append(records)
        if errand is not None:
            errand()
        if done:
            self.before_sync()
            log.sync()
            self._done += done
            self.wake()
            log.drop(complete)

    def _told(self, error: OSError, so: str = "") -> StorageError:
        return StorageError(f"{error.filename or self._folder}: {error.strerror}{so}")


def _nobody() -> None:
    """There is no loop yet, and nobody who tries anything."""
