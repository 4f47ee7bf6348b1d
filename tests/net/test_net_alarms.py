"""Timers: the latest setting counts, and one that is set no more wakes nobody."""

from semcast.net.alarms import Alarms
from semcast.protocols.ring.passing import RingTimer


def test_each_goes_off_once_and_in_the_order_of_time() -> None:
    alarms = Alarms()
    alarms.set(RingTimer.HOLD, 30)
    alarms.set(RingTimer.JOIN, 10)
    assert alarms.next_at() == 10
    assert alarms.due(9) == []
    assert alarms.due(30) == [RingTimer.JOIN, RingTimer.HOLD]
    assert alarms.due(30) == []


def test_the_latest_setting_counts() -> None:
    alarms = Alarms()
    alarms.set(RingTimer.HOLD, 10)
    alarms.set(RingTimer.HOLD, 50)
    assert alarms.next_at() == 50
    assert alarms.due(49) == []
    alarms.set(RingTimer.HOLD, 20)
    assert alarms.due(20) == [RingTimer.HOLD]
    assert alarms.next_at() is None


def test_one_that_was_cancelled_wakes_nobody() -> None:
    alarms = Alarms()
    alarms.set(RingTimer.HOLD, 10)
    alarms.set(RingTimer.HOLD, None)
    assert alarms.next_at() is None
    alarms.set(RingTimer.JOIN, 10)
    alarms.clear()
    assert alarms.due(100) == []
