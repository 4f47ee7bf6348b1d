"""Disks of simulated hosts: what a member keeps with `data=` outlives its process, if it was synced."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NoReturn

from semcast.core.ids import MICROSECOND, MILLISECOND
from semcast.core.outbox import Write
from semcast.lab import Disk
from semcast.sim.scheduler import Scheduler
from semcast.storage import LiveDisk, StorageError
from semcast.testing.scratch import Scratch

_SYNC = 50 * MICROSECOND, 3 * MILLISECOND
"""How long a sync takes, from and to."""


class Platter:
    """One member's records and files on a host, whoever uses them.

    Args:
        scratch: where its files are, if a program has any.
    """

    def __init__(self, scratch: Scratch) -> None:
        self.disk = Disk()
        self._scratch = scratch
        self._files: Path | None = None
        self.incarnation = 0
        """The greatest that used it."""
        self.user: SimulatedDisk | None = None

    def files(self) -> Path:
        """A real folder: a database is a SQLite file."""
        if self._files is None:
            self._files = self._scratch.folder()
        return self._files

    def abandon_files(self) -> None:
        """Its process crashed: the next one has copies of its files, whose locks nobody holds."""
        if self._files is not None:
            left, self._files = self._files, self._scratch.folder()
            for file in sorted(left.iterdir()):
                if file.is_file() and not file.name.endswith("-shm"):
                    shutil.copyfile(file, self._files / file.name)


class SimulatedDisk(LiveDisk):
    """In the place of a `LiveDisk`: the records of one process, on a platter of its host.

    Args:
        path: under which the program knows it.
        platter: of the host; no other process uses it.
        scheduler: virtual time.
        rng: draws how long a sync takes, and what a crash leaves.
        now: the incarnation, unless the platter knows of one that is not smaller.
    """

    def __init__(self, path: Path, platter: Platter, scheduler: Scheduler, rng: Random, now: int) -> None:
        if platter.user is not None:
            raise StorageError(f"{path}: another process of this host uses it")
        platter.user = self
        platter.incarnation = self.incarnation = max(platter.incarnation + 1, now)
        self._platter = platter
        self._where = path
        self._scheduler = scheduler
        self._rng = rng
        self._tickets: list[int] = []
        self._act: Callable[[], None] = _nobody
        self._gone = False
        platter.disk.reopen()
        self._kept = platter.disk.records()
        self._from = platter.disk.first

    @property
    def path(self) -> Path:
        """A folder for files beside the records."""
        return self._platter.files()

    @property
    def records(self) -> Sequence[bytes]:
        """What was there."""
        return self._kept

    @property
    def first(self) -> int:
        """The position of the first of these."""
        return self._from

    @property
    def wake(self) -> Callable[[], None]:
        """Called when `take` has something to say."""
        return self._act

    @wake.setter
    def wake(self, wake: Callable[[], None]) -> None:
        self._act = wake

    def store(self, writes: Sequence[Write]) -> None:
        """Write records; those who asked for a sync hear of it after a while."""
        self._platter.disk.write(writes)
        self._begin()

    def _begin(self) -> None:
        if self._platter.disk.begin():
            self._scheduler.at(self._scheduler.now + self._rng.randrange(*_SYNC), self._finish)

    def _finish(self) -> None:
        if not self._gone:
            self._tickets += self._platter.disk.finish()
            self._act()
            self._begin()

    def ready(self) -> bool:
        """Whether `take` has something to say."""
        return bool(self._tickets)

    def take(self) -> list[int]:
        """Tickets of syncs that were done since."""
        taken, self._tickets = self._tickets, []
        return taken

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on."""
        return self._platter.disk.read(first, most)

    def read_back(self, first: int, most: int) -> list[bytes]:
        """The same for a stack; nothing if the first was given up."""
        return self._platter.disk.read_back(first, most)

    def log(self, name: str) -> NoReturn:
        """There is none beside the records of the stack."""
        raise StorageError(f"{self._where}: a simulated disk has no log {name!r}, only what a stack keeps")

    def renew(self) -> int:
        """Another incarnation goes on, which hears nothing of syncs of the former."""
        self.incarnation += 1
        self._platter.incarnation = self.incarnation
        self._tickets = []
        self._platter.disk.abandon()
        return self.incarnation

    def close(self) -> None:
        """The process lets go of it; all that was written is there."""
        if not self._gone:
            self._gone = True
            disk = self._platter.disk
            while disk.syncing or disk.begin():
                disk.finish()
            disk.crash(disk.unsynced)
            self._platter.user = None

    def crash(self) -> None:
        """The process is gone with its host: of what was not synced, a part is left."""
        if not self._gone:
            self._gone = True
            self._platter.disk.crash(self._rng.randrange(self._platter.disk.unsynced + 1))
            self._platter.abandon_files()
            self._platter.user = None


def _nobody() -> None:
    """Nobody waits yet."""
