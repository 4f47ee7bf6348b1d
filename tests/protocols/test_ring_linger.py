"""A member that sends little keeps the token for a while, where nobody else wants it."""

import pytest
from tests.protocols.ringlab import RingLab

from semcast.core import Frame
from semcast.core.ids import MILLISECOND
from semcast.core.outgoing import Outgoing
from semcast.protocols.ring import RingSettings
from semcast.protocols.ring.frames import Packet, Token, TokenAck, TokenWanted

LINGER = 5


def idle(linger: int = LINGER) -> RingLab:
    lab = RingLab("pqr", RingSettings(linger=linger * MILLISECOND))
    lab.start()
    lab.run_for(600)
    assert all(len(ring.order.members) == 3 for ring in lab.rings.values())
    return lab


def hops(lab: RingLab) -> int:
    return max(ring.stats.token_hops for ring in lab.rings.values())


def said(lab: RingLab, name: str) -> str:
    return "".join(word for word in lab.story[name] if len(word) == 1)


def test_what_comes_next_leaves_at_once_without_the_token_going_round() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.flow()
    before = hops(lab)
    for letter in b"bcd":
        lab.multicast("p", bytes([letter]))
        lab.flow()
    assert hops(lab) == before
    assert [said(lab, name) for name in "pqr"] == ["abcd"] * 3


def test_the_token_goes_round_when_the_time_is_over() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.flow()
    before = hops(lab)
    lab.run_for(LINGER + 1)
    assert hops(lab) > before
    assert all(ring.order.confirmed_aru == 0 for ring in lab.rings.values())
    lab.run_for(200)
    assert {ring.order.confirmed_aru for ring in lab.rings.values()} == {1}


def test_whoever_wants_the_token_gets_it_at_once() -> None:
    lab = idle()
    for sender in "rpqqrp":
        before = lab.now
        lab.multicast(sender, sender.encode())
        lab.flow()
        assert lab.now == before
    assert {said(lab, name) for name in "pqr"} == {"rpqqrp"}


def test_what_must_be_safe_does_not_wait() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.multicast("p", b"b", safe=True)
    lab.flow()
    assert [said(lab, name) for name in "pqr"] == ["ab"] * 3


def test_a_packet_lost_while_the_token_stays_is_asked_for_when_it_goes() -> None:
    lab = idle()
    lab.carries = lambda _source, dest, frame: not (dest == "q" and isinstance(frame, Packet))
    lab.multicast("p", b"a")
    lab.multicast("p", b"b")
    lab.flow()
    assert said(lab, "q") == ""
    lab.carries = lambda _source, _dest, _frame: True
    lab.run_for(10 * LINGER)
    assert [said(lab, name) for name in "pqr"] == ["ab"] * 3


def test_the_published_ring_passes_the_token_on_after_each_visit() -> None:
    lab = idle(linger=0)
    lab.multicast("p", b"a")
    lab.flow()
    before = hops(lab)
    lab.multicast("p", b"b")
    lab.flow()
    assert hops(lab) > before


def test_the_token_stays_as_long_as_something_is_sent_but_not_for_ever() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.flow()
    before, held = hops(lab), 0
    while hops(lab) == before:
        lab.run_for(LINGER - 1)
        lab.multicast("p", b"b")
        lab.flow()
        held += LINGER - 1
    assert 8 * LINGER <= held <= 11 * LINGER


def test_the_token_goes_round_soon_after_the_last_message() -> None:
    lab = idle()
    for _ in range(3):
        lab.multicast("p", b"a")
        lab.flow()
        lab.run_for(LINGER - 1)
    before = hops(lab)
    lab.run_for(4 * LINGER)
    assert hops(lab) > before


@pytest.mark.parametrize(("pause", "most"), [(0, 5), (1, 64)])
def test_a_visit_that_goes_on_ends_after_so_many_packets(pause: int, most: int) -> None:
    lab = idle(linger=20)
    lab.multicast("p", b"a")
    lab.flow()
    before, sent = hops(lab), 1
    while hops(lab) == before:
        lab.run_for(pause)
        lab.multicast("p", b"b")
        lab.flow()
        sent += 1
    assert sent == most + 1


def test_who_sees_that_a_packet_is_missing_asks_for_the_token_at_once() -> None:
    lab = idle()
    lab.carries = lambda _source, dest, frame: not (dest == "q" and isinstance(frame, Packet))
    lab.multicast("p", b"a")
    lab.flow()
    lab.carries = lambda _source, _dest, _frame: True
    before = lab.now
    lab.multicast("p", b"b")
    lab.flow()
    assert lab.now == before
    assert [said(lab, name) for name in "pqr"] == ["ab"] * 3


def test_who_was_not_heard_asks_for_the_token_again() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.flow()
    lab.carries = lambda _source, _dest, frame: not isinstance(frame, TokenWanted)
    lab.multicast("q", b"b")
    lab.flow()
    lab.carries = lambda _source, _dest, _frame: True
    waited = 0
    while "b" not in said(lab, "p"):
        lab.run_for(LINGER - 1)
        lab.multicast("p", b"a")
        lab.flow()
        waited += LINGER - 1
    assert waited <= 3 * LINGER


def test_who_waits_to_know_that_all_have_a_message_does_not_wait_for_the_token() -> None:
    lab = idle()
    lab.multicast("p", b"a")
    lab.flow()
    before = lab.now
    lab.seats["p"].send_or_wait(Outgoing([b"b"], confirm=(2, True)))
    lab.flow()
    assert lab.now == before
    assert lab.rings["p"].order.confirmed_aru == 2


def test_a_token_is_acknowledged_where_it_rests_before_it_is_sent_again_and_not_where_it_goes_on() -> None:
    lab = RingLab("pqr", RingSettings(hold=100 * MILLISECOND, packet_bytes=10, visit=2, visit_least=1))
    lab.start()
    lab.run_for(600)
    sent: list[Frame] = []

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        sent.append(frame)
        return True

    lab.carries = carries
    for number in range(60):
        lab.multicast("q", b"message%d" % number)
    lab.run_for(1)
    busy = [type(frame) for frame in sent]
    assert busy.count(Token) >= 3 * 30
    assert busy.count(TokenAck) <= 6
    sent.clear()
    lab.run_for(90)
    tokens = [frame.number for frame in sent if isinstance(frame, Token)]
    assert len(tokens) == len({*tokens}), "no token was sent again while it rested"
    assert any(isinstance(frame, TokenAck) for frame in sent)
