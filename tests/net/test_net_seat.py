"""A seat: what reaches the hub, what wakes the application, what a former incarnation leaves behind."""

from collections.abc import Sequence
from random import Random

from tests.core.test_core_turn import AGAIN, A, B, Echo, Say, Tick

from semcast.core import Dest, Frame, MemberId, Outbox
from semcast.core.handover import Handover
from semcast.core.outgoing import Outgoing
from semcast.net.seat import Seat
from semcast.wire.status import Status


class Hub:
    """Writes down what a seat wants of it."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.announced: list[Frame] = []
        self.member: MemberId | None = None

    def send(self, sends: Sequence[tuple[Dest, Frame]]) -> None:
        self.sent += [frame for _, frame in sends]

    def announce(self, frames: Sequence[Frame]) -> None:
        self.announced += frames

    def renew(self, member: MemberId) -> None:
        self.member = member


class Desk:
    def __init__(self) -> None:
        self.stack, self.hub = Echo(A, Outbox()), Hub()
        self.woken: list[str] = []
        self.handover = Handover(2)
        self.seat = Seat(
            A,
            self.stack,
            self.handover,
            wake_application=lambda: self.woken.append("application"),
            renew=lambda former: (MemberId(former.name, former.incarnation + 1), Random(1)),
        )
        self.seat.attach(self.hub)
        self.seat.wake_loop = lambda: self.woken.append("loop")
        self.seat.push_loop = lambda: self.woken.append("push")
        self.seat.start(0, ())
        self.woken.clear()


def test_what_the_application_does_wakes_the_loop() -> None:
    desk = Desk()
    desk.seat.send(Outgoing([b"1"]))
    desk.seat.run(1, ())
    assert desk.woken == ["push", "application"]
    desk.woken.clear()
    desk.seat.call(lambda _stack, _now: None)
    desk.seat.go_on()
    desk.seat.leave()
    assert desk.woken == ["loop"] * 3


def test_who_takes_a_list_wakes_the_loop_only_where_that_has_something_to_do() -> None:
    desk = Desk()
    desk.handover.begin()
    desk.seat.run(1, [(B, [Say(b"1")])])
    desk.seat.run(2, ())
    desk.woken.clear()
    desk.seat.take(3)
    assert desk.woken == []
    for number in range(3):
        desk.seat.run(4, [(B, [Say(b"%d" % number)])])
    desk.woken.clear()
    desk.seat.take(5)
    assert desk.woken == ["loop"], "the third waits for room"


def test_who_does_not_wait_is_not_woken_for_what_is_delivered() -> None:
    desk = Desk()
    desk.handover.awaited = 0
    desk.seat.run(1, [(B, [Say(b"1")])])
    assert desk.woken == []
    desk.seat.take(1)
    desk.handover.awaited = 1
    desk.woken.clear()
    desk.seat.run(1, [(B, [Say(b"2")])])
    assert desk.woken == ["application"]


def test_who_took_a_list_is_given_the_next_without_waiting_for_a_timer() -> None:
    desk = Desk()
    for number in range(3):
        desk.seat.run(1, [(B, [Say(b"%d" % number)])])
    assert desk.seat.next_at() is None, "the mailbox is full"
    desk.seat.take(2)
    assert desk.seat.next_at() == 0


def test_timers_of_a_former_incarnation_never_reach_the_next() -> None:
    desk = Desk()
    desk.stack.out.set_timer(Tick.TICK, 10)
    desk.seat.run(1, [(B, [Say(b"out")])])
    assert desk.seat.member == AGAIN
    assert desk.hub.member == AGAIN
    desk.seat.run(20, ())
    again = desk.seat.stack
    assert isinstance(again, Echo)
    assert again.log == ["start"]


def test_observers_hear_at_once_and_once_that_a_member_left() -> None:
    desk = Desk()
    desk.seat.leave()
    desk.seat.run(1, ())
    desk.seat.run(2, ())
    [status] = desk.hub.announced
    assert isinstance(status, Status)
    assert status.phase == "left"


def test_an_application_that_sleeps_is_woken_by_the_end() -> None:
    desk = Desk()
    desk.seat.fail(ZeroDivisionError())
    assert desk.woken == ["application"]
    assert isinstance(desk.seat.failure, ZeroDivisionError)
