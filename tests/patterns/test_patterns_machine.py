"""A replicated state machine by hand."""

import pytest

from semcast.core import Batch, KEnumeration, MemberId, View, ViewChange
from semcast.core.events import StateReceived
from semcast.core.messages import batch_of
from semcast.patterns import ReadAnswer, StateMachine

P, Q = MemberId("p"), MemberId("q")


class Line:
    """A total order; positions have gaps, as they do."""

    def __init__(self, *machines: StateMachine) -> None:
        self.machines = machines
        self.at = 0

    def take(self, sender: StateMachine) -> KEnumeration | None:
        """Order the next message of a member, and return its annotation."""
        message = sender.waiting()
        assert message is not None
        sender.sent()
        self.at += 3
        for machine in self.machines:
            batch = Batch(sender.me, self.at, [message.payload], message.annotation, order=self.at)
            machine.on_delivery(batch)
        assert message.annotation is None or isinstance(message.annotation, KEnumeration)
        return message.annotation


def test_a_read_protects_what_it_read() -> None:
    """3.4.4: update 3, read 6, update 12, update 15, read 18; 12 is obsolete, 3 was read."""
    p, q = StateMachine(P), StateMachine(Q)
    line = Line(p, q)
    p.update("x", b"1")
    assert line.take(p) == KEnumeration(0, 0, total=True)
    q.read("x")
    assert line.take(q) is None
    tag = line.take(q)
    assert tag is not None
    assert tag.positions() == []
    p.update("x", b"2")
    p.update("x", b"3")
    line.take(p)
    line.take(p)
    p.read("x")
    line.take(p)
    tag = line.take(p)
    assert tag is not None
    assert (tag.base, tag.positions(), tag.total) == (18, [12], True)
    assert q.take_answers() == [ReadAnswer(1, "x", b"1", 6)]
    assert p.take_answers() == [ReadAnswer(1, "x", b"3", 18)]
    assert p.state == q.state == {"x": b"3"}


def test_a_reply_makes_the_one_before_it_obsolete() -> None:
    p = StateMachine(P)
    line = Line(p)
    tags = []
    for _ in range(3):
        p.read("x")
        line.take(p)
        tags.append(line.take(p))
    assert [tag.positions() for tag in tags if tag is not None] == [[], [], [6]]


def test_replies_that_wait_are_one() -> None:
    p = StateMachine(P)
    line = Line(p)
    p.read("x")
    p.read("y")
    line.take(p)
    line.take(p)
    line.take(p)
    assert p.waiting() is None
    assert [answer.number for answer in p.take_answers()] == [1, 2]


def test_where_nobody_reads_the_first_member_says_what_is_obsolete() -> None:
    p, q = StateMachine(P, note_every=3), StateMachine(Q, note_every=3)
    line = Line(p, q)
    for machine in (p, q):
        machine.on_delivery(ViewChange(View(1, (P, Q))))
    for _ in range(3):
        q.update("x", b"")
    for _ in range(3):
        line.take(q)
    assert q.waiting() is None
    tag = line.take(p)
    assert tag is not None
    assert tag.positions() == [6, 3]
    assert p.waiting() is None


def test_who_joins_gets_the_items() -> None:
    p, q = StateMachine(P), StateMachine(Q)
    p.update("x", b"1")
    p.update("y", b"1")
    p.update("y", None)
    line = Line(p)
    for _ in range(3):
        line.take(p)
    q.on_delivery(StateReceived(2, p.export()))
    assert q.state == p.state == {"x": b"1"}


def test_order_must_be_total() -> None:
    p = StateMachine(P)
    with pytest.raises(ValueError, match="choose order=total"):
        p.on_delivery(batch_of(Q, 1, [b"\x91\x02"]))


def test_messages_of_others_are_refused() -> None:
    p = StateMachine(P)
    p.on_delivery(Batch(Q, 1, [b"hello"], order=4))
    assert p.refused == 1
