"""State transfer beside the messages: the group goes on while a large state is handed over."""

from typing import Any

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, Node

from semcast.core.ids import SECOND
from semcast.protocols.vsync.frames import StateChunk

SIZE = 2_000_000


class Big(Node):
    """An application with much state."""

    def __init__(self, *args: Any) -> None:
        self.restored = 0
        super().__init__(*args)

    def export(self) -> bytes:
        return bytes(SIZE)

    def restore(self, state: bytes) -> None:
        self.restored = len(state)


def test_a_large_state_does_not_stop_the_group() -> None:
    lab = Lab(10 * MS)
    given: dict[str, Any] = {"state": True, "buffer_messages": 256, "resend": 40 * MS}
    for name in "abc":
        lab.add(name, kind=Big, minimum=2, **given)
    lab.run(2 * SECOND)
    a, d = lab.nodes["a"], lab.add("d", kind=Big, minimum=0, **given)
    taken = []
    for _ in range(20):  # 1000 messages a second are offered
        before = len(a.messages)
        for _ in range(20):
            for _ in range(10):
                a.multicast(b"x" * 10)
            lab.run(10 * MS)
        taken.append(len(a.messages) - before)
    assert isinstance(d, Big)
    assert d.restored == SIZE
    assert min(taken) > 100, "at no time for longer than a change of view takes"
    assert len(d.messages) > 1000


@pytest.mark.parametrize("rate", [5, 3])
def test_a_state_arrives_though_chunks_are_lost(rate: int) -> None:
    lab = Lab()
    lab.add("a", kind=Big, minimum=1, state=True)
    lab.run(500 * MS)
    count = 0

    def lose(_source: str, _dest: str, frame: object) -> bool:
        nonlocal count
        count += isinstance(frame, StateChunk)
        return isinstance(frame, StateChunk) and count % rate == 0

    lab.lost = lose
    b = lab.add("b", kind=Big, minimum=0, state=True)
    lab.run(20 * SECOND)
    assert isinstance(b, Big)
    assert b.restored == SIZE


def test_a_provider_whose_program_stops_reading_is_not_waited_for() -> None:
    """a is asked first; it closes before it has handed over anything, and b is asked."""
    lab = Lab()
    for name in "abc":
        lab.add(name, kind=Big, minimum=2, state=True)
    lab.run(SECOND)
    a = lab.nodes["a"]
    a.seat.reads = False
    d = lab.add("d", kind=Big, minimum=0, state=True)
    while d.stack.view().id < 2:
        lab.run(MS)
    a.stack.reader.receives = False
    a.seat.call(lambda stack, now: stack.on_reader(now))
    lab.run(SECOND)
    assert isinstance(d, Big)
    assert d.restored == SIZE


def skip(node: Node) -> None:
    """Its program never iterated, and its queue was full."""
    node.seat.handover.reading.skip()
    node.seat.call(lambda _stack, _now: None)


def test_a_program_that_was_skipped_gives_no_state_and_is_given_one_when_it_reads() -> None:
    lab = Lab()
    for name in "abc":
        lab.add(name, minimum=2, state=True).state = b"old"
    lab.run(SECOND)
    a, b = lab.nodes["a"], lab.nodes["b"]
    skip(a)
    b.multicast(b"1")
    lab.run(100 * MS)
    b.state = lab.nodes["c"].state = b"new"
    a.seat.handover.begin()
    a.seat.call(lambda _stack, _now: None)
    d = lab.add("d", minimum=0, state=True)
    lab.run(2 * SECOND)
    assert a.views[-1] == b.views[-1] == d.views[-1] == ["a", "b", "c", "d"]
    assert (a.state, d.state) == (b"new", b"new")


def test_a_lone_member_that_closes_does_not_change_its_view_over_and_over() -> None:
    """It lingers, cannot give its state, and somebody wants to join."""
    lab = Lab()
    a = lab.add("a", minimum=1, state=True, linger=2 * SECOND)
    lab.run(500 * MS)
    a.seat.handover.reading.closing = True
    b = lab.add("b", minimum=0, state=True)
    lab.run(SECOND)
    assert a.stack.view().id == 2
    assert b.views == [["a", "b"]]
