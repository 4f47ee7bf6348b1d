"""What a sceptical review of virtual synchrony found, each as short as it gets."""

from collections.abc import Sequence

import msgspec
import pytest
from tests.protocols.vsync.vsynclab import MS, TERMS, Lab, group, hello

from semcast.core import Item, MemberId
from semcast.core.ids import SECOND
from semcast.core.outbox import Frame
from semcast.protocols.pieces import Piece
from semcast.protocols.semantic.frames import Data, Notice
from semcast.protocols.vsync import Engine, Order
from semcast.protocols.vsync.consensus_frames import Decision, Instance
from semcast.protocols.vsync.frames import (
    Accept,
    Ballot,
    Init,
    InView,
    Pred,
    Received,
    StateChunk,
    StateWanted,
    Superseded,
    Welcome,
)
from semcast.protocols.vsync.sets_order import SetsOrder

encode = msgspec.msgpack.encode
A, B, C, STRANGER = (MemberId(name) for name in ("a", "b", "c", "x"))


def test_a_sets_order_that_comes_late_is_obeyed_however_many_wait_for_it() -> None:
    lab = group(order=Order.TOTAL, engine=Engine.TOKEN, buffer_messages=512, latency=MS // 5)
    a, b, c = lab.nodes.values()
    lost: list[int] = []

    def lose(_source: str, dest: str, frame: Frame) -> bool:
        if (
            dest != "c"
            or len(lost) == 2
            or not isinstance(frame, InView)
            or not isinstance(frame.frame, Data)
        ):
            return False
        data = frame.frame
        if data.sender != 0 or not data.head or msgspec.msgpack.decode(data.head, type=SetsOrder).token != 1:
            return False
        lost.append(data.first)
        return True

    lab.lost = lose
    for number in range(6):
        b.multicast(b"b%d" % number)
        lab.run(5 * MS)
    for number in range(300):
        a.multicast(b"a%d" % number)
        b.multicast(b"b%d" % number)
        lab.run(MS // 2)
    lab.run(2 * SECOND)
    assert len(lost) == 2
    assert len(a.messages) == 606
    assert a.messages == b.messages == c.messages


def test_a_holder_that_lacks_what_was_ordered_before_has_nothing_to_say() -> None:
    lab = group(order=Order.TOTAL, engine=Engine.TOKEN)
    b = lab.nodes["b"]
    stream = b.stack.stream
    assert stream is not None
    stream.order.assigned[0] = 5  # type: ignore[attr-defined]
    assert not stream.order.unassigned()  # type: ignore[attr-defined]


@pytest.mark.parametrize("state", [False, True])
def test_everybody_leaves_at_once(state: bool) -> None:
    lab = group("ab", state=state)
    for node in lab.nodes.values():
        node.leave()
    lab.run(2 * SECOND)
    assert set(lab.phases().values()) == {"left"}


def test_the_only_one_with_the_state_leaves_while_another_waits_for_it() -> None:
    lab = Lab()
    a = lab.add("a", minimum=1, state=True)
    lab.run(300 * MS)
    b = lab.add("b", minimum=0, state=True)
    while b.stack.view().id < 2:
        lab.run(MS)
    a.leave("x" * 1000)
    lab.run(2 * SECOND)
    assert lab.phases() == {"a": "left", "b": "operational"}
    assert b.views[-1] == ["b"]


def test_joiners_that_vanish_do_not_take_the_majority_away() -> None:
    lab = group()
    for node in lab.nodes.values():
        for number in range(6):
            node.hear(MemberId(f"gone{number}"), hello())
            node.hear(MemberId("again", number), hello())
    lab.run(300 * MS)
    for node in lab.nodes.values():
        for number in range(6):
            node.hear(MemberId(f"gone{number}"), hello())
            node.hear(MemberId("again", number), hello())
    lab.run(5 * SECOND)
    assert set(lab.phases().values()) == {"operational"}
    assert lab.nodes["a"].views[-1] == ["a", "b", "c"]
    assert all(sum(name.startswith("again") for name in view) <= 1 for view in lab.nodes["a"].views)


def test_what_no_peer_would_accept_is_refused_at_once() -> None:
    lab = group(frame_bytes=200)
    a = lab.nodes["a"].stack
    with pytest.raises(ValueError, match="item of 300 characters"):
        a.multicast(lab.now, [bytes(1000)], Item("i" * 300))
    with pytest.raises(ValueError, match="fit in the buffers"):
        a.multicast(lab.now, [bytes(1 << 20)])


HUGE = 1 << 61
CROWD = [MemberId(str(number)) for number in range(900)]


def change(
    staying: Sequence[int] = (0, 1, 2),
    joined: Sequence[MemberId] = (),
    left: Sequence[tuple[int, str]] = (),
    cut: Sequence[int] = (0, 0, 0),
    providers: Sequence[int] = (0, 1, 2),
    report: bytes = b"",
) -> Decision:
    """What is decided at the end of view 1, as it travels."""
    value = encode([staying, joined, left, cut, providers, report, 2, False, False, False])
    return Decision(Instance(1, 0), value)


HOSTILE: list[Frame] = [
    Pred(1, [HUGE] * 3, [], [], stateful=True),
    Pred(1, [0], [], [], stateful=True),
    Pred(1, [0] * 3, [], [], stateful=True, report=b"junk"),
    Received(1, [HUGE] * 3),
    Decision(Instance(1, 0), b"garbage"),
    change(staying=[0, 0, 1]),
    change(staying=[0, 1, 3]),
    change(left=[(3, "failed")]),
    change(cut=[HUGE] * 3),
    change(providers=[3]),
    change(staying=[0, 1]),
    change(report=b"junk"),
    change(joined=[C]),
    change(joined=[STRANGER, STRANGER]),
    change(joined=CROWD),
    Decision(Instance(1, 1), encode([HUGE] * 3)),
    Decision(Instance(1, 1), b"garbage"),
    InView(1, Data(1, 1, [b""], None, b"garbage")),
    InView(1, Data(1, 1, [b""], None, encode(SetsOrder(HUGE, [(0, HUGE)], 0)))),
    InView(1, Data(1, 1, [b"x", b"y"], None, b"", 3)),
    InView(1, Notice(0, 1, b"\x01", [(1, b"garbage")])),
    InView(1, Notice(0, 1, b"\x01", [(1, encode([(900, 1)]))])),
    Init(1, [(STRANGER, "?")], [MemberId("n" * 30_000)]),
    Init(1, [], CROWD),
    Welcome(HUGE, [A, A], [0, 0], [], []),
    Welcome(2, [A, B, C], [0, 0, 0], [], []),
    Welcome(2, [A, B, C], [0, 0, 0], [3], [0]),
    Welcome(2, [A, B, C], [0, 0, 0], [0], [3]),
    Piece(bytes(8), 0, 1, b"junk"),
    Piece(bytes(8), 0, 2, b"junk"),
    Superseded(1 << 60, A),
    Superseded(5, B),
    hello(founding=True),
    Accept(Ballot(1, B), [], 0, TERMS),
    StateWanted(1, 0),
    StateChunk(1, 0, HUGE, b""),
]


@pytest.mark.parametrize("order", list(Order))
def test_frames_that_no_correct_member_sends_harm_nobody(order: Order) -> None:
    engine = Engine.CONSENSUS if order is Order.TOTAL else Engine.TOKEN
    for frame in HOSTILE:
        lab = group(order=order, engine=engine)
        lab.nodes["a"].hear(B, frame)
        lab.nodes["a"].hear(STRANGER, frame)
        lab.run(SECOND)
        for node in lab.nodes.values():
            node.multicast(b"still here")
        lab.run(SECOND)
        assert all(len(node.messages) == 3 for node in lab.nodes.values()), frame


def test_a_stranger_is_not_given_the_state() -> None:
    lab = group(state=True)
    lab.nodes["a"].stack.provide(1, b"secret")
    lab.nodes["a"].hear(STRANGER, StateWanted(1, 0))
    assert not [frame for frame in lab.sent() if isinstance(frame, StateChunk)]


def test_a_decision_is_not_answered_with_a_decision() -> None:
    """Else two members that know it tell each other for ever, and many of them talk a network full."""
    lab = group()
    a, b, c = lab.nodes.values()
    c.seat.call(lambda stack, now: stack.leave(now))
    lab.run(SECOND)
    assert a.stack.view() == b.stack.view()
    decision = b.stack._past.decision
    assert decision is not None
    lab.bench.drop()
    b.seat.hear(A, decision)
    assert not [letter for letter in lab.bench.wire if isinstance(letter.frames[0], Decision)]
    lab.run(20 * MS)
    lab.bench.drop()
    b.seat.hear(A, Init(decision.instance.view, [], []))
    answers = [letter for letter in lab.bench.wire if isinstance(letter.frames[0], Decision)]
    assert [letter.dest for letter in answers] == ["a"], "who lacks it is told"
