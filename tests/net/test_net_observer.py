"""An observer hears members announce themselves, believes little, and says nothing."""

from collections.abc import Iterator
from secrets import token_hex

import msgspec
import pytest

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.net.addresses import meeting_point
from semcast.net.observer import SILENCE, Observer
from semcast.net.sockets import Endpoint
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.wire import Codec, Malformed
from semcast.wire.status import Status

P, Q = MemberId("p", 1), MemberId("q", 2)
STATUS = Status(
    phase="operational",
    view=3,
    representative=P,
    members=2,
    sent=100,
    delivered=50,
    purged=7,
    retransmitted=0,
    buffered=4,
    unsent=0,
    uptime=10 * SECOND,
)


class Lab:
    """An observer, and a socket that speaks for members."""

    def __init__(self) -> None:
        group = f"test-{token_hex(6)}"
        self.now: Nanos = SECOND
        self.codec = Codec(group, (), 1400, RING_FRAMES)
        self.meeting = meeting_point(group)
        self.mouth = Endpoint(("127.0.0.1", 0), self.meeting)
        self.ears = Endpoint(("127.0.0.1", 0), self.meeting)
        self.observer = Observer(self.ears, self.codec, MemberId("watcher"), clock=lambda: self.now)

    def say(self, *datagrams: bytes) -> None:
        self.mouth.send(datagrams, [self.meeting])
        before = self.ears.stats.datagrams_in
        while self.ears.stats.datagrams_in < before + len(datagrams):
            self.observer.wait(1.0)

    def report(self, member: MemberId, status: Status) -> None:
        self.say(*self.codec.encode(member, [status]))


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.observer.close()
    made.mouth.close()


def later(status: Status, seconds: int, **changes: int) -> Status:
    return msgspec.structs.replace(status, uptime=status.uptime + seconds * SECOND, **changes)


def test_members_are_seen_with_their_rates_and_nothing_is_sent(lab: Lab) -> None:
    lab.report(Q, STATUS)
    lab.report(P, STATUS)
    lab.report(P, later(STATUS, 2, sent=300))
    first, second = lab.observer.members()
    assert (first.member, second.member) == (P, Q)
    assert first.address == lab.mouth.address
    assert (first.rate("sent"), first.rate("delivered")) == (100.0, 0.0)
    assert second.rate("sent") is None
    assert lab.ears.stats.datagrams_out == 0


def test_late_reports_and_copies_change_nothing(lab: Lab) -> None:
    newest = later(STATUS, 1, sent=120)
    lab.report(P, newest)
    lab.report(P, STATUS)
    lab.report(P, newest)
    [seen] = lab.observer.members()
    assert (seen.status, seen.before) == (newest, None)


def test_who_leaves_or_falls_silent_is_gone(lab: Lab) -> None:
    lab.report(P, STATUS)
    lab.report(Q, STATUS)
    lab.report(P, msgspec.structs.replace(later(STATUS, 1), phase="left"))
    assert [seen.member for seen in lab.observer.members()] == [Q]
    lab.now += SILENCE + 1
    assert lab.observer.members() == []


def test_what_cannot_be_read_is_counted(lab: Lab) -> None:
    lab.say(b"", b"nonsense that is long enough", lab.codec.encode(P, [STATUS])[0][:-1])
    assert lab.observer.members() == []
    assert lab.observer.malformed == {Malformed.TRUNCATED: 1, Malformed.VERSION: 1, Malformed.BODY: 1}


def test_a_crowd_of_inventions_is_bounded(lab: Lab) -> None:
    for number in range(1100):
        lab.report(MemberId(f"m{number}"), STATUS)
    assert len(lab.observer.members()) == 1024


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase": "x" * 33},
        {"view": -1},
        {"members": 1 << 20},
        {"uptime": 1 << 63},
        {"sent": "many"},
        {"representative": 7},
    ],
)
def test_a_status_out_of_bounds_is_no_status(lab: Lab, wrong: dict[str, object]) -> None:
    fields = msgspec.structs.asdict(STATUS) | wrong
    bad = Status(**fields)
    [data] = lab.codec.encode(P, [bad])
    assert lab.codec.decode(data) is Malformed.BODY
