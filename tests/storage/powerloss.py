"""A machine that loses its power in the middle of a system call, under the live log.

What a file system promises is little: what was written since a file was synced may be there, or be there in
part, or lack pages in its middle; names that were made or deleted since their folder was synced may be back.
All of that is drawn from a seed. A log that is opened on what is left must have all that was acknowledged.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from semcast.core.outbox import Anew, Run, Sync, Trim, Write
from semcast.storage.livelog import LiveLog
from semcast.storage.segments import SegmentLog

PAGES = (16, 64, 512)


class PowerLoss(BaseException):
    """The machine is off."""


class Machine:
    """Files of one folder, what of them outlives the power, and when that fails."""

    def __init__(self, folder: Path, rng: Random) -> None:
        self.folder = folder
        self._rng = rng
        self._calls_left = 10**9
        self._durable: dict[str, int] = {}  # bytes that are synced, of each file
        self._entries: set[str] = set()  # names that are synced
        self._deleted: dict[str, bytes] = {}  # whose deletion is not
        self._names: dict[int, str] = {}  # of open files; "" for the folder

    def fail_after(self, calls: int) -> None:
        """The power fails at a system call that changes the disk."""
        self._calls_left = calls

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Come between the log and the kernel."""
        real_open, real_write, real_close = os.open, os.write, os.close
        real_truncate, real_unlink = os.truncate, Path.unlink

        def opened(path: Path, flags: int, mode: int = 0o777) -> int:
            inside = Path(path).parent == self.folder
            if inside and flags & os.O_CREAT:
                self._call()
            file = real_open(path, flags, mode)
            if inside or Path(path) == self.folder:
                self._names[file] = Path(path).name if inside else ""
            return file

        def write(file: int, data: bytes) -> int:
            if file in self._names:
                self._call()
            return real_write(file, data)

        def synced(file: int) -> None:
            name = self._names[file]
            self._call()
            if name:
                self._durable[name] = (self.folder / name).stat().st_size
            else:
                self._entries = {path.name for path in self.folder.iterdir()}
                self._deleted.clear()

        def close(file: int) -> None:
            self._names.pop(file, None)
            real_close(file)

        def truncate(path: Path, size: int) -> None:
            real_truncate(path, size)
            self._durable[Path(path).name] = min(self._durable.get(Path(path).name, 0), size)

        def unlink(path: Path) -> None:
            self._call()
            if path.name in self._entries:
                self._deleted[path.name] = path.read_bytes()
            real_unlink(path)

        for name, call in (("open", opened), ("write", write), ("close", close), ("truncate", truncate)):
            patch.setattr(os, name, call)
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "fdatasync", synced)
        patch.setattr(Path, "unlink", unlink)

    def _call(self) -> None:
        self._calls_left -= 1
        if self._calls_left < 0:
            raise PowerLoss

    def reboot(self) -> None:
        """What is left of the files is all there is."""
        left: dict[str, bytes] = {}
        for path in sorted(self.folder.iterdir()):
            if path.name in self._entries or self._rng.random() < 0.5:
                left[path.name] = self._left(path.name, path.read_bytes())
        for name, data in self._deleted.items():
            if self._rng.random() < 0.5:
                left[name] = self._left(name, data)
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, data in left.items():
            (self.folder / name).write_bytes(data)
        self._durable = {name: len(data) for name, data in left.items()}
        self._entries = set(left)
        self._deleted.clear()
        self._names.clear()
        self._calls_left = 10**9

    def _left(self, name: str, data: bytes) -> bytes:
        synced = self._durable.get(name, 0)
        tail = bytearray(data[synced:])
        part = self._rng.randint(0, len(tail))
        del tail[self._rng.choice((0, part, len(tail))) :]
        if self._rng.random() < 0.7:
            page = self._rng.choice(PAGES)
            for begin in range(0, len(tail), page):
                if self._rng.random() < 0.3:
                    size = len(tail[begin : begin + page])
                    tail[begin : begin + size] = bytes(size)
        return data[:synced] + bytes(tail)


class Owner:
    """Writes numbered records, and knows what it may count on."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.next = 0
        """The number of the next record."""
        self.acknowledged = 0
        """Records before this one were said to be synced."""
        self.floors: list[tuple[int, int]] = []
        """Records before the first number may be given up once those before the second are synced."""
        self._floor = 0
        self._ticket = 0
        self._asked: dict[int, int] = {}

    def writes(self) -> list[Write]:
        """What it wants next."""
        found: list[Write] = []
        for _ in range(self._rng.randint(1, 4)):
            kind = self._rng.choice(("one", "one", "many", "sync", "sync", "anew", "trim"))
            if kind == "one":
                found.append(record(self.next))
                self.next += 1
            elif kind == "many":
                count = self._rng.randint(0, 9)
                found.append(Run([record(number) for number in range(self.next, self.next + count)]))
                self.next += count
            elif kind == "sync":
                self._ticket += 1
                self._asked[self._ticket] = self.next
                found.append(Sync(self._ticket))
                if self._floor:
                    self.floors.append((self._floor, self.next))
            elif kind == "anew":
                self._floor = self.next
                found.append(Anew())
            else:
                before = max(self.next - self._rng.randint(0, 20), 0)
                self._floor = max(self._floor, before)
                found.append(Trim(before))
        return found

    def told(self, tickets: Sequence[int]) -> None:
        """Syncs are done."""
        for ticket in tickets:
            self.acknowledged = max(self.acknowledged, self._asked[ticket])

    def check(self, first: int, records: Sequence[bytes]) -> None:
        """After a crash."""
        found, end = list(records), first + len(records)
        assert found == [record(number) for number in range(first, end)], "what was written, without a hole"
        assert end >= self.acknowledged, f"{self.acknowledged} were acknowledged, {end} are there"
        if first:
            upto = min((upto for floor, upto in self.floors if floor >= first), default=None)
            assert upto is not None, f"nobody gave up the records before {first}"
            assert end >= upto, f"given up before {first}, but what replaces them is not complete"

    def restart(self, end: int) -> None:
        """Go on with what is there."""
        self.next = self.acknowledged = end
        self._floor = 0
        self._asked.clear()
        self.floors = [(floor, upto) for floor, upto in self.floors if upto <= end]


def record(number: int) -> bytes:
    """Records differ in length."""
    return b"%d " % number + b"x" * (number * 7 % 40)


def torment(
    folder: Path,
    seed: int,
    log: type[SegmentLog] = SegmentLog,
    live: type[LiveLog] = LiveLog,
    crashes: int = 6,
) -> None:
    """Write, lose the power at a drawn call, look at what is left, and go on; several times."""
    rng = Random(seed)
    machine, owner = Machine(folder, rng), Owner(rng)
    for _ in range(crashes):
        with pytest.MonkeyPatch.context() as patch:
            machine.install(patch)
            with suppress(PowerLoss):
                _write(folder, machine, owner, rng, log, live)
        machine.reboot()
        with pytest.MonkeyPatch.context() as patch:
            machine.install(patch)
            opened = log(folder, segment_bytes=400)
            owner.check(opened.first, opened.records)
            opened.close()
        owner.restart(opened.next)


def _write(
    folder: Path,
    machine: Machine,
    owner: Owner,
    rng: Random,
    log: type[SegmentLog],
    live: type[LiveLog],
) -> None:
    opened = live(folder, log(folder, segment_bytes=400))
    machine.fail_after(rng.randint(0, 60))
    while True:
        opened._commit([(0, owner.writes()) for _ in range(rng.randint(1, 3))])
        owner.told(opened.take())
        if rng.random() < 0.5 and opened._log.unvouched():
            opened._log.vouch()
