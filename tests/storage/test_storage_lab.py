"""The contract of storage, in the lab: nothing is done before its sync, and what was synced comes back."""

import pytest
from tests.storage.keepers import Keeping

from semcast.core import Batch, MemberId, Outbox
from semcast.testing import Disk, Lab, Seat

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
