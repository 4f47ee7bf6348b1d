"""The contract of storage, in the lab: nothing is done before its sync, and what was synced comes back."""

from collections.abc import Sequence

import pytest
from tests.storage.keepers import Keeping

from semcast.core import Batch, MemberId, Outbox
from semcast.core.outbox import Anew, Run, Sync, Trim
from semcast.lab import Disk, Lab, Seat
from semcast.wire.records import DamagedError

A = MemberId("a")


def seat_on(lab: Lab, disk: Disk | None, incarnation: int = 0) -> Seat:
    member = MemberId("a", incarnation)
    return lab.add(member, Keeping(member, Outbox()), disk=disk)


def stack_of(seat: Seat) -> Keeping:
    assert isinstance(seat.stack, Keeping)
    return seat.stack


def delivered(seat: Seat) -> list[bytes]:
    taken = seat.application.taken  # type: ignore[attr-defined]
    return [payload for each in taken if isinstance(each, Batch) for payload in each.payloads]


def test_a_sync_that_takes_no_time_is_done_in_the_next_turn() -> None:
    lab = Lab()
    seat = seat_on(lab, Disk())
    lab.start()
    seat.multicast(b"1")
    seat.multicast(b"2")
    assert delivered(seat) == [b"1", b"2"]


@pytest.mark.parametrize("bursts", [False, True])
def test_a_sync_that_takes_time_is_waited_for_and_shared(bursts: bool) -> None:
    lab = Lab(bursts=bursts)
    seat = seat_on(lab, Disk())
    seat.sync_after = 100
    lab.start()
    for number in range(3):
        seat.multicast(b"%d" % number)
    lab.run(99)
    assert delivered(seat) == []
    lab.run(1)
    assert delivered(seat) == [b"0"]
    lab.run(100)
    assert delivered(seat) == [b"0", b"1", b"2"], "those that came meanwhile share a sync"


def test_a_test_may_hold_a_sync_up_and_crash_in_the_middle_of_it() -> None:
    lab, disk = Lab(), Disk()
    seat = seat_on(lab, disk)
    seat.sync_after = None
    lab.start()
    seat.multicast(b"kept")
    seat.finish_sync()
    seat.multicast(b"torn")
    lab.run(10**9)
    assert delivered(seat) == [b"kept"]
    seat.crash(survives=disk.unsynced - 1)
    again = seat_on(lab, disk, 1)
    again.start()
    assert stack_of(again).recovered == ["kept"]
    again.multicast(b"more")
    again.crash()
    last = seat_on(lab, disk, 2)
    last.start()
    assert stack_of(last).recovered == ["kept", "more"]


def test_without_a_disk_nobody_recovers() -> None:
    lab = Lab()
    seat = seat_on(lab, None)
    lab.start()
    assert stack_of(seat).recovered is None


def test_records_that_replace_others_do_so_once_they_are_synced() -> None:
    lab, disk = Lab(), Disk()
    seat = seat_on(lab, disk)
    seat.sync_after = None
    lab.start()
    seat.multicast(*(b"%d" % number for number in range(9)))
    seat.finish_sync()
    assert len(disk.records()) == 9
    seat.multicast(b"9")
    assert len(disk.records()) == 10, "all of the old, and the new"
    seat.finish_sync()
    assert len(disk.records()) == 1
    seat.crash()
    again = seat_on(lab, disk, 1)
    again.start()
    assert stack_of(again).recovered == [str(number) for number in range(10)]


def test_a_crash_at_any_byte_leaves_what_was_acknowledged_and_no_hole() -> None:
    for survives in range(1000):
        lab, disk = Lab(), Disk()
        seat = seat_on(lab, disk)
        seat.sync_after = None
        lab.start()
        for number in range(8):
            seat.multicast(b"%d" % number)
        seat.finish_sync()
        for number in range(8, 14):
            seat.multicast(b"%d" % number)
        if survives > disk.unsynced:
            break
        told = stack_of(seat).acknowledged
        seat.crash(survives)
        again = seat_on(lab, disk, 1)
        again.start()
        found = stack_of(again).recovered
        assert found is not None
        assert len(found) >= told
        assert found == [str(number) for number in range(len(found))]
    assert survives > 100


NUMBERS = [b"%d" % number for number in range(20)]


def filled(trims_by: int = 1) -> Disk:
    """A disk with twenty records that are synced."""
    disk = Disk(trims_by)
    disk.write([Run(NUMBERS[:12]), *NUMBERS[12:], Sync(1)])
    assert disk.begin()
    assert disk.finish() == [1]
    return disk


def sync(disk: Disk) -> None:
    disk.write([Sync(2)])
    disk.begin()
    disk.finish()


@pytest.mark.parametrize(("trims_by", "first"), [(1, 13), (5, 10), (20, 0)])
def test_trimmed_records_are_gone_in_portions_once_a_sync_was_asked_for(trims_by: int, first: int) -> None:
    disk = filled(trims_by)
    disk.write([Trim(13)])
    assert disk.first == 0
    sync(disk)
    assert (disk.first, disk.next) == (first, 20)
    assert disk.records() == NUMBERS[first:]
    disk.write([b"20", Anew(), b"21", Sync(3)])
    disk.begin()
    assert disk.finish() == [3]
    assert (disk.first, disk.records()) == (21, [b"21"]), "anew is exact"


def test_a_trim_reaches_no_further_than_what_was_written() -> None:
    disk = filled()
    disk.write([Trim(10**9), Sync(2), b"more"])
    disk.begin()
    disk.finish()
    assert (disk.first, disk.records()) == (20, [b"more"])


def test_synced_records_are_read_by_position() -> None:
    disk = filled()
    disk.write([b"not synced"])
    assert disk.read(0, 3) == NUMBERS[:3]
    assert disk.read(15, 0) == [b"15"]
    assert disk.read(18, 100) == NUMBERS[18:]
    assert disk.read(20, 100) == []
    disk.write([Trim(7)])
    sync(disk)
    assert disk.read(7, 2) == NUMBERS[7:9]
    assert disk.read(19, 100) == [b"19", b"not synced"]


def test_what_lies_behind_a_hole_is_cut_off() -> None:
    disk = filled()
    size = disk.unsynced
    disk.write([b"20"])
    one = disk.unsynced - size
    disk.write([b"21", b"22"])
    disk.crash(disk.unsynced, [(one, one + 1)])
    assert disk.records() == [*NUMBERS, b"20"]
    disk.write([b"again"])
    sync(disk)
    disk.crash()
    assert disk.records() == [*NUMBERS, b"20", b"again"]


def test_nobody_recovers_from_a_disk_that_lost_what_was_synced() -> None:
    disk = filled()
    assert disk.vouched == 0, "no later record says that these were synced"
    disk.write([b"20"])
    sync(disk)
    for byte in range(0, disk.vouched, 7):
        disk.rot(byte)
        with pytest.raises(DamagedError, match="which was synced, is damaged"):
            disk.records()
        disk.crash()
        with pytest.raises(DamagedError):
            disk.records()
        disk._data[byte] ^= 0x40
    assert disk.records() == [*NUMBERS, b"20"]


def test_a_stack_is_told_the_position_of_the_first_record() -> None:
    class Told(Keeping):
        first = -1

        def recover(self, now: int, records: Sequence[bytes], first: int = 0) -> None:
            self.first = first

    disk = filled()
    disk.write([Trim(13)])
    sync(disk)
    stack = Told(A, Outbox())
    Lab().add(A, stack, disk=disk).start()
    assert stack.first == 13
