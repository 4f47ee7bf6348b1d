"""Programs that answer, publish, stop or never read: nobody stands still, and memory is bounded.

Queues and buffers are the smallest allowed: one message may wait to be sent, one for the program.
"""

from typing import Any

import pytest
from tests.protocols.vsync.vsyncflowlab import SIZE, Program, ProgramLab
from tests.protocols.vsync.vsynclab import MS, Lab

from semcast.core import Item
from semcast.core.events import Left
from semcast.core.ids import SECOND
from semcast.obsolescence import Purging
from semcast.protocols.semantic.backlog import EACH
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import Engine, Order
from semcast.protocols.vsync.batches import BatchOrder
from semcast.protocols.vsync.frames import InView

ORDERS: dict[str, dict[str, Any]] = {
    "fifo": {"order": Order.FIFO},
    "causal": {"order": Order.CAUSAL},
    "uniform": {"order": Order.FIFO, "uniform": True},
    "token": {"order": Order.TOTAL, "engine": Engine.TOKEN},
    "uniform token": {"order": Order.TOTAL, "engine": Engine.TOKEN, "uniform": True},
    "consensus": {"order": Order.TOTAL, "engine": Engine.CONSENSUS},
}
ONE = EACH + SIZE
"""Bytes of a message in the reserve."""


def formula(members: int, answers: int, under_way: int, queue: int = 1, send: int = 1) -> int:
    """The reserve with which nobody is told to read first, in bytes (`docs/flow-control.md`)."""
    return ONE * (under_way + members * (answers * (queue + under_way + 2) + send))


def is_bounded(lab: ProgramLab, reserve: int) -> bool:
    """D <= Q + R + 1.5 V, where V is what all members may have under way."""
    members, buffer = len(lab.nodes), lab.given["buffer_messages"]
    most = 1 + reserve // EACH + 1 + 3 * members * buffer // 2
    return all(lab[name].most_queued <= most for name in lab.nodes)


@pytest.mark.parametrize("reserve", ["none", "one", "formula"])
@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_programs_that_answer_from_their_handler(order: str, answers: int, reserve: str) -> None:
    bytes_ = {"none": 0, "one": ONE, "formula": formula(3, answers, 4 * 4)}[reserve]
    lab = ProgramLab(reserve_bytes=bytes_, **ORDERS[order])
    lab["a"].to_publish = 30
    for name in "bc":
        lab[name].answers = answers
    lab.work(1000)
    lab.run(SECOND)
    assert lab.stuck() == []
    assert is_bounded(lab, bytes_)
    if reserve == "formula":
        assert [lab[name].raised for name in lab.nodes] == [0, 0, 0]
        assert {len(lab[name].messages) for name in lab.nodes} == {30 + 2 * 30 * answers}


@pytest.mark.parametrize("order", ORDERS)
def test_programs_that_answer_through_a_join_and_a_crash(order: str) -> None:
    reserve = formula(4, 1, 5 * 4)
    lab = ProgramLab(names="abcd", reserve_bytes=reserve, buffer_messages=5, **ORDERS[order])
    lab["a"].to_publish = 60
    for name in "bcd":
        lab[name].answers = 1
    lab.work(50)
    lab.join("e").answers = 1
    lab.work(300)
    lab["d"].alive = False
    lab.work(1500)
    lab.run(SECOND)
    assert lab.stuck() == []
    assert lab["a"].views[-1] == ["a", "b", "c", "e"]
    assert [lab[name].raised for name in "abce"] == [0, 0, 0, 0]
    assert len({len(lab[name].messages) for name in "abc"}) == 1
    assert is_bounded(lab, reserve)


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_that_never_reads_holds_nobody_back(order: str) -> None:
    """It publishes, and through two changes of view: it need not take the views to go on."""
    lab = ProgramLab(names="abcd", buffer_messages=5, **ORDERS[order])
    lab["a"].never_reads()
    lab["a"].to_publish = lab["b"].to_publish = 40
    lab.work(100)
    lab["d"].alive = False
    lab.work(700)
    lab.join("e")
    lab["a"].to_publish += 10
    lab.work(1000)
    assert lab.stuck() == []
    assert {len(lab[name].messages) for name in "bc"} == {90}
    assert lab["a"].most_queued <= 1 + 3 * 5 * 5 // 2


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY])
@pytest.mark.parametrize("order", ORDERS)
def test_a_program_that_stopped_with_policy_purge_holds_nobody_back_where_all_becomes_obsolete(
    order: str, purging: Purging
) -> None:
    lab = ProgramLab(purging=purging, **ORDERS[order])
    a, c = lab["a"], lab["c"]
    c.seat.reads = False
    a.annotation = Item("x")
    a.to_publish = 200
    lab.work(1500)
    assert lab.stuck() == []
    assert a.views == [["a", "b", "c"]]
    assert c.most_queued <= 1 + 3 * 3 * 4 // 2
    c.seat.reads = True
    lab.run(SECOND)
    assert c.messages[-1][2] == b"199"


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_that_stopped_with_policy_block_holds_all_back_and_they_see_by_whom(order: str) -> None:
    lab = ProgramLab(purging=Purging.OFF, **ORDERS[order])
    a, c = lab["a"], lab["c"]
    c.seat.reads = False
    a.annotation = Item("x")
    a.to_publish = 60
    lab.work(500)
    assert lab.stuck() == ["a"]
    held = a.stack.held_back()
    assert held is not None
    assert held.by == c.member
    c.seat.reads = True
    lab.work(500)
    assert lab.stuck() == []
    assert len(c.messages) == 60, "nothing was purged"


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_that_stopped_with_policy_leave_leaves(order: str) -> None:
    lab = ProgramLab(leave_after=SECOND, **ORDERS[order])
    a, c = lab["a"], lab["c"]
    c.seat.reads = False
    a.to_publish = 60
    lab.work(2500)
    assert lab.stuck() == []
    assert [type(event) for event in c.events if isinstance(event, Left)] == [Left]
    assert a.views[-1] == ["a", "b"]


