"""The life of a group with agreed views: founded once, left in peace, lost and re-formed."""

from typing import Any

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, Node, group, hello

from semcast.core import Batch, Frame, MemberId
from semcast.core.events import Delivery, Left, StateLost
from semcast.core.ids import SECOND
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import Reform
from semcast.protocols.vsync.changes import Change, encode
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision, Instance
from semcast.protocols.vsync.frames import Goodbye, InView, Received, Refused, Superseded, Welcome


class Stateful(Node):
    """An application whose state is the list of messages it has seen."""

    def __init__(self, *args: Any) -> None:
        self.seen: list[bytes] = []
        self.lost: list[StateLost] = []
        super().__init__(*args)

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if isinstance(each, Batch):
            self.seen += each.payloads
        elif isinstance(each, StateLost):
            self.lost.append(each)

    def export(self) -> bytes:
        return b" ".join(self.seen)

    def restore(self, state: bytes) -> None:
        self.seen = state.split()


def stateful(names: str = "abc", **given: Any) -> Lab:
    lab = Lab()
    for name in names:
        lab.add(name, kind=Stateful, **{"minimum": len(names) // 2 + 1, "state": True, **given})
    lab.run(SECOND)
    lab.nodes[names[0]].multicast(*[b"%d" % number for number in range(5)])
    lab.run(100 * MS)
    return lab


STATE = [b"0", b"1", b"2", b"3", b"4"]


def state_of(node: Node) -> list[bytes]:
    assert isinstance(node, Stateful)
    return node.seen


def kill(lab: Lab, *names: str) -> None:
    for name in names:
        lab.nodes[name].alive = False


def restart(lab: Lab, *names: str, incarnation: int = 1, **given: Any) -> None:
    for name in names:
        lab.add(name, incarnation, kind=Stateful, **{"minimum": 2, "state": True, **given})


def view_of(node: Node) -> set[str]:
    return {str(member) for member in node.stack.view().members}


# Founding


def test_who_restarts_while_the_third_founder_is_late_founds_no_second_group() -> None:
    lab = stateful("ab", minimum=2)
    kill(lab, "b")
    restart(lab, "b", "c", incarnation=1)
    lab.run(5 * SECOND)
    assert (
        view_of(lab.nodes["a"]) == view_of(lab.nodes["b"]) == view_of(lab.nodes["c"]) == {"a", "b#1", "c#1"}
    )
    assert [state_of(node) for node in lab.nodes.values()] == [STATE] * 3


def test_two_of_three_restart_and_the_third_goes_on_with_the_state() -> None:
    lab = stateful()
    a = lab.nodes["a"]
    kill(lab, "b", "c")
    restart(lab, "b", "c")
    lab.run(5 * SECOND)
    assert {frozenset(view_of(node)) for node in lab.nodes.values()} == {frozenset({"a", "b#1", "c#1"})}
    assert [state_of(node) for node in lab.nodes.values()] == [STATE] * 3
    assert a.views[0] == ["a", "b", "c"]
    assert a.multicast(b"x")


@pytest.mark.parametrize("gap", [100 * MS, 500 * MS, 2 * SECOND])
def test_a_rolling_restart_keeps_the_state_or_says_that_it_is_lost(gap: int) -> None:
    lab = stateful()
    for name in "abc":
        kill(lab, name)
        restart(lab, name)
        lab.run(gap)
    lab.run(10 * SECOND)
    assert {frozenset(view_of(node)) for node in lab.nodes.values()} == {frozenset({"a#1", "b#1", "c#1"})}
    states = {tuple(state_of(node)) for node in lab.nodes.values()}
    lost = [node for node in lab.nodes.values() if isinstance(node, Stateful) and node.lost]
    assert len(states) == 1
    assert (states == {tuple(STATE)}) is not bool(lost)


def test_a_bootstrap_that_restarts_joins_the_others() -> None:
    lab = Lab()
    lab.add("a", kind=Stateful, minimum=1, state=True)
    lab.run(300 * MS)
    lab.add("b", kind=Stateful, minimum=0, state=True)
    lab.add("c", kind=Stateful, minimum=0, state=True)
    lab.run(SECOND)
    lab.nodes["b"].multicast(*STATE)
    lab.run(100 * MS)
    kill(lab, "a")
    restart(lab, "a", minimum=1)
    lab.run(3 * SECOND)
    assert view_of(lab.nodes["a"]) == {"a#1", "b", "c"}
    assert state_of(lab.nodes["a"]) == STATE


# Leaving


def test_who_leaves_while_it_joins_says_so() -> None:
    lab = stateful()
    d = lab.add("d", minimum=0)
    lab.run(20 * MS)
    assert d.stack.phase() == "joining"
    d.seat.call(lambda stack, now: stack.leave(now))
    assert [frame for frame in lab.sent() if isinstance(frame, Goodbye)]
    assert d.events[-1] == Left("asked to")


@pytest.mark.parametrize("says", [True, False])
def test_who_said_goodbye_is_let_into_no_view(says: bool) -> None:
    """Two hellos are enough to be let in: the others had a view with somebody who never came."""
    lab = stateful()
    for at in range(2):
        for name in "abc":
            lab.nodes[name].seat.hear(MemberId("d"), hello())
        lab.run(at + 1)
    for name in "abc" if says else "":
        lab.nodes[name].seat.hear(MemberId("d"), Goodbye())
        lab.nodes[name].seat.hear(MemberId("d"), hello())  # it was under way
    lab.run(3 * SECOND)
    assert any("d" in view for view in lab.nodes["a"].views) is not says
    assert view_of(lab.nodes["a"]) == {"a", "b", "c"}


def test_founders_do_not_count_on_who_left_before_the_group_was_founded() -> None:
    lab = Lab()
    for name in "ab":
        lab.add(name, minimum=3)
    lab.run(150 * MS)
    lab.nodes["b"].seat.call(lambda stack, now: stack.leave(now))
    lab.run(20 * MS)
    lab.add("c", minimum=3)
    lab.run(300 * MS)
    assert lab.nodes["a"].stack.phase() == "joining", "two of them are here, and three are needed"
    lab.add("d", minimum=3)
    lab.run(2 * SECOND)
    assert {frozenset(view_of(lab.nodes[name])) for name in "acd"} == {frozenset("acd")}


@pytest.mark.parametrize("leaver", ["a", "b"])
def test_of_two_one_leaves_and_the_decision_is_lost(leaver: str) -> None:
    lab = group("ab", linger=SECOND)
    lost: list[Frame] = []

    def lose(_source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Decision) and not lost:
            lost.append(frame)
            return True
        return False

    lab.lost = lose
    lab.nodes[leaver].leave()
    lab.run(3 * SECOND)
    rest = lab.nodes["b" if leaver == "a" else "a"]
    assert lab.nodes[leaver].stack.phase() == "left"
    assert rest.views[-1] == [str(rest.member)]
    assert rest.multicast(b"x")


def test_two_of_three_leave_at_once_and_the_third_misses_the_decision() -> None:
    lab = group("abc")
    lost: list[Frame] = []

    def lose(_source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Decision) and dest == "c" and len(lost) < 3:
            lost.append(frame)
            return True
        return False

    lab.lost = lose
    for name in "ab":
        lab.nodes[name].leave()
    lab.run(3 * SECOND)
    assert lab.phases() == {"a": "left", "b": "left", "c": "operational"}
    assert lab.nodes["c"].views[-1] == ["c"]


@pytest.mark.parametrize("uniform", [False, True])
def test_who_is_put_out_serves_those_who_lack_its_messages(uniform: bool) -> None:
    """Only a, which crashes, and those who are put out have the message that was agreed on."""
    lab = group("abcde", uniform=uniform)
    a = lab.nodes["a"]
    cut = True

    def lose(source: str, dest: str, frame: Frame) -> bool:
        data = isinstance(frame, InView) and isinstance(frame.frame, Data)
        return (dest in "bc" and data) or (cut and source in "de" and dest == "a" and not data)

    lab.lost = lose
    lab.nodes["d"].multicast(b"m")
    for _ in range(3000):
        lab.run(MS // 4)
        if a.stack.view().id > 1:
            break
        changing = a.stack._changing
        if changing is not None and changing._proposed:
            cut = False
    a.alive = False
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(10 * SECOND)
    for name in "bc":
        assert lab.nodes[name].stack.phase() == "operational"
    assert lab.nodes["b"].messages == lab.nodes["c"].messages


# Joining


def test_a_joiner_that_dies_beside_a_lone_member_blocks_nobody() -> None:
    lab = Lab()
    a = lab.add("a", minimum=1, state=True)
    lab.run(500 * MS)
    for _ in range(3):
        a.hear(MemberId("b"), hello())
        lab.run(45 * MS)
    lab.run(2 * SECOND)
    assert a.views[-1] == ["a"]
    assert a.multicast(b"x")
    lab.add("b", 1, minimum=0, state=True)
    lab.run(2 * SECOND)
    assert lab.phases() == {"a": "operational", "b": "operational"}


@pytest.mark.parametrize("names", ["a", "abc"])
def test_who_joins_and_leaves_at_once_does_not_join_again(names: str) -> None:
    lab = group(names)
    a, everybody = lab.nodes["a"], list(names)
    before = len(a.views)
    x = lab.add("x", 1, minimum=0)
    while not x.views:
        lab.run(MS)
    x.leave()
    while x.alive and view_of(a) != set(names):
        lab.run(MS)
    for _ in range(2):  # copies that the network kept
        a.hear(x.member, hello())
        lab.run(MS)
    lab.run(SECOND)
    assert a.views[before:] == [[*everybody, "x#1"], everybody]


def test_a_newcomer_with_the_name_of_a_living_member_is_refused() -> None:
    lab = group()
    a = lab.nodes["a"]
    refused: list[Refused] = []

    def note(_source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Refused) and dest == "c":
            refused.append(frame)
            return True  # it is not for the one that is in the group
        return False

    lab.lost = note
    for _ in range(30):
        a.hear(MemberId("c", 7), hello())
        lab.run(40 * MS)
    assert {frame.cause for frame in refused} == {"a living member is called c"}
    assert a.views == [["a", "b", "c"]]


def test_who_was_let_in_and_never_heard_is_no_living_namesake() -> None:
    """It crashed while the view with it was agreed on, and is back: nobody living has its name."""
    lab = group()
    a, stalled, refused = lab.nodes["a"], True, []

    def note(source: str, dest: str, frame: Frame) -> bool:
        refused.extend([frame] if isinstance(frame, Refused) else [])
        return "x" in (source, dest) or (stalled and isinstance(frame, ConsensusFrame))

    lab.lost = note
    for _ in range(10):
        a.hear(MemberId("x", 1), hello())
        lab.run(20 * MS)
    for number in range(200):
        stalled = number < 60
        a.hear(MemberId("x", 2), hello())
        lab.run(40 * MS)
    assert ["a", "b", "c", "x#1"] in a.views
    assert ["a", "b", "c", "x#2"] in a.views
    assert refused == []


def test_who_is_refused_is_told_and_does_not_come_back() -> None:
    lab = group()
    twin = lab.add("d", 7, minimum=0)
    twin.hear(MemberId("a"), Refused("a living member is called d"))
    assert twin.stack.phase() == "left"
    assert Left("refused: a living member is called d", again=False) in twin.events


def test_a_newcomer_with_the_name_of_a_silent_member_replaces_it() -> None:
    lab = group()
    kill(lab, "c")
    lab.add("c", 7, minimum=2)
    lab.run(SECOND)
    assert view_of(lab.nodes["a"]) == {"a", "b", "c#7"}


# Being told that it is over


def test_forged_claims_that_the_group_went_on_end_nobody() -> None:
    lab = group()
    for node in lab.nodes.values():
        for other in lab.nodes.values():
            if other is not node:
                node.hear(other.member, Superseded(2, node.member, "gone"))
    lab.run(SECOND)
    assert set(lab.phases().values()) == {"operational"}
    assert lab.nodes["a"].stack.view().id == 1


def test_a_minority_tells_nobody_that_it_is_superseded() -> None:
    lab = group("abcde")
    told: list[str] = []

    def lose(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Superseded):
            told.append(source)
        return "e" in (source, dest)

    lab.lost = lose
    lab.run(SECOND)
    kill(lab, "a", "b", "c")
    lab.run(SECOND)
    assert lab.nodes["d"].stack.phase() == "minority"
    lab.nodes["d"].hear(MemberId("e"), Received(1, [0] * 5))
    assert told == []


# A lost majority


def test_survivors_wait_until_everybody_is_accounted_for() -> None:
    lab = stateful("abcde")
    kill(lab, "a", "b", "c")
    lab.run(SECOND)
    restart(lab, "a", "b", minimum=3)
    lab.run(3 * SECOND)
    assert lab.nodes["d"].stack.phase() == "minority"
    restart(lab, "c", minimum=3)
    lab.run(3 * SECOND)
    views = [node.stack.view() for node in lab.nodes.values()]
    assert {str(member) for member in views[0].members} == {"a#1", "b#1", "c#1", "d", "e"}
    assert all(view == views[0] for view in views)
    assert views[0].id > 1_000_000
    assert {tuple(state_of(node)) for node in lab.nodes.values()} == {tuple(STATE)}


def test_the_view_says_that_it_was_reformed_and_from_what() -> None:
    lab = stateful()
    kill(lab, "b", "c")
    restart(lab, "b", "c")
    seen = []
    for _ in range(3000):
        lab.run(MS)
        seen.append(lab.nodes["a"].stack.view())
    reformed = {view.id: view.reformed for view in seen if view.reformed is not None}
    assert reformed == {1_000_000: 1}


def test_survivors_have_what_any_of_them_has() -> None:
    """d has a message that e lacks: both go on with it."""
    lab = stateful("abcde")
    lab.lost = lambda _source, dest, frame: dest == "e" and isinstance(frame, InView)
    lab.nodes["d"].multicast(b"late")
    lab.run(3 * MS)
    kill(lab, "a", "b", "c")
    lab.run(SECOND)
    lab.lost = lambda _source, _dest, _frame: False
    restart(lab, "a", "b", "c", minimum=3)
    lab.run(4 * SECOND)
    assert {tuple(state_of(node)) for node in lab.nodes.values()} == {(*STATE, b"late")}


def test_manual_reform_waits_for_the_command() -> None:
    lab = stateful(reform=Reform.MANUAL)
    a = lab.nodes["a"]
    kill(lab, "b", "c")
    restart(lab, "b", reform=Reform.MANUAL)
    lab.run(2 * SECOND)
    assert a.stack.phase() == "minority"
    a.seat.call(lambda stack, now: stack.reform(now))
    lab.run(2 * SECOND)
    assert view_of(a) == view_of(lab.nodes["b"]) == {"a", "b#1"}
    assert state_of(lab.nodes["b"]) == STATE


def test_the_last_copy_of_the_state_is_gone_and_everybody_is_told() -> None:
    """a alone has the state; it dies while b waits for it."""
    lab = Lab()
    lab.add("a", kind=Stateful, minimum=1, state=True)
    lab.run(300 * MS)
    lab.lost = lambda source, _dest, frame: type(frame).__name__ == "StateChunk"
    b = lab.add("b", kind=Stateful, minimum=0, state=True)
    while b.stack.view().id < 2:
        lab.run(MS)
    kill(lab, "a")
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(SECOND)
    assert b.stack.phase() == "minority"
    restart(lab, "a", minimum=1)
    lab.run(2 * SECOND)
    a = lab.nodes["a"]
    assert view_of(a) == view_of(b) == {"a#1", "b"}
    assert isinstance(b, Stateful)
    assert [lost.view for lost in b.lost] == [1_000_000]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("leaver", ["a", "b"])
def test_who_leaves_a_reformed_view_of_two_does_not_change_it_over_and_over(leaver: str, back: bool) -> None:
    """The other does not answer, and may come back under its name."""
    lab = Lab()
    for name in "abc":
        lab.add(name, kind=Stateful, minimum=3, state=True)
    lab.run(SECOND)
    kill(lab, "b")
    kill(lab, "c")
    lab.run(SECOND)
    restart(lab, "b", minimum=3)
    restart(lab, "c", minimum=3)
    lab.run(2 * SECOND)
    kill(lab, "c")
    lab.run(2 * SECOND)
    stays, other = lab.nodes[leaver], {"a": "b", "b": "a"}[leaver]
    before = stays.stack.view()
    assert before.id > 1_000_000
    assert len(before.members) == 2
    kill(lab, other)
    stays.seat.handover.leave()
    stays.leave()
    lab.run(SECOND)
    if back:
        restart(lab, other, incarnation=2, minimum=3)
    lab.run(3 * SECOND)
    assert stays.stack.view().id % 1_000_000 < before.id % 1_000_000 + 3


def test_who_wants_to_join_a_full_group_does_not_make_it_change_its_view() -> None:
    lab = Lab()
    for name in "abc":
        lab.add(name, minimum=3, buffer_messages=3)
    lab.run(SECOND)
    lab.add("d", minimum=0, buffer_messages=3)
    lab.run(2 * SECOND)
    assert [node.stack.view().id for node in lab.nodes.values()] == [1, 1, 1, 0]
    kill(lab, "c")
    lab.run(2 * SECOND)
    assert view_of(lab.nodes["a"]) == {"a", "b", "d"}, "once there is room"


def test_who_joins_tells_the_others_how_their_view_ended() -> None:
    """The first of two lets a third in, and crashes before the second has heard that it did."""
    lab = stateful("ab", minimum=2)
    lab.lost = lambda _source, dest, frame: dest == "b" and isinstance(frame, Decision | Welcome)
    lab.add("c", kind=Stateful, minimum=0, state=True)
    for _ in range(100):
        lab.run(10 * MS)
        if lab.nodes["c"].views:
            break
    kill(lab, "a")
    assert lab.nodes["c"].views == [["a", "b", "c"]]
    assert view_of(lab.nodes["b"]) == {"a", "b"}
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(3 * SECOND)
    assert view_of(lab.nodes["b"]) == view_of(lab.nodes["c"]) == {"b", "c"}
    assert state_of(lab.nodes["c"]) == STATE


def test_what_a_stranger_says_of_the_end_of_a_view_is_not_believed() -> None:
    """Only who is let in by a decision may tell it."""
    lab = group()
    a = lab.nodes["a"]
    for joined in ([], [MemberId("x")]):
        change = Change(list(a.stack.view().members[:2]) + joined, joined, [], [0] * 3, [], b"", 2)
        decision = Decision(Instance(1, 0), encode(change, a.stack.view().members))
        a.hear(MemberId("stranger"), decision)
        a.seat.call(lambda _, now: a.stack._change_view(now, {}, ()))
        a.hear(MemberId("stranger"), decision)
        lab.run(SECOND)
    assert {frozenset(view_of(node)) for node in lab.nodes.values()} == {frozenset("abc")}


def test_who_leaves_as_the_last_waits_a_while_for_who_is_silent() -> None:
    """The first of two was to leave while it did not hear the other, which then waited for it for ever."""
    lab = stateful("ab", minimum=2)
    a, b = lab.nodes["a"], lab.nodes["b"]
    lab.lost = lambda _source, _dest, _frame: True
    lab.run(40 * MS)
    a.leave()
    lab.run(200 * MS)
    assert a.stack.phase() == "flushing"
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(SECOND)
    assert a.stack.phase() == "left"
    assert b.stack.phase() == "operational"
    assert view_of(b) == {"b"}


def test_who_leaves_as_the_last_does_not_wait_for_ever() -> None:
    lab = stateful("ab", minimum=2)
    lab.lost = lambda _source, _dest, _frame: True
    lab.run(40 * MS)
    lab.nodes["a"].leave()
    lab.run(2 * SECOND)
    assert lab.nodes["a"].stack.phase() == "left"
