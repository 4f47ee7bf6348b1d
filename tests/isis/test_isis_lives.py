"""Groups that all have left, and somebody joins again: 4.1 has groups that stay."""

import pytest
from tests.isis.lab import Lab

from semcast.core.ids import MemberId
from semcast.history import History
from semcast.protocols.isis import Policy
from semcast.specs import DOMAINS, Status, check


@pytest.mark.parametrize("policy", list(Policy))
def test_a_stamp_of_a_group_that_is_over_holds_nothing_up(policy: Policy) -> None:
    """It named messages of a first view, and the group that was founded anew had a first view, too."""
    lab = Lab({"new": "pq", "c": "pr"}, policy, origin=0)
    lab.send("p", "new", "one")
    lab.run(100)
    for letter in "qp":
        lab.leave(letter, "new")
        lab.run(500)
    lab.join("r", "new", 1)
    lab.run(3000)
    assert lab.members("r", "new") == (MemberId("r"),)
    lab.send("p", "c", "after")
    lab.run(500)
    assert lab.given["r"] == ["after"]


def test_who_waits_for_the_last_member_founds_the_group_when_that_has_left() -> None:
    """It knew of a view that nobody is in, and waited until its member came back."""
    lab = Lab({"new": "p", "c": "pq"}, Policy.CONSERVATIVE, others="q", origin=0)
    _hear_of_it(lab, "q")
    lab.leave("p", "new")
    lab.release()
    lab.run(3000)
    assert lab.members("q", "new") == (MemberId("q"),)


def test_who_hears_nothing_of_that_asks_who_left() -> None:
    lab = Lab({"new": "p", "c": "pq"}, Policy.CONSERVATIVE, others="q", origin=0)
    _hear_of_it(lab, "q")
    lab.leave("p", "new")
    lab.held = [letter for letter in lab.held if "Goodbye" not in repr(letter)]
    lab.release()
    lab.run(3000)
    assert lab.members("q", "new") == (MemberId("q"),)


def test_who_left_and_comes_back_is_not_put_out_because_others_remember_it() -> None:
    """Live: told of the view that it had left, it took itself for one who was let in there."""
    lab = Lab({"new": "p", "c": "pq"}, Policy.CONSERVATIVE, others="q", origin=0)
    _hear_of_it(lab, "q")
    lab.leave("p", "new")
    lab.held.clear()
    lab.release()
    lab.join("p", "new", 1)
    lab.run(5000)
    assert lab.left == {"p": False, "q": False}
    assert set(lab.members("p", "new")) == set(lab.members("q", "new")) == {MemberId("p"), MemberId("q")}


def _hear_of_it(lab: Lab, letter: str) -> None:
    """It asks to join, hears that there is a view, and no more."""
    lab.hold(lambda _source, dest, group, _carries: dest == letter and group == "new")
    lab.join(letter, "new", 1)
    for _ in range(100):
        lab.run(1)
        found = [each for each in lab.held if "Standing" in repr(each)]
        if found:
            break
    lab.held.clear()
    lab.hand_over(found[0])
    assert len(lab.members("p", "new")) == 1, "it is not let in yet"


@pytest.mark.parametrize("policy", [Policy.FULL, Policy.BLOCKS])
def test_nobody_speaks_for_ever_of_groups_that_are_over(policy: Policy) -> None:
    """With more than 64 groups that it has heard of a process waits: nobody was left to say what all have."""
    names = [f"g{number}" for number in range(70)]
    lab = Lab({"c": "pr", **dict.fromkeys(names, "pq")}, policy)
    for name in names:
        lab.send("p", name, name)
    lab.run(2000)
    for letter in "qp":
        for name in names:
            lab.leave(letter, name)
        lab.run(3000)
    assert list(lab.at["p"].seats) == ["c"]
    lab.send("p", "c", "after")
    lab.run(5000)
    assert lab.given["r"] == ["after"]
    lab.send("r", "c", "answer")
    lab.run(5000)
    assert lab.given["p"][-1] == "answer"
    assert not lab.at["p"].policy.heard_of()
    assert not lab.at["r"].policy.heard_of()


def history_of_lives() -> History:
    """p is alone in a group, leaves it and comes back, and then q is there with it."""
    lab = Lab({"c": "pq"}, Policy.CONSERVATIVE, origin=0)
    for number in range(3):
        lab.join("p", "new", 1)
        lab.run(2000)
        lab.send("p", "new", f"mine{number}")
        lab.send("p", "c", f"all{number}")
        lab.run(100)
        lab.leave("p", "new")
        lab.run(1000)
    lab.join("q", "new", 1)
    lab.run(2000)
    lab.send("q", "new", "last")
    lab.run(100)
    return lab.history()


def test_a_recording_of_several_lives_of_a_group_is_sound() -> None:
    """Who leaves and comes back is somebody else in the group, also where nobody was there meanwhile."""
    verdicts = {verdict.property: verdict for verdict in check(history_of_lives(), list(DOMAINS))}
    assert verdicts["domain_groups"].status is Status.HOLDS, verdicts["domain_groups"]
    assert not [each for each in verdicts.values() if each.status is Status.VIOLATED]
