"""S-SRM over window-based channels (Pereira 2002, 4.2 and appendix B), by hand."""

import pytest

from semcast.core import Frame, Item, MemberId, Outbox, Purged
from semcast.core.ids import SECOND
from semcast.protocols.semantic import ChannelSettings, SenderMulticast
from semcast.protocols.semantic.frames import ChannelAck, ChannelData, Request
from semcast.protocols.semantic.ssrm import SsrmTimer

P, Q = MemberId("p"), MemberId("q")


def pair(settings: ChannelSettings | None = None) -> tuple[SenderMulticast, SenderMulticast]:
    made = [SenderMulticast(me, [P, Q], settings or ChannelSettings(), Outbox()) for me in (P, Q)]
    for member in made:
        member.start(0)
        member.out.events.clear()
    return made[0], made[1]


def carry(
    source: SenderMulticast, dest: SenderMulticast, now: int = 0, lose: frozenset[int] = frozenset()
) -> None:
    """Carry frames one way; `lose` names sequence numbers whose data is lost."""
    sends, source.out.sends = source.out.sends, []
    for _, frame in sends:
        if not (isinstance(frame, ChannelData) and frame.payloads and frame.first in lose):
            dest.on_frame(now, Q if P in source.outgoing else P, frame)


def exchange(p: SenderMulticast, q: SenderMulticast, now: int = 0) -> None:
    for _ in range(6):
        carry(p, q, now)
        carry(q, p, now)


def payloads(member: SenderMulticast, most: int = 100) -> list[bytes]:
    return [payload for batch in member.deliver(0, most) for payload in batch.payloads]


def test_messages_arrive_in_order() -> None:
    p, q = pair()
    assert p.multicast(0, [b"1", b"2", b"3"]) == 3
    exchange(p, q)
    assert payloads(q) == payloads(p) == [b"1", b"2", b"3"]
    assert len(p.outgoing[Q].to_send) == 0


def test_the_window_bounds_what_is_under_way() -> None:
    p, _ = pair(ChannelSettings(window=4))
    p.multicast(0, [b"%d" % n for n in range(10)])
    assert [frame.first for _, frame in p.out.sends if isinstance(frame, ChannelData)] == [1, 2, 3, 4]


def test_a_purged_message_slides_the_window() -> None:
    """B.2: purging the message at s lets the one at s + w be sent."""
    p, _ = pair(ChannelSettings(window=2))
    for n in range(3):
        p.multicast(0, [b"%d" % n], Item("x"))
    assert [frame.first for _, frame in p.out.sends if isinstance(frame, ChannelData)] == [1, 2, 3]


def test_a_receiver_skips_what_the_window_left_behind() -> None:
    p, q = pair()
    p.multicast(0, [b"old"], Item("x"))
    p.multicast(0, [b"new"], Item("x"))
    carry(p, q, lose=frozenset({1}))
    assert payloads(q) == [b"new"]
    assert [event.id.seq for event in q.out.events if isinstance(event, Purged)] == [1]


def test_an_empty_window_is_said_so() -> None:
    """B.2: if there is nothing left to send, the receiver must be told explicitly."""
    p, q = pair(ChannelSettings(rto_initial=1 * SECOND))
    p.multicast(0, [b"1"])
    p.multicast(0, [b"2"], Item("x"))
    carry(p, q, lose=frozenset({2}))
    p.outgoing[Q].to_send.discard(P, 2)
    carry(q, p)
    p.on_timer(SECOND * 5, SsrmTimer.RESEND)
    frames = [frame for _, frame in p.out.sends]
    assert frames == [ChannelData(3, 3, [])] * 2, "at once, and again as long as it is not acknowledged"
    exchange(p, q)
    assert q.incoming[P].upto == 2


def test_a_lost_message_is_sent_again() -> None:
    p, q = pair()
    p.multicast(0, [b"1", b"2"])
    carry(p, q, lose=frozenset({1}))
    assert payloads(q) == []
    exchange(p, q)
    p.on_timer(SECOND, SsrmTimer.RESEND)
    exchange(p, q)
    assert payloads(q) == [b"1", b"2"]


def test_a_lost_acknowledgement_does_no_harm() -> None:
    p, q = pair()
    p.multicast(0, [b"1"])
    carry(p, q)
    q.out.sends.clear()
    p.on_timer(SECOND, SsrmTimer.RESEND)
    exchange(p, q)
    assert payloads(q) == [b"1"]
    assert q.stats.duplicates == 1
    assert p.outgoing[Q].resend_at() is None, "no endless retransmission"


def test_a_full_receiver_closes_and_opens_the_window() -> None:
    p, q = pair(ChannelSettings(buffer_messages=2))
    accepted = p.multicast(0, [b"1", b"2", b"3", b"4", b"5"])
    assert accepted == 2
    exchange(p, q)
    payloads(p)
    assert p.multicast(0, [b"3"]) == 1
    exchange(p, q)
    assert len(q.to_deliver) == 2
    assert payloads(q, 1) == [b"1"]
    exchange(p, q)
    assert payloads(q) == [b"2", b"3"]


def test_a_failed_member_holds_nobody_back() -> None:
    p, _ = pair(ChannelSettings(buffer_messages=1))
    assert p.multicast(0, [b"1"]) == 1
    payloads(p)
    assert p.multicast(0, [b"2"]) == 0
    p.member_failed(0, Q)
    assert p.multicast(0, [b"2"]) == 1


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
    _, q = pair()
    q.on_frame(0, P, frame)
    assert q.stats.malformed == 1
    assert q.buffered() == 0
    assert not q.out.sends


@pytest.mark.parametrize("settings", [ChannelSettings(buffer_messages=0), ChannelSettings(window=0)])
def test_settings_that_cannot_work_are_refused(settings: ChannelSettings) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        pair(settings)
