"""Simulated disks: each outlives the processes of its host, takes its time to sync, and forgets in a crash.

All chance is drawn from one generator: how long a sync takes, and how much of what was not synced a crash
leaves, which may end in the middle of a record, or lack a part before its end. Records that come while a sync
is under way are synced together after it, as by a live disk.
"""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from semcast.core.ids import MICROSECOND, MILLISECOND, Nanos
from semcast.core.outbox import Sync, Write
from semcast.lab.disk import Disk
from semcast.sim.scheduler import Scheduler
from semcast.wire.records import DamagedError

_PACES: tuple[Nanos, ...] = (50 * MICROSECOND, 500 * MICROSECOND, 5 * MILLISECOND, 20 * MILLISECOND)
"""What a sync takes, about: flash, a good disk, a busy one."""
_SPREAD = 0.5, 2.0
"""How much faster or slower one is than others."""
_SLOW = 0.01
"""How often a sync takes ten times as long."""
LONGEST: Nanos = round(max(_PACES) * max(_SPREAD)) * 10
"""What a sync takes at most, where the disk does not stall; and a process to end whose disk is full."""
_PAGES = (64, 512, 4096)
"""Bytes that reach a disk, or do not, as one."""
_TRIMS = (1, 7, 50)
"""Records that are trimmed at a time."""


class Synced(NamedTuple):
    """What reaches a host when a sync is done."""

    tickets: list[int]


class HostDisk:
    """The disk of one host.

    Args:
        scheduler: virtual time.
        rng: all its chance.
        fails: called when the disk is full, and the process of the host ends with that.
    """

    def __init__(self, scheduler: Scheduler, rng: Random, fails: Callable[[], None] | None = None) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._pace = rng.choice(_PACES)
        self._trims_by = rng.choice(_TRIMS)
        self._disk = Disk(self._trims_by)
        self._boot = 0  # syncs of before a crash are never done
        self._report: Callable[[Synced], None] = _nobody
        self._fails = fails
        self._stalled_until: Nanos = 0
        self._full_until: Nanos = 0
        self._failing = False  # the process ends before anything else of it reaches the disk
        self._copy: Disk | None = None

    def take_about(self, pace: Nanos) -> None:
        """Let a sync take about so long, from now on."""
        self._pace = pace

    # For the process of its host

    def attach(self, report: Callable[[Synced], None]) -> list[bytes]:
        """A process starts here, and hears of its own syncs; returns what it can read."""
        self._report = report
        self._boot += 1
        self._failing = False
        self._disk.reopen()
        return self._disk.records()

    @property
    def first(self) -> int:
        """The position of the first record that is there."""
        return self._disk.first

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on: at least one, and then as many as fit into so many bytes."""
        return self._disk.read(first, most)

    def read_back(self, first: int, most: int) -> list[bytes]:
        """The same for a stack; nothing if the first was given up."""
        return self._disk.read_back(first, most)

    def abandon(self) -> None:
        """Another incarnation goes on in the same process: nobody waits for what the former asked for."""
        self._disk.abandon()

    def write(self, writes: Sequence[Write]) -> None:
        """Take what a stack wants to be written."""
        if self._failing:
            return
        if self._scheduler.now < self._full_until:
            self._failing = True
            self._scheduler.at(self._scheduler.now + self._takes(), self._fail, self._boot)
            return
        self._disk.write(writes)
        self._sync()

    # What happens to it

    @property
    def syncing(self) -> bool:
        """Whether a sync is under way."""
        return self._disk.syncing

    @property
    def damaged(self) -> bool:
        """Whether it has lost something that was synced, so that no process can start on it."""
        try:
            self._disk.records()
        except DamagedError:
            return True
        return False

    def crash(self) -> None:
        """The host loses its power: everything unsynced is left, or nothing, or a part of it."""
        self._boot += 1
        unsynced = self._disk.unsynced
        part = self._rng.randint(0, unsynced)
        survives = self._rng.choice((0, part, unsynced))
        self._disk.crash(survives, self._holes(survives))

    def _holes(self, survives: int) -> list[tuple[int, int]]:
        """Sometimes pages are missing before others that were written."""
        if self._rng.random() < 0.7:
            return []
        page = self._rng.choice(_PAGES)
        begins = [begin for begin in range(0, survives, page) if self._rng.random() < 0.3]
        return [(begin, min(begin + page, survives)) for begin in begins]

    def replace(self) -> None:
        """Put an empty one in its place."""
        self._boot += 1
        self._disk = Disk(self._trims_by)

    def copy(self) -> None:
        """Keep a copy of what is synced."""
        self._copy = copy.deepcopy(self._disk)
        self._copy.crash()

    @property
    def copied(self) -> bool:
        """Whether there is a copy."""
        return self._copy is not None

    def put_back(self) -> None:
        """Put the copy in the place of all that was written since."""
        assert self._copy is not None, "nobody made a copy"
        self._boot += 1
        self._disk = copy.deepcopy(self._copy)

    def amend(self, do: Callable[[Sequence[bytes]], Sequence[bytes]]) -> None:
        """No process runs, and somebody writes behind what is there."""
        self._disk.reopen()
        self._disk.write([*do(self._disk.records()), Sync(0)])
        self._disk.begin()
        self._disk.finish()

    def stall(self, until: Nanos) -> None:
        """No sync is done before that."""
        self._stalled_until = max(self._stalled_until, until)

    def fill(self, until: Nanos) -> None:
        """There is no room before that."""
        self._full_until = max(self._full_until, until)

    def rot(self) -> bool:
        """Change a drawn byte, of those where that is noticed; returns whether there are any."""
        vouched = self._disk.vouched
        if vouched:
            self._disk.rot(self._rng.randrange(vouched))
        return bool(vouched)

    def _sync(self) -> None:
        if self._disk.begin():
            self._scheduler.at(self._scheduler.now + self._takes(), self._finish, self._boot)

    def _takes(self) -> Nanos:
        takes = round(self._pace * self._rng.uniform(*_SPREAD))
        return takes * 10 if self._rng.random() < _SLOW else takes

    def _finish(self, boot: int) -> None:
        if boot != self._boot or self._failing:
            return
        if self._scheduler.now < self._stalled_until:
            self._scheduler.at(self._stalled_until, self._finish, boot)
            return
        tickets = self._disk.finish()
        if tickets:
            self._report(Synced(tickets))
        self._sync()

    def _fail(self, boot: int) -> None:
        if boot == self._boot and self._fails is not None:
            self._fails()


def _nobody(_synced: Synced) -> None:
    """No process has started here yet."""
