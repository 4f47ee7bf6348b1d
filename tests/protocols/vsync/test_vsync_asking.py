"""Who waits to know that all have a message is told at once; nobody is told more where nobody waits."""

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, Node, group

from semcast.core.events import Confirmed
from semcast.core.ids import SECOND
from semcast.core.outbox import Frame
from semcast.core.outgoing import Outgoing
from semcast.protocols.vsync import DetectorSettings, Order
from semcast.protocols.vsync.frames import InView, Received

RARE = DetectorSettings(
    heartbeat=200 * MS, timeout_initial=2 * SECOND, timeout_min=SECOND, timeout_max=5 * SECOND, margin=SECOND
)


def settled(order: Order = Order.FIFO) -> Lab:
    lab = group(detector=RARE, order=order, buffer_messages=1024)
    lab.run(SECOND)
    return lab


def wait(lab: Lab, node: Node, count: int = 1) -> int:
    """Send so many messages that shall be safe; returns after how many milliseconds all are."""
    start, answers = lab.now, node.seat.handover.answers
    for ticket in range(count):
        node.seat.offer(Outgoing([b"x"], confirm=(ticket, True)))
    while len(answers) < count:
        assert lab.now < start + SECOND
        lab.run(MS)
    assert all(isinstance(answer, Confirmed) for answer in answers)
    answers.clear()
    return (lab.now - start) // MS


@pytest.mark.parametrize("order", list(Order))
def test_a_safe_confirmation_does_not_wait_for_a_heartbeat(order: Order) -> None:
    """There, back, and what a member may keep quiet for: it took a heartbeat, of 50 ms in live groups."""
    lab = settled(order)
    for name in "abc":
        assert wait(lab, lab.nodes[name]) <= 8


def test_what_came_late_is_told_at_once_too() -> None:
    """The message was lost on its way to c, which is asked before it has it."""
    lab = settled()
    lost: list[Frame] = []

    def lose(_source: str, dest: str, frame: Frame) -> bool:
        if dest == "c" and isinstance(frame, InView) and not lost:
            lost.append(frame)
            return True
        return False

    lab.lost = lose
    assert wait(lab, lab.nodes["a"]) <= 20
    assert lost


def test_a_lost_question_is_asked_again() -> None:
    lab = settled()
    lab.lost = lambda _source, dest, frame: dest == "c" and isinstance(frame, Received) and not late
    late = False
    node = lab.nodes["a"]
    node.seat.offer(Outgoing([b"x"], confirm=(1, True)))
    lab.run(10 * MS)
    assert not node.seat.handover.answers
    late = True
    lab.run(2 * 200 * MS)
    assert len(node.seat.handover.answers) == 1


def words(lab: Lab) -> list[Received]:
    heard: list[Received] = []

    def note(_source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Received):
            heard.append(frame)
        return False

    lab.lost = note
    return heard


def test_no_word_is_said_where_nobody_waits() -> None:
    lab = settled()
    heard = words(lab)
    for _ in range(5):
        lab.nodes["a"].multicast(b"x")
        lab.run(MS)
    lab.run(1995 * MS)
    assert not any(frame.asks for frame in heard)
    assert len(heard) <= 3 * 2 * (10 + 1), "heartbeats"


def test_many_who_wait_ask_once_in_a_turn() -> None:
    lab = settled()
    heard, a = words(lab), lab.nodes["a"]
    for ticket in range(20):
        a.seat.handover.send(Outgoing([b"x"], confirm=(ticket, True)))
    a.seat.call(lambda _stack, _now: None)
    lab.run(10 * MS)
    assert len(a.seat.handover.answers) == 20
    assert len(heard) <= 3 * 2, "one word of each, to two others"
