"""The contract of storage, live: a seat hears of syncs from another thread, and ends with its disk."""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.net.test_net_seat import Hub
from tests.storage.keepers import Keeping

from semcast.core import MemberId, Outbox
from semcast.core.handover import Handover
from semcast.core.outgoing import Outgoing
from semcast.net.seat import Seat
from semcast.storage import StorageError, open_disk


class Desk:
    """A seat with a disk, driven by hand."""

    def __init__(self, data: Path) -> None:
        self.disk = open_disk(data, "g", "a", 1)
        member = MemberId("a", self.disk.incarnation)
        self.stack = Keeping(member, Outbox())
        self.woken = threading.Event()
        self.disk.wake = self.woken.set
        handover = Handover(1000)
        self.seat = Seat(member, self.stack, handover, wake_application=lambda: None, disk=self.disk)
        self.seat.attach(Hub())
        self.seat.start(0, ())

    def turn(self) -> None:
        """When the disk says that there is something."""
        assert self.woken.wait(10)
        self.woken.clear()
        if self.disk.ready():  # else a turn heard of this sync before the disk's thread came to say so
            assert self.seat.next_at() == 0, "the loop may not sleep over it"
            self.seat.run(1, ())


def test_a_stack_hears_of_its_syncs_and_recovers_after_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.stack.recovered == []
    for number in range(25):
        desk.seat.send(Outgoing([b"%d" % number]))
        desk.seat.run(1, ())
    while desk.stack.acknowledged < 25:
        desk.turn()
    assert desk.stack.tickets == list(range(1, 26))
    desk.disk.close()
    again = Desk(tmp_path)
    assert again.stack.recovered == [str(number) for number in range(25)]
    assert again.seat.member > desk.seat.member
    again.disk.close()


def test_a_seat_ends_with_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    desk = Desk(tmp_path)
    monkeypatch.setattr(os, "fdatasync", full)
    desk.seat.send(Outgoing([b"1"]))
    desk.seat.run(1, ())
    with pytest.raises(StorageError, match="No space left on device"):
        desk.turn()
    assert desk.stack.acknowledged == 0
    monkeypatch.undo()
    desk.disk.close()