def test_a_program_that_waits_in_send_does_not_leave() -> None:
    """c waits in its handler, since nobody acknowledges what it sends: that is not stopping to read."""
    lab = ProgramLab(leave_after=200 * MS, reserve_bytes=1 << 20)
    a, c = lab["a"], lab["c"]
    c.answers = 5
    lab.lost = lambda source, _dest, frame: (
        source == "c" and isinstance(frame, InView) and isinstance(frame.frame, Data)
    )
    a.to_publish = 5
    lab.work(800)
    assert c.seat.waits
    assert not [event for event in c.events if isinstance(event, Left)]


@pytest.mark.parametrize("updates", [True, False])
def test_a_program_that_has_yet_to_read_is_skipped_only_if_nothing_it_has_is_obsolete(updates: bool) -> None:
    """Its queue is just full: of updates of one item, all but the last can go."""
    lab = ProgramLab(purging=Purging.LAZY, queue_messages=8, buffer_messages=16)
    c = lab["c"]
    c.never_reads()
    for number in range(8):
        lab["a"].multicast(b"%d" % number, annotation=Item("x") if updates else None)
        lab.run(5 * MS)
    lab.run(SECOND)
    assert c.seat.handover.reading.skipping is not updates
    assert c.stack.queued() == (1 if updates else 0)


def slow(order: str, size: int) -> tuple[int, Program]:
    """One program stopped, 600 updates of one item: how many are taken."""
    lab = ProgramLab(queue_messages=64, buffer_messages=64, **ORDERS[order])
    lab["c"].seat.reads = False
    taken = 0
    for number in range(600):
        taken += lab["a"].multicast(b"v%d" % number + bytes(size), annotation=Item("x"))
        lab.run(3 * MS)
    return taken, lab["c"]


@pytest.mark.parametrize("order", ORDERS)
def test_updates_for_a_stopped_program_are_all_taken(order: str) -> None:
    """Of the token order 122 were: the program's queue was full of commands that nobody reads."""
    taken, c = slow(order, 0)
    assert taken == 600
    assert c.stack.queued() <= 2


@pytest.mark.parametrize("order", ORDERS)
def test_large_messages_are_purged_as_a_unit(order: str) -> None:
    """60 were taken: pieces that nobody could deliver any more filled the queue."""
    taken, c = slow(order, 3000)
    assert taken == 600
    assert c.stack.queued() <= 2
    c.seat.reads = True
    c.lab.run(100 * MS)
    assert [payload[:4] for _, _, payload in c.messages] == [b"v599"]


@pytest.mark.parametrize("names", ["a", "ab"])
def test_consensus_goes_on_after_many_decisions(names: str) -> None:
    """Alone, delivery stopped after 1024 of them: nobody else could say that it knows them."""
    lab = Lab()
    for name in names:
        lab.add(name, minimum=len(names), order=Order.TOTAL, engine=Engine.CONSENSUS)
    lab.run(SECOND)
    a = lab.nodes["a"]
    for number in range(1100):
        assert a.multicast(b"%d" % number)
        lab.run(2 * MS)
    lab.run(SECOND)
    assert len(a.messages) == 1100
    stream = a.stack.stream
    assert stream is not None
    assert isinstance(stream.order, BatchOrder)
    assert len(stream.order._decisions) < 100


@pytest.mark.parametrize("pause", [60, 600])
@pytest.mark.parametrize("order", ORDERS)
def test_only_a_program_that_is_behind_for_long_misses_what_is_obsolete(order: str, pause: int) -> None:
    """One that keeps up was purged for, too, as soon as a burst filled its queue."""
    lab = ProgramLab(
        purging=Purging.LAZY, queue_messages=8, buffer_messages=64, lag=200 * MS, **ORDERS[order]
    )
    c = lab["c"]
    c.seat.reads = False
    for number in range(0, 20, 2):
        assert lab["a"].multicast_each([b"%d" % number, b"%d" % (number + 1)], [Item("x")] * 2) == 2
        lab.run(pause * MS // 10)
    c.seat.reads = True
    lab.run(SECOND)
    got = [int(payload) for _, _, payload in c.messages]
    assert got[-1] == 19
    assert (got == list(range(20))) is (pause < 200)
