"""Founding under drawn schedules: processes crash, forget what was not synced, and come back.

Frames are lost and late. However that goes, there is one view, and in the end there is one. Without disks the
same schedules break that, and so the model has teeth.
"""

from random import Random

import pytest

from semcast.core import Frame, MemberId, Outbox
from semcast.core.outbox import Anew, Sync
from semcast.lab import Disk
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync import VsyncSettings
from semcast.protocols.vsync.founding import Founding
from semcast.protocols.vsync.frames import Accept, Accepted, Hello, Known, Prepare, Promise
from semcast.protocols.vsync.ledger import Ledger

PERIOD = 100


class Process:
    """One founder: its disk outlives it."""

    def __init__(self, model: "Model", name: str, incarnation: int) -> None:
        self.me = MemberId(name, incarnation)
        self.out = Outbox()
        self.ledger = Ledger(self.out)
        settings = VsyncSettings(minimum=model.minimum, hello=PERIOD)
        self.founding = Founding(self.me, settings, Random(str(self.me)), Courier(self.out), self.ledger)
        if model.disks:
            self.founding.recover(self.ledger.recover(model.disks[name].records()))
        if model.last is not None:
            self.founding.learn(model.last)


class Model:
    """Founders by name; frames under way in a bag."""

    def __init__(self, seed: int, names: str, *, disks: bool, last: Known | None) -> None:
        self.rng = Random(seed)
        self.minimum = len(names) // 2 + 1
        self.last = last
        self.disks = {name: Disk() for name in names} if disks else {}
        self.now = 0
        self.calm = False
        self.wire: list[tuple[MemberId, str, Frame]] = []
        self.founded: set[tuple[MemberId, ...]] = set()
        self.processes = {name: Process(self, name, 0) for name in names}

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now += self.rng.randrange(PERIOD // 5)
            name = self.rng.choice(sorted(self.processes))
            what = self.rng.random()
            if what < 0.08:
                self.restart(name)
            elif what < 0.3:
                self.look(name)
            elif what < 0.45 and self.disks:
                self.sync(name)
            elif self.wire:
                self.deliver()

    def settle(self) -> None:
        """Nothing goes wrong any more."""
        self.calm = True
        for _ in range(60):
            self.now += PERIOD // 2
            for name in sorted(self.processes):
                self.look(name)
            while self.wire:
                self.deliver()
                for name in self.disks:
                    self.sync(name)

    def look(self, name: str) -> None:
        process = self.processes[name]
        for other in self.processes.values():
            if other is not process:
                hello = Hello(process.founding.founds, self.last, process.founding._terms)
                other.founding.saw(self.now, process.me, hello)
        process.founding.tick(self.now)
        self.drain(process)

    def deliver(self) -> None:
        source, name, frame = self.wire.pop(self.rng.randrange(len(self.wire)))
        process, now = self.processes[name], self.now
        if not self.calm and self.rng.random() < 0.15:
            return
        if isinstance(frame, Prepare):
            process.founding.on_prepare(now, source, frame)
        elif isinstance(frame, Promise):
            process.founding.on_promise(now, source, frame)
        elif isinstance(frame, Accept):
            process.founding.on_accept(now, source, frame)
        elif isinstance(frame, Accepted):
            process.founding.on_accepted(now, source, frame)
        self.drain(process)

    def sync(self, name: str) -> None:
        if self.disks[name].begin():
            for ticket in self.disks[name].finish():
                self.processes[name].ledger.on_synced(self.now, ticket)
            self.drain(self.processes[name])

    def restart(self, name: str) -> None:
        if self.disks:
            disk = self.disks[name]
            disk.crash(self.rng.choice((0, disk.unsynced)))
        self.processes[name] = Process(self, name, self.processes[name].me.incarnation + 1)

    def drain(self, process: Process) -> None:
        out = process.out
        writes, out.writes = out.writes, []
        if writes:
            assert self.disks
            assert all(isinstance(each, bytes | Sync | Anew) for each in writes)
            self.disks[process.me.name].write(writes)
        sends, out.sends = out.sends, []
        for dest, frame in sends:
            names = (
                [dest.name] if isinstance(dest, MemberId) else sorted({*self.processes} - {process.me.name})
            )
            self.wire += [(process.me, name, frame) for name in names]
        if process.founding.founded is not None:
            self.founded.add(process.founding.founded)


def views(seed: int, names: str, *, disks: bool, last: Known | None = None) -> int:
    model = Model(seed, names, disks=disks, last=last)
    model.run(1000)
    model.settle()
    return len(model.founded)


LAST = Known(7, [MemberId(name) for name in "abc"])


@pytest.mark.parametrize("names", ["abc", "abcde"])
def test_with_disks_there_is_one_first_view(names: str) -> None:
    assert {views(seed, names, disks=True) for seed in range(40)} == {1}


def test_after_a_lost_view_there_is_one_next() -> None:
    assert {views(seed, "abc", disks=True, last=LAST) for seed in range(40)} == {1}


def test_without_disks_many_who_forget_found_several() -> None:
    assert max(views(seed, "abc", disks=False) for seed in range(60)) > 1
