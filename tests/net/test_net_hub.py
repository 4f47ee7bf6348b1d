"""What is for everybody goes out once where all are heard at the meeting point, and else to each."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from secrets import token_hex

import msgspec
import pytest

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.net.addresses import LOOPBACK, meeting_point
from semcast.net.exchange import Exchange
from semcast.net.hub import Hub
from semcast.net.pieces import cut
from semcast.net.shield import LIMIT
from semcast.net.sockets import Endpoint
from semcast.protocols.ring import RingSettings
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.protocols.ring.frames import ConfId, Presence, TokenWanted
from semcast.wire.datagrams import Codec, Malformed
from semcast.wire.status import Contacts, Status

TERMS = RingSettings().terms()
CONF = ConfId(1, MemberId("a"))


STATUS = Status(
    phase="operational",
    view=1,
    representative=MemberId("a"),
    members=3,
    sent=0,
    delivered=0,
    purged=0,
    retransmitted=0,
    buffered=0,
    unsent=0,
    uptime=1,
)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < deadline


class Station:
    """A hub of its own, and what came to it."""

    def __init__(self, name: str, group: str, *, meets: bool = True) -> None:
        self.member = MemberId(name)
        meeting = meeting_point(group) if meets else None
        self.endpoint = Endpoint((LOOPBACK, 0), meeting)
        self.exchange = Exchange(self.endpoint)
        codec = Codec(group, (), 1400, RING_FRAMES)
        self.hub = Hub(self.member, self.exchange, codec, (), meeting=meeting, multicast=True)
        self.hub.start(0)
        self.heard: list[MemberId] = []

    def listen(self, now: Nanos, frames: int = 0) -> int:
        """Take in what comes, until so many frames have; returns how many have."""
        found, deadline = 0, time.monotonic() + 5.0
        while True:
            self.exchange.run(now, self.endpoint.filenos())
            for source, run in self.hub.receive(now):
                self.heard.append(source)
                found += len(run)
            if found >= frames or time.monotonic() > deadline:
                return found


@pytest.fixture
def stations() -> Iterator[list[Station]]:
    group = f"post {token_hex(4)}"
    with ExitStack() as opened:
        made = [Station(name, group) for name in "abc"]
        for each in made:
            opened.callback(each.endpoint.close)
        yield made


def greet(stations: list[Station], now: Nanos) -> None:
    """Everybody speaks at the meeting point, and hears the others there."""
    for each in stations:
        each.hub.announce([Presence(CONF, TERMS)])
    for each in stations:
        assert each.listen(now, len(stations) - 1) == len(stations) - 1
        each.hub.tend(now)


def test_one_datagram_for_all_who_are_heard_at_the_meeting_point(stations: list[Station]) -> None:
    first, *others = stations
    greet(stations, now=0)
    before = first.hub.traffic().datagrams_out
    first.hub.send([(None, TokenWanted(CONF))])
    assert first.hub.traffic().datagrams_out == before + 1
    assert [each.listen(0, 1) for each in others] == [1, 1]
    assert first.listen(0) == 0, "nobody hears oneself"


def test_one_for_each_until_they_have_met(stations: list[Station]) -> None:
    first, *others = stations
    for each in others:
        each.hub._book.heard(0, first.member, first.endpoint.address)
        each.hub.send([(first.member, TokenWanted(CONF))])
    assert first.listen(0, 2) == 2
    first.hub.tend(0)
    before = first.hub.traffic().datagrams_out
    first.hub.send([(None, TokenWanted(CONF))])
    assert first.hub.traffic().datagrams_out == before + 2


def test_one_for_each_while_somebody_says_that_it_hears_nobody_there(stations: list[Station]) -> None:
    """Who is heard at the meeting point may be deaf there: nothing sent to it again would arrive, either."""
    first, second, _ = stations
    greet(stations, now=0)
    for deaf, datagrams in ((True, 2), (False, 1)):
        second.hub.announce([STATUS if not deaf else msgspec.structs.replace(STATUS, deaf=True)])
        assert first.listen(0, 0) == 0
        wait_for(lambda deaf=deaf: first.listen(0) == 0 and (second.member in first.hub._deaf) is deaf)  # type: ignore[misc]
        first.hub.tend(0)
        before = first.hub.traffic().datagrams_out
        first.hub.send([(None, TokenWanted(CONF))])
        assert first.hub.traffic().datagrams_out == before + datagrams


def test_who_is_not_heard_there_makes_deaf(stations: list[Station]) -> None:
    first = stations[0]
    greet(stations, now=0)
    assert not first.hub.deaf
    first.hub.tend(4 * SECOND)
    assert first.hub.deaf


def test_one_for_each_again_when_somebody_falls_silent_there(stations: list[Station]) -> None:
    first = stations[0]
    greet(stations, now=0)
    first.hub.tend(4 * SECOND)
    before = first.hub.traffic().datagrams_out
    first.hub.send([(None, TokenWanted(CONF))])
    assert first.hub.traffic().datagrams_out == before + 2


def test_what_it_said_as_another_incarnation_is_not_heard_either(stations: list[Station]) -> None:
    first, other, _ = stations
    again = MemberId("a", 1)
    first.hub.renew(again)
    for member in (again, first.member, MemberId("x")):
        other.endpoint.send(
            other.hub._codec.encode(member, [Presence(CONF, TERMS)]),
            [first.endpoint.address],
        )
    assert first.listen(0, 1) == 1
    assert first.heard == [MemberId("x")]


def test_pieces_are_put_together(stations: list[Station]) -> None:
    first, other, _ = stations
    [whole] = other.hub._codec.encode(other.member, [Contacts([(MemberId("x"), LOOPBACK, 9)] * 40)])
    other.endpoint.send(cut(whole, 500, other.hub._codec.group, 7), [first.endpoint.address])
    wait_for(lambda: first.listen(0) == 0 and first.hub._book.find(MemberId("x")) is not None)
    assert first.hub._book.find(other.member) == other.endpoint.address


def test_who_speaks_for_another_is_dropped_while_that_one_speaks(stations: list[Station]) -> None:
    """On one host, without a key; after a silence it may have moved."""
    first, other, liar = stations
    forged = liar.hub._codec.encode(other.member, [TokenWanted(CONF)])
    other.endpoint.send(other.hub._codec.encode(other.member, [TokenWanted(CONF)]), [first.endpoint.address])
    assert first.listen(0, 1) == 1
    for now, heard in ((SECOND, 0), (5 * SECOND, 1)):
        before = first.endpoint.stats.datagrams_in
        liar.endpoint.send(forged, [first.endpoint.address])
        found = 0
        while first.endpoint.stats.datagrams_in == before:
            found += first.listen(now)
        assert found == heard
    assert first.hub.stats.malformed == {Malformed.ELSEWHERE: 1}


def test_who_floods_is_kept_out_and_others_are_heard(stations: list[Station]) -> None:
    first, other, flooder = stations
    for _ in range(LIMIT // 10):
        flooder.endpoint.send([b"garbage"] * 10, [first.endpoint.address])
        assert first.listen(0) == 0
    wait_for(lambda: first.listen(0) == 0 and bool(first.exchange._verdict))
    before = first.endpoint.stats.datagrams_in
    flooder.endpoint.send([b"garbage"] * 10, [first.endpoint.address])
    other.endpoint.send(other.hub._codec.encode(other.member, [TokenWanted(CONF)]), [first.endpoint.address])
    assert first.listen(0, 1) == 1
    assert first.endpoint.stats.datagrams_in == before + 1
    first.endpoint.count_drops()
    assert first.endpoint.stats.kept_out > 0, "what the kernel joined counts once"
