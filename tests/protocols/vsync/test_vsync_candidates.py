"""Who asks to join, and what that says about members of other views."""

from random import Random

import pytest
from tests.protocols.vsync.test_vsync_life import kill, restart, stateful, view_of
from tests.protocols.vsync.vsynclab import MS

from semcast.core import MemberId
from semcast.protocols.vsync.candidates import Candidates
from semcast.protocols.vsync.flush import next_reformed
from semcast.protocols.vsync.frames import Hello, Known

A, B = MemberId("a"), MemberId("b", 3)
LATER = Known(5, [A, B])


def accounts(*candidates: MemberId, alive: tuple[MemberId, ...] = (A,)) -> bool:
    found = Candidates(40 * MS, 200 * MS, Random(1))
    for candidate in candidates:
        found.saw(0, candidate)
    return found.accounts_for(LATER, alive)


@pytest.mark.parametrize(
    ("candidates", "alive"),
    [
        ([MemberId("b", 4)], (A,)),
        ([MemberId("b", 2), MemberId("b", 4)], (A,)),
        ([MemberId("b", 4), MemberId("b", 2)], (A,)),
        ([], (A, B)),
        ([], (A, MemberId("b", 4))),
        ([MemberId("a", 1), MemberId("b", 4)], ()),
    ],
)
def test_members_of_a_later_view_that_live_here_or_are_dead(
    candidates: list[MemberId], alive: tuple[MemberId, ...]
) -> None:
    assert accounts(*candidates, alive=alive)


@pytest.mark.parametrize(
    ("candidates", "alive"),
    [
        ([], (A,)),
        ([MemberId("b", 2)], (A,)),
        ([], (A, MemberId("b", 2))),
        ([MemberId("b", 2)], (A, MemberId("b", 2))),
        ([B], (A,)),
        ([MemberId("b", 4)], ()),
    ],
)
def test_members_of_a_later_view_that_may_be_in_it(
    candidates: list[MemberId], alive: tuple[MemberId, ...]
) -> None:
    """An earlier incarnation says nothing of a later one, and who was let in may yet enter."""
    assert not accounts(*candidates, alive=alive)


def test_an_earlier_incarnation_does_not_stand_for_a_later_one() -> None:
    """a is left of view 1. It hears of a view with c#2, while a hello of c#1 is still under way."""
    lab = stateful()
    a = lab.nodes["a"]
    kill(lab, "b", "c")
    restart(lab, "b")
    lab.nodes["b"].alive = False
    terms = a.stack._terms
    later = Known(7, [MemberId("b", 1), MemberId("c", 2)])
    for number in range(50):
        a.hear(MemberId("b", 2), Hello(False, later, terms))
        a.hear(MemberId("c", 1), Hello(False, None, terms))
        lab.run(40 * MS)
        assert view_of(a) == {"a", "b", "c"}, f"after {number} hellos"
    for _ in range(50):
        a.hear(MemberId("b", 2), Hello(False, later, terms))
        a.hear(MemberId("c", 3), Hello(False, None, terms))
        lab.run(40 * MS)
    assert a.stack.view().id >= next_reformed(7), "all of view 7 are dead"
