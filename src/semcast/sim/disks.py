"""Simulated disks: each outlives the processes of its host, takes its time to sync, and forgets in a crash.

All chance is drawn from one generator: how long a sync takes, and how much of what was not synced a crash
leaves, which may end in the middle of a record. Records that come while a sync is under way are synced
together after it, as by a live disk.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from semcast.core.ids import MICROSECOND, MILLISECOND, Nanos
from semcast.core.outbox import Write
from semcast.sim.scheduler import Scheduler
from semcast.testing.disk import Disk

_PACES: tuple[Nanos, ...] = (50 * MICROSECOND, 500 * MICROSECOND, 5 * MILLISECOND, 20 * MILLISECOND)
"""What a sync takes, about: flash, a good disk, a busy one."""
_STALL = 0.01
"""How often a sync takes ten times as long."""


class Synced(NamedTuple):
    """What reaches a host when a sync is done."""

    tickets: list[int]


class HostDisk:
    """The disk of one host.

    Args:
        scheduler: virtual time.
        rng: all its chance.
    """

    def __init__(self, scheduler: Scheduler, rng: Random) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._pace = rng.choice(_PACES)
        self._disk = Disk()
        self._boot = 0  # syncs of before a crash are never done
        self._report: Callable[[Synced], None] = _nobody

    def attach(self, report: Callable[[Synced], None]) -> list[bytes]:
        """A process starts here, and hears of its own syncs; returns what it can read."""
        self._report = report
        self._boot += 1
        self._disk.reopen()
        return self._disk.records()

    @property
    def first(self) -> int:
        """The position of the first record that is there."""
        return self._disk.first

    def abandon(self) -> None:
        """Another incarnation goes on in the same process: nobody waits for what the former asked for."""
        self._disk.abandon()

    def write(self, writes: Sequence[Write]) -> None:
        """Take what a stack wants to be written."""
        self._disk.write(writes)
        self._sync()

    def crash(self) -> None:
        """The host loses its power: everything unsynced is left, or nothing, or a part of it."""
        self._boot += 1
        unsynced = self._disk.unsynced
        part = self._rng.randint(0, unsynced)
        self._disk.crash(self._rng.choice((0, part, unsynced)))

    def replace(self) -> None:
        """Put an empty one in its place."""
        self._boot += 1
        self._disk = Disk()

    def _sync(self) -> None:
        if self._disk.begin():
            takes = round(self._pace * self._rng.uniform(0.5, 2.0))
            if self._rng.random() < _STALL:
                takes *= 10
            self._scheduler.at(self._scheduler.now + takes, self._finish, self._boot)

    def _finish(self, boot: int) -> None:
        if boot != self._boot:
            return
        tickets = self._disk.finish()
        if tickets:
            self._report(Synced(tickets))
        self._sync()


def _nobody(_synced: Synced) -> None:
    """No process has started here yet."""
