"""The states of a member: the table, and moves that were got wrong once."""

from tests.protocols.vsync.vsynclab import MS, Lab, group

from semcast.core import Frame
from semcast.core.events import Minority
from semcast.core.ids import SECOND
from semcast.protocols.vsync import Flush
from semcast.protocols.vsync.consensus_frames import Decision
from semcast.protocols.vsync.states import MOVES, Cause, State


def test_the_table_is_complete() -> None:
    assert {cause for _, cause in MOVES} == {*Cause}, "every cause moves somebody"
    assert {*MOVES.values()} == {*State} - {State.JOINING}, "every state can be reached, or is the first"
    for state in State:
        moves = [cause for old, cause in MOVES if old is state]
        out = state in (State.SERVING, State.LEFT)
        assert (Cause.LEAVING in moves) is not out, "who is not out can leave"


def test_a_member_goes_the_ways_of_the_table() -> None:
    lab = group("abcd")
    d = lab.nodes["d"].stack
    lab.lost = lambda source, dest, _frame: "d" in (source, dest)
    lab.run(SECOND)
    assert d.phase() == "minority"
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(SECOND)
    assert d.phase() == "left"
    assert [cause for _, cause in d.moves] == [
        Cause.ADMITTED,
        Cause.CHANGE,
        Cause.CUT_OFF,
        Cause.WITHIN_REACH,
        Cause.PUT_OUT,
        Cause.SERVED,
    ]
    c = lab.nodes["c"].stack
    lab.nodes["c"].leave()
    lab.run(SECOND)
    assert c.phase() == "left"
    assert c.moves[State.FLUSHING, Cause.LEAVING] == 1


def test_who_leaves_before_its_first_view_is_out_at_once() -> None:
    lab = Lab()
    a = lab.add("a", minimum=2)
    a.leave()
    assert a.stack.moves == {(State.JOINING, Cause.LEAVING): 1}


def test_a_minority_is_told_so_in_every_view() -> None:
    """The decision about the next view ended a minority, and the next one was taken for the same."""
    lab = group(flush=Flush.ALL)
    c = lab.nodes["c"]
    lab.lost = lambda _source, dest, _frame: dest == "c"
    while c.stack.phase() != "minority":
        lab.run(MS)

    def all_but_decisions(_source: str, dest: str, frame: Frame) -> bool:
        return dest == "c" and not isinstance(frame, Decision)

    lab.lost = all_but_decisions
    while not c.stack.moves[State.MINORITY, Cause.INSTALLED]:
        lab.run(MS)
    lab.lost = lambda source, dest, _frame: "c" in (source, dest)
    lab.run(SECOND)
    assert c.stack.phase() == "minority"
    assert len([event for event in c.events if isinstance(event, Minority)]) == 2
