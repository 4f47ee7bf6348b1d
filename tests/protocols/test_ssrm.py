"""S-SRM over window-based channels (Pereira 2002, 4.2 and appendix B), by hand."""

import pytest

from semcast.core import Annotation, Batch, Frame, Item, MemberId, Nanos, Outbox, Purged
from semcast.core.ids import SECOND
from semcast.lab import Keeper, Lab, Seat
from semcast.protocols.semantic import ChannelSettings, SenderMulticast
from semcast.protocols.semantic.frames import ChannelAck, ChannelData, Request
from semcast.protocols.semantic.ssrm import SsrmTimer

P, Q = MemberId("p"), MemberId("q")


class Pair:
    """p, q and the wire between them; applications read when they are told to."""

    def __init__(self, settings: ChannelSettings | None = None) -> None:
        self.lab = Lab()
        self._seats: list[Seat] = []
        stacks = [SenderMulticast(me, [P, Q], settings or ChannelSettings(), Outbox()) for me in (P, Q)]
        for stack, me in zip(stacks, (P, Q), strict=True):
            self._seats.append(self.lab.add(me, stack))
            self._seats[-1].reads = False
        self.p, self.q = stacks
        self.p_seat, self.q_seat = self._seats
        self.lab.start()

    def multicast(self, *payloads: bytes, annotation: Annotation | None = None) -> int:
        """By p."""
        return self.p_seat.multicast(*payloads, annotation=annotation)

    def carry(self, lose: frozenset[int] = frozenset()) -> None:
        """Carry what is on the wire; `lose` names sequence numbers whose data is lost."""
        self.lab.carries = lambda _source, _dest, frame: (
            not (isinstance(frame, ChannelData) and frame.payloads and frame.first in lose)
        )
        self.lab.carry()
        self.lab.carries = lambda *_: True

    def exchange(self) -> None:
        self.lab.flow()

    def resend(self, now: Nanos) -> None:
        self.lab.now = now
        self.p_seat.fire(SsrmTimer.RESEND)

    def sent(self) -> list[Frame]:
        return [frame for letter in self.lab.wire for frame in letter.frames]


def payloads(seat: Seat, most: int = 100) -> list[bytes]:
    assert isinstance(seat.application, Keeper)
    seat.read(most)
    deliveries, seat.application.taken = seat.application.taken, []
    return [payload for each in deliveries if isinstance(each, Batch) for payload in each.payloads]


def firsts(frames: list[Frame]) -> list[int]:
    return [frame.first for frame in frames if isinstance(frame, ChannelData)]


def test_messages_arrive_in_order() -> None:
    pair = Pair()
    assert pair.multicast(b"1", b"2", b"3") == 3
    pair.exchange()
    assert payloads(pair.q_seat) == payloads(pair.p_seat) == [b"1", b"2", b"3"]
    assert len(pair.p.outgoing[Q].to_send) == 0


def test_the_window_bounds_what_is_under_way() -> None:
    pair = Pair(ChannelSettings(window=4))
    pair.multicast(*[b"%d" % n for n in range(10)])
    assert firsts(pair.sent()) == [1, 2, 3, 4]


def test_a_purged_message_slides_the_window() -> None:
    """B.2: purging the message at s lets the one at s + w be sent."""
    pair = Pair(ChannelSettings(window=2))
    for n in range(3):
        pair.multicast(b"%d" % n, annotation=Item("x"))
    assert firsts(pair.sent()) == [1, 2, 3]


def test_a_receiver_skips_what_the_window_left_behind() -> None:
    pair = Pair()
    pair.multicast(b"old", annotation=Item("x"))
    pair.multicast(b"new", annotation=Item("x"))
    pair.carry(lose=frozenset({1}))
    assert payloads(pair.q_seat) == [b"new"]
    assert [event.id.seq for event in pair.q_seat.events if isinstance(event, Purged)] == [1]


def test_an_empty_window_is_said_so() -> None:
    """B.2: if there is nothing left to send, the receiver must be told explicitly."""
    pair = Pair(ChannelSettings(rto_initial=1 * SECOND))
    pair.multicast(b"1")
    pair.multicast(b"2", annotation=Item("x"))
    pair.carry(lose=frozenset({2}))
    pair.p.outgoing[Q].to_send.discard(P, 2)
    pair.carry()
    pair.resend(SECOND * 5)
    assert pair.sent() == [ChannelData(3, 3, [])] * 2, "at once, and again as long as it is not acknowledged"
    pair.exchange()
    assert pair.q.incoming[P].upto == 2


