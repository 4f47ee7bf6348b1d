"""Many at a time: runs of updates, and frames in a row, come to the same as one by one."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, Node, group

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId
from semcast.core.ids import SECOND
from semcast.obsolescence import Purging
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import Engine, Order, VsyncSettings
from semcast.protocols.vsync.frames import InView, Received

ORDERS = [
    pytest.param({"order": Order.FIFO}, id="fifo"),
    pytest.param({"order": Order.CAUSAL}, id="causal"),
    pytest.param({"order": Order.FIFO, "uniform": True}, id="uniform"),
    pytest.param({"order": Order.TOTAL, "engine": Engine.TOKEN}, id="token"),
    pytest.param({"order": Order.TOTAL, "engine": Engine.CONSENSUS}, id="consensus"),
]


class SlowNode(Node):
    """An application that takes a few messages now and then."""

    def __init__(self, lab: Lab, member: MemberId, given: VsyncSettings) -> None:
        super().__init__(lab, member, given)
        self.seat.reads = False

    def read(self, most: int) -> None:
        self.seat.read(most)


def updates(node: Node, items: Sequence[str], payload: bytes) -> int:
    notes = [Item(item) for item in items]
    return node.multicast_each([b"%s %s" % (i.encode(), payload) for i in items], notes)


def last_of_each(messages: Sequence[tuple[str, int, bytes]]) -> dict[tuple[str, bytes], bytes]:
    return {(sender, payload.split()[0]): payload for sender, _, payload in messages}


def accounts_balance(lab: Lab) -> None:
    for node in lab.nodes.values():
        stream = node.stack.stream
        assert stream is not None
        held = stream.buffers.occupancy
        assert held.messages == sum(map(len, stream.buffers.retained))
        assert held.cached == stream.buffered() - held.messages - stable_and_waiting(stream.buffers)


def stable_and_waiting(buffers: Buffers) -> int:
    """What only waits for the program."""
    stable = {member: buffers.stable[rank] for member, rank in buffers.ranks.items()}
    return sum(max(min(each.last, stable[each.sender]) - each.first + 1, 0) for each in buffers.to_deliver)


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY, Purging.OFF])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_runs_of_updates_leave_everybody_with_the_last_of_each(
    order: dict[str, Any], purging: Purging, seed: int
) -> None:
    rng = Random(seed)
    lab = group(purging=purging, frame_bytes=200, **order)
    lab.lost = lambda _source, _dest, frame: isinstance(frame, InView) and rng.random() < 0.2
    sent: dict[tuple[str, bytes], bytes] = {}
    for number in range(60):
        node = rng.choice(list(lab.nodes.values()))
        items = [rng.choice("xyz") for _ in range(rng.randint(1, 12))]
        taken = updates(node, items, b"%d" % number)
        for item in items[:taken]:
            sent[node.member.name, item.encode()] = b"%s %d" % (item.encode(), number)
        if rng.random() < 0.3:
            node.multicast(b"plain %d" % number)
        lab.run(rng.choice((0, MS // 2, 5 * MS, 30 * MS)))
        if order["order"] is not Order.TOTAL:
            accounts_balance(lab)
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(2 * SECOND)
    accounts_balance(lab)
    for node in lab.nodes.values():
        found = last_of_each(node.messages)
        assert {key: found[key] for key in sent} == sent
    if purging is Purging.OFF:
        assert len({frozenset(node.messages) for node in lab.nodes.values()}) == 1
    if purging is Purging.OFF and order["order"] is Order.TOTAL:
        assert len({tuple(node.messages) for node in lab.nodes.values()}) == 1


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY])
def test_a_slow_application_skips_what_is_obsolete_in_runs(purging: Purging) -> None:
    lab = Lab()
    for name in "ab":
        lab.add(name, minimum=2, purging=purging, buffer_messages=512)
    slow = lab.add("c", kind=SlowNode, minimum=2, purging=purging, buffer_messages=512)
    assert isinstance(slow, SlowNode)
    lab.run(SECOND)
    slow.read(1)
    assert set(lab.phases().values()) == {"operational"}
    a, sent = lab.nodes["a"], 0
    for number in range(100):
        sent += updates(a, ["x", "y"] * 10, b"%d" % number)
        lab.run(10 * MS)
        slow.read(2)
    assert sent == 2000, "nobody waits for it"
    lab.run(SECOND)
    for _ in range(20):
        slow.read(20)
    assert len(slow.messages) < 1000
    assert last_of_each(slow.messages) == {("a", b"x"): b"x 99", ("a", b"y"): b"y 99"}
    lab.run(SECOND)
    accounts_balance(lab)


def test_who_is_deaf_does_not_stop_updates_that_replace_each_other() -> None:
    """Runs that are not stable soon are purged behind safe ones, as single updates are."""
    lab = group(purging=Purging.LAZY, buffer_messages=64, window=1 << 14, fair=True)
    a, b, c = lab.nodes.values()
    lab.lost = lambda _source, dest, frame: dest == "c" and isinstance(frame, InView)
    sent = 0
    for number in range(200):
        sent += updates(a, ["x", "y"] * 4, b"%d" % number)
        lab.run(10 * MS)
    assert sent > 500, "though no more than 32 may be under way"
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(SECOND)
    assert last_of_each(c.messages) == last_of_each(b.messages)
    accounts_balance(lab)


def test_annotations_of_several_kinds_go_one_by_one() -> None:
    lab = group()
    a, b = lab.nodes["a"], lab.nodes["b"]
    notes: list[Annotation] = [Item("x"), Enumeration(()), Item("x")]
    assert a.multicast_each([b"1", b"2", b"3"], notes) == 3
    large = [b"4", bytes(3000)]
    assert a.multicast_each(large, [Item("x"), Item("y")]) == 2
    with pytest.raises(ValueError, match="item of 0 characters"):
        a.stack.multicast_each(lab.now, [b"5"], [Item("")])
    lab.run(SECOND)
    assert [payload for _, _, payload in b.messages] == [b"1", b"2", b"3", *large]


@pytest.mark.parametrize("order", ORDERS)
def test_frames_in_a_row_come_to_the_same_through_changes_of_view(order: dict[str, Any]) -> None:
    rng = Random(5)
    lab = Lab(bursts=True)
    for name in "abcd":
        lab.add(name, **{"minimum": 3, "fair": True, **order})
    lab.lost = lambda _source, _dest, frame: isinstance(frame, InView | Received) and rng.random() < 0.1
    lab.run(SECOND)
    for number in range(150):
        for node in lab.nodes.values():
            if node.alive:
                node.multicast(b"%d" % number, b"again %d" % number)
        lab.run(2 * MS)
        if number == 70:
            lab.nodes["a"].alive = False
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(2 * SECOND)
    alive = [node for node in lab.nodes.values() if node.alive]
    assert [node.views[-1] for node in alive] == [["b", "c", "d"]] * 3
    assert len({frozenset(node.messages) for node in alive}) == 1
    assert all(len(node.messages) > 300 for node in alive)
    for node in alive:
        for sender in "abcd":
            seqs = [seq for who, seq, _ in node.messages if who == sender]
            assert seqs == sorted(seqs)


def test_a_run_with_too_few_items_is_no_run() -> None:
    lab = group()
    for frame in (Data(1, 1, [b"x", b"y"], items=["x"]), Data(1, 1, [b"x"], left=1, items=["x"])):
        lab.nodes["a"].hear(MemberId("b"), InView(1, frame))
    assert lab.nodes["a"].stack.stats.malformed == 2
    assert not lab.nodes["a"].messages


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY])
@pytest.mark.parametrize("engine", list(Engine))
def test_what_another_sender_replaces_in_a_run_takes_up_no_room(engine: Engine, purging: Purging) -> None:
    """What left the delivery queue before it was stable was never counted out, until nothing found room."""
    lab = Lab()
    given: dict[str, Any] = {"order": Order.TOTAL, "engine": engine, "purging": purging}
    a, b = lab.add("a", **given), lab.add("b", **given)
    c = lab.add("c", kind=SlowNode, **given)
    assert isinstance(c, SlowNode)
    lab.run(SECOND)
    c.read(1)
    for number in range(40):
        assert updates(a, [f"{number}x", f"{number}y", f"{number}z"], b"1") == 3
        lab.run(5 * MS)
        stream = b.stack.stream
        assert stream is not None
        everything = KEnumeration(stream.order.position + 1, (1 << 12) - 1, total=True)
        assert b.multicast(b"note", annotation=everything) == 1
        lab.run(100 * MS)
        c.read(1000)
        lab.run(20 * MS)
        accounts_balance(lab)
    assert c.stack.stats.purged_delivery > 0
