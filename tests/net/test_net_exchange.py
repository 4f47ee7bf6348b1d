"""An endpoint that groups share: each gets what names it, as much as it has room for, and fails alone."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from secrets import token_hex

import pytest
from tests.core.test_core_turn import A, Echo, Say

from semcast.core import MemberId, Nanos, Outbox
from semcast.core.handover import Handover
from semcast.core.ids import SECOND
from semcast.core.outbox import Frame
from semcast.net.addresses import LOOPBACK, Address
from semcast.net.exchange import Exchange
from semcast.net.hub import Hub
from semcast.net.inbox import COST, ROOM, Inbox, budget
from semcast.net.seat import Seat
from semcast.net.shield import LIMIT
from semcast.net.sockets import Arrival, Endpoint
from semcast.wire.datagrams import Codec, Malformed

B = MemberId("b")
ELSEWHERE: Address = ("192.0.2.1", 5000)


class Listening(Echo):
    """Notes who spoke; raises when it is told to."""

    def __init__(self) -> None:
        super().__init__(A, Outbox())
        self.heard: list[Frame] = []
        self.fails = False

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        if self.fails:
            raise ZeroDivisionError("in the stack")
        self.heard += frames


class Office:
    """Two groups at one exchange, and somebody who speaks to both."""

    def __init__(self) -> None:
        self.exchange = Exchange(Endpoint((LOOPBACK, 0)))
        self.mouth = Endpoint((LOOPBACK, 0))
        self.stacks: list[Listening] = []
        self.seats: list[Seat] = []
        self.hubs: list[Hub] = []
        self.codecs: list[Codec] = []
        self.woken: list[int] = []
        for at in range(2):
            stack = Listening()
            seat = Seat(A, stack, Handover(2), wake_application=lambda: None)
            codec = Codec(f"office {at} {token_hex(4)}", (), 1400, [Say])
            hub = Hub(A, self.exchange, codec, ())
            hub.seat(seat)
            hub.wake = lambda at=at: self.woken.append(at)  # type: ignore[misc]
            hub.start(0)
            self.stacks.append(stack)
            self.seats.append(seat)
            self.hubs.append(hub)
            self.codecs.append(codec)

    def says(self, to: int, text: bytes = b"hello") -> list[bytes]:
        return self.codecs[to].encode(B, [Say(text)])

    def bring(self, *datagrams: bytes, now: Nanos = 1) -> None:
        """Have these come to the sockets, and let the exchange take them in."""
        before = self.exchange.endpoint.stats.datagrams_in
        self.mouth.send(datagrams, [self.exchange.endpoint.address])
        deadline = time.monotonic() + 5.0
        while self.exchange.endpoint.stats.datagrams_in < before + len(datagrams):
            self.exchange.run(now, self.exchange.filenos())
            assert time.monotonic() < deadline

    def close(self) -> None:
        self.exchange.close()
        self.mouth.close()


@pytest.fixture
def office() -> Iterator[Office]:
    with ExitStack() as opened:
        made = Office()
        opened.callback(made.close)
        yield made


def test_each_group_hears_what_names_it(office: Office) -> None:
    office.bring(*office.says(0, b"1"), *office.says(1, b"2"), *office.says(0, b"3"))
    assert sorted(set(office.woken)) == [0, 1]
    for hub in office.hubs:
        assert hub.next_at() == 0
        hub.run(1, ())
    assert [stack.heard for stack in office.stacks] == [[Say(b"1"), Say(b"3")], [Say(b"2")]]
    assert [hub.traffic().datagrams_in for hub in office.hubs] == [2, 1]
    assert all(hub.next_at() > 0 for hub in office.hubs)


def test_what_names_no_group_here_is_counted_and_dropped(office: Office) -> None:
    [stray] = Codec("another", (), 1400, [Say]).encode(B, [Say(b"x")])
    office.bring(stray, stray, b"short", b"")
    assert office.exchange.malformed == {Malformed.GROUP: 2, Malformed.TRUNCATED: 2}
    assert office.hubs[1].malformed() == office.exchange.malformed
    assert not office.woken


def test_a_source_of_nothing_but_strays_is_kept_out(office: Office) -> None:
    arrival: Arrival = (b"\x01nobodys!" + bytes(20), ELSEWHERE, False)
    office.exchange._sort(1, [arrival] * LIMIT)
    office.exchange.run(1, ())
    assert office.exchange._verdict.keep_out == (ELSEWHERE,)


def test_who_still_sends_to_a_group_that_was_left_floods_nobody(office: Office) -> None:
    """Some seconds pass until it knows; after that it has no excuse."""
    [data] = office.says(0)
    office.hubs[0].close()
    office.exchange._sort(SECOND, [(data, ELSEWHERE, False)] * LIMIT)
    assert not office.exchange._shield.alarmed
    assert office.exchange.malformed == {Malformed.GROUP: LIMIT}
    office.exchange._sort(10 * SECOND, [(data, ELSEWHERE, False)] * LIMIT)
    assert office.exchange._shield.alarmed


def test_an_error_in_one_seat_ends_it_alone(office: Office) -> None:
    first, second = office.hubs
    office.stacks[0].fails = True
    office.bring(*office.says(0), *office.says(1))
    for hub in office.hubs:
        hub.run(1, ())
    assert isinstance(office.seats[0].failure, ZeroDivisionError)
    assert office.seats[1].failure is None
    office.woken.clear()
    office.bring(*office.says(0), *office.says(1, b"again"))
    assert office.woken == [1], "nothing comes for who has ended"
    first.run(2, ())
    second.run(2, ())
    assert office.stacks[1].heard == [Say(b"hello"), Say(b"again")]


def test_sockets_that_are_of_no_use_any_more_end_all_groups(office: Office) -> None:
    office.exchange.failed(OSError("gone"))
    assert office.exchange.broken
    assert all(isinstance(seat.failure, OSError) for seat in office.seats)


def test_a_busy_group_leaves_the_others_their_turns(office: Office) -> None:
    """It takes its budget; what the quiet one was sent behind all that does not wait for the rest."""
    [large] = office.says(0, bytes(50_000))
    count = 3 * budget(2) // len(large)
    office.exchange._sort(1, [(large, office.mouth.address, False)] * count)
    office.exchange._sort(1, [(each, office.mouth.address, False) for each in office.says(1)])
    for hub in office.hubs:
        hub.run(1, ())
    assert office.stacks[1].heard == [Say(b"hello")]
    assert 0 < len(office.stacks[0].heard) <= budget(2) // len(large) + 1
    assert office.hubs[0].next_at() == 0
    while office.hubs[0].next_at() == 0:
        office.hubs[0].run(1, ())
    assert len(office.stacks[0].heard) == count


def test_the_kernel_lets_in_members_of_every_group(office: Office) -> None:
    class Line:
        def __init__(self, *places: Address) -> None:
            self._places = places

        def put(self, arrivals: Sequence[Arrival]) -> None:
            """Nothing comes."""

        def places(self) -> Sequence[Address]:
            return self._places

        def failed(self, error: BaseException) -> None:
            """It does not."""

    exchange = office.exchange
    for hub in office.hubs:
        hub.close()
    here, there, beyond = (("192.0.2.2", port) for port in (1, 2, 3))
    exchange.connect(b"a" * 8, Line(here, there))
    exchange.connect(b"b" * 8, Line(there, beyond))
    assert exchange._places() == [here, there, beyond]


def arrivals(*sizes: int) -> list[Arrival]:
    return [(bytes(size), ELSEWHERE, False) for size in sizes]


def test_an_inbox_keeps_the_order_and_gives_a_budget_at_a_time() -> None:
    inbox = Inbox()
    assert not inbox
    sizes = [100, 2000, 7, 8]
    assert inbox.put(arrivals(*sizes)) == 0
    taken = []
    while inbox:
        run, size = inbox.take(2000)
        assert size == sum(len(data) for data, _, _ in run)
        taken.append([len(data) for data, _, _ in run])
    assert taken == [[100, 2000], [7, 8]]
    assert inbox.take(2000) == ([], 0)


def test_an_inbox_is_bounded_also_against_the_smallest() -> None:
    inbox = Inbox()
    most = ROOM // COST
    assert inbox.put(arrivals(*[0] * (most + 10))) == 10
    assert inbox.put(arrivals(0)) == 1
    inbox.take(budget(1))
    assert inbox.put(arrivals(0)) == 0
    inbox.clear()
    assert not inbox
    assert inbox.put(arrivals(*[0] * most)) == 0


def test_a_group_has_less_in_a_turn_where_others_wait(office: Office) -> None:
    assert office.exchange.budget == budget(2) < budget(1)
    office.hubs[0].close()
    assert office.exchange.budget == budget(1)


def test_sockets_are_emptied_between_the_turns_of_busy_groups(office: Office) -> None:
    """They hold what the flow control of one group allows, not that of all."""
    [large] = office.says(0, bytes(50_000))
    office.exchange._sort(1, [(large, office.mouth.address, False)] * 2)
    office.mouth.send(office.says(1), [office.exchange.endpoint.address])
    deadline = time.monotonic() + 5.0
    while 1 not in office.woken:
        office.exchange._sort(1, [(large, office.mouth.address, False)] * 2)
        office.hubs[0].run(1, ())
        assert time.monotonic() < deadline
    office.hubs[1].run(1, ())
    assert office.stacks[1].heard == [Say(b"hello")]