def test_a_lost_message_is_sent_again() -> None:
    pair = Pair()
    pair.multicast(b"1", b"2")
    pair.carry(lose=frozenset({1}))
    assert payloads(pair.q_seat) == []
    pair.exchange()
    pair.resend(SECOND)
    pair.exchange()
    assert payloads(pair.q_seat) == [b"1", b"2"]


def test_a_lost_acknowledgement_does_no_harm() -> None:
    pair = Pair()
    pair.multicast(b"1")
    pair.carry()
    pair.lab.drop()
    pair.resend(SECOND)
    pair.exchange()
    assert payloads(pair.q_seat) == [b"1"]
    assert pair.q.stats.duplicates == 1
    assert pair.p.outgoing[Q].resend_at() is None, "no endless retransmission"


def test_a_full_receiver_closes_and_opens_the_window() -> None:
    pair = Pair(ChannelSettings(buffer_messages=2))
    assert pair.multicast(b"1", b"2", b"3", b"4", b"5") == 2
    pair.exchange()
    payloads(pair.p_seat)
    assert pair.multicast(b"3") == 1
    pair.exchange()
    assert len(pair.q.to_deliver) == 2
    assert payloads(pair.q_seat, 1) == [b"1"]
    pair.exchange()
    assert payloads(pair.q_seat) == [b"2", b"3"]


def test_a_failed_member_holds_nobody_back() -> None:
    pair = Pair(ChannelSettings(buffer_messages=1))
    assert pair.multicast(b"1") == 1
    payloads(pair.p_seat)
    assert pair.multicast(b"2") == 0
    pair.p_seat.call(lambda stack, now: stack.member_failed(now, Q))
    assert pair.multicast(b"2") == 1


@pytest.mark.parametrize(
    "frame",
    [
        ChannelAck(5, 1),
        ChannelData(0, 1, [b"x"]),
        ChannelData(1, 0, [b"x"]),
        ChannelData(1, 1, [b"x", b"y"]),
        ChannelData(100, 1, [b"x"]),
        ChannelData(1 << 60, 1 << 60, [b"x"]),
        ChannelData(1, 1 << 60, []),
        Request(0, [(1, 1)]),
    ],
)
def test_absurd_frames_are_dropped_and_counted(frame: Frame) -> None:
    pair = Pair()
    pair.q_seat.hear(P, frame)
    assert pair.q.stats.malformed == 1
    assert pair.q.buffered() == 0
    assert not pair.lab.wire


@pytest.mark.parametrize("settings", [ChannelSettings(buffer_messages=0), ChannelSettings(window=0)])
def test_settings_that_cannot_work_are_refused(settings: ChannelSettings) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pair(settings)


def test_while_the_program_waits_to_send_more_is_kept_for_it() -> None:
    """A program that reads where it sends takes nothing before it has sent."""
    pair = Pair(ChannelSettings(buffer_messages=2, reserve_messages=3))
    pair.q.reader.waits = True
    pair.q.on_reader(0)
    for payload in (b"1", b"2"):
        assert pair.multicast(payload) == 1
        pair.exchange()
    payloads(pair.p_seat)
    assert (pair.multicast(b"3"), pair.multicast(b"4")) == (1, 1)
    pair.exchange()
    payloads(pair.p_seat)
    assert pair.q.queued() == 4
    assert not pair.q.overflowing()
    assert pair.multicast(b"5") == 1
    pair.exchange()
    assert pair.q.overflowing(), "who waits is told"
    pair.q.reader.waits = False
    pair.q.on_reader(0)
    assert payloads(pair.q_seat) == [b"1", b"2", b"3", b"4", b"5"]


def test_what_comes_next_has_room_whatever_came_before_its_time() -> None:
    pair = Pair(ChannelSettings(buffer_messages=2, reserve_messages=8, window=8))
    channel = pair.q.incoming[P]
    for seq in (3, 4):
        assert channel.receive(Batch(P, seq, [b"later"]))
    assert channel.receive(Batch(P, 1, [b"next"]))
    assert sorted(channel.pending) == [1, 3], "the last of them is sent again"
