"""Epochs and blocks: each rule with the schedule that breaks a domain without it."""

from typing import Any

import pytest
from tests.isis.lab import Lab
from tests.isis.test_isis_directed import _answer_overtakes, _leaver

from semcast.protocols.isis import IsisSettings, Policy
from semcast.protocols.isis.structure import Structure
from semcast.protocols.lightweight.sessions import Refused
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants import isis as mutants
from semcast.sim.mutants import isis_policies as broken

BLOCKS, EPOCHS = Policy.BLOCKS, Policy.EPOCHS
TRIANGLE = (("g", "h"), ("g", "k"), ("h", "k"))


@pytest.mark.parametrize("policy", [BLOCKS, EPOCHS])
def test_figure_4_an_effect_waits_for_its_cause_in_another_group(policy: Policy) -> None:
    lab = _answer_overtakes(policy)
    assert lab.given["q"] == ["question", "answer"], "its sender does not wait for r"
    assert lab.given["r"] == []
    lab.release()
    lab.run(100)
    assert lab.given["r"] == ["question", "answer"]


def _round_the_triangle(policy: Policy, kind: type[DomainProcess], noise: str = "", **settings: Any) -> Lab:
    """p sends in g, which q lacks, and in k; r goes on in h, where q is. Nobody is in all three."""
    lab = Lab({"g": "pq", "h": "qr", "k": "pr"}, policy, kind, resilience="0", **settings)
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "g" and carries)
    lab.send("p", "g", "first")
    lab.run(5)
    lab.send("p", "k", "second")
    lab.run(50)
    assert lab.given["r"] == ["second"]
    if noise:
        lab.send("q", "h", noise)
        lab.run(50)
        lab.given["q"].remove(noise)
        lab.given["r"].remove(noise)
    lab.send("r", "h", "third")
    lab.run(200)
    return lab


@pytest.mark.parametrize(
    ("policy", "structure", "kind"),
    [
        (BLOCKS, TRIANGLE, broken.AcyclicRuleWithCycles),
        (BLOCKS, "any", broken.AcyclicRuleWithCycles),
        (EPOCHS, "any", broken.EpochOfOwnGroupOnly),
        (EPOCHS, "any", broken.MarkerWithoutCount),
    ],
)
def test_nothing_overtakes_its_cause_round_a_cycle(
    policy: Policy, structure: Any, kind: type[DomainProcess]
) -> None:
    lab = _round_the_triangle(policy, DomainProcess, structure=structure)
    assert lab.given["q"] == []
    lab.release()
    lab.run(200)
    assert lab.given["q"] == ["first", "third"]
    assert _round_the_triangle(policy, kind, structure=structure).given["q"] == ["third"]


def test_more_counts_than_the_last_message_that_was_received() -> None:
    """As printed, own messages do not count, and r's last message before it sends in h is of h."""
    assert _round_the_triangle(EPOCHS, DomainProcess, "noise").given["q"] == []
    assert _round_the_triangle(EPOCHS, broken.EpochByLastMessage, "noise").given["q"] == ["third"]


@pytest.mark.parametrize(
    ("policy", "kind"), [(EPOCHS, broken.LeaverKeepsItsEpoch), (BLOCKS, mutants.LeaverForgetsActivity)]
)
def test_a_phantom_cycle_who_leaves_one_group_and_sends_in_another(
    policy: Policy, kind: type[DomainProcess]
) -> None:
    settings = {} if policy is EPOCHS else {"structure": (("g", "h"),)}
    lab = _leaver(DomainProcess, policy, **settings)
    assert lab.given["q"] == []
    lab.release()
    lab.run(2000)
    assert lab.given["q"] == ["cause", "effect"]
    assert _leaver(kind, policy, **settings).given["q"] == ["effect"]


def _joiner_of_a_group_where_much_was_said(kind: type[DomainProcess]) -> Lab:
    """r of b joins a, where p said what it sent in b; q, who is not in b, goes on in a."""
    lab = Lab({"a": "pq", "b": "pr"}, BLOCKS, kind, resilience="0", structure=(("a", "b"),))
    lab.hold(lambda _source, dest, group, carries: dest == "r" and group == "b" and carries)
    lab.send("p", "b", "cause")
    lab.run(5)
    lab.send("p", "a", "middle")
    lab.run(20)
    lab.join("r", "a")
    for _ in range(50):
        lab.run(20)
        if len(lab.members("q", "a")) == 3 and len(lab.members("r", "a")) == 3:
            break
    lab.send("q", "a", "effect")
    lab.run(50)
    return lab


def test_who_joins_waits_for_what_was_said_in_the_group_before() -> None:
    lab = _joiner_of_a_group_where_much_was_said(DomainProcess)
    assert lab.given["r"] == []
    lab.release()
    lab.run(200)
    assert lab.given["r"] == ["cause", "effect"]
    assert _joiner_of_a_group_where_much_was_said(broken.JoinerForgetsWhatWasSaid).given["r"] == ["effect"]


def test_neighbours_of_a_grid_keep_the_times_of_their_block_and_of_no_other() -> None:
    """Each process is in the group of its place, and in those right of it and below."""
    grid = [((x, y), (x + 1, y), (x, y + 1)) for x in range(3) for y in range(3)]
    named = tuple(tuple(f"{x}{y}" for x, y in groups) for groups in grid)
    structure = Structure((*named, ("33", "far"), ("far", "away")))
    assert structure.keeps(["00"], "22")
    assert not structure.keeps(["00"], "far")
    assert not structure.keeps(["far"], "22")
    assert structure.objection(["00"], "22")


def test_in_a_row_of_groups_nobody_speaks_of_groups_that_it_is_not_in() -> None:
    lab = Lab({"a": "pq", "b": "qr", "c": "rs"}, BLOCKS, structure="acyclic", resilience="0")
    for sender, group, name in (
        ("p", "a", "one"),
        ("q", "b", "two"),
        ("r", "c", "three"),
        ("s", "c", "four"),
    ):
        lab.send(sender, group, name)
        lab.run(20)
    assert lab.given["s"] == ["three", "four"]
    known = [process.policy.heard_of() for process in lab.at.values()]
    assert not any(known)


def test_a_join_that_contradicts_the_structure_is_refused() -> None:
    lab = Lab({"a": "pq", "b": "pq"}, BLOCKS, structure="acyclic", others="r")
    with pytest.raises(Refused, match="makes a cycle of groups: structure is acyclic"):
        lab.join("p", "new")
    lab = Lab({"a": "pq", "b": "qr"}, BLOCKS, structure=(("a", "b"),))
    with pytest.raises(Refused, match="nobody may be in 'a' and 'new' together"):
        lab.join("p", "new")
    with pytest.raises(ValueError, match="there are any, acyclic, or sets of groups"):
        IsisSettings(structure="cyclic")
