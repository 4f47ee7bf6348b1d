"""The count of stamps against what the structure of groups promises (seed I, 6.3 and 6.6)."""

import pytest

from semcast.models.stamps import FlurryTraffic, Stamps, count_stamps
from semcast.models.structures import Policy, Structure, distances, domain, most_fields, spoken_of

POLICIES: tuple[Policy, ...] = ("full", "blocks", "epochs", "conservative")


def counted(
    structure: Structure, groups: int, policy: Policy, locality: float = 0.0, size: int = 4
) -> Stamps:
    return count_stamps(FlurryTraffic(domain(structure, groups, size), 1500, locality), policy)


@pytest.mark.parametrize(("structure", "groups"), [("tree", 9), ("cycle", 9), ("grid", 9), ("clique", 9)])
def test_structures_are_connected_and_of_one_size(structure: Structure, groups: int) -> None:
    members = domain(structure, groups, 4)
    assert {len(some) for some in members.values()} == {4}
    assert len(distances(members, 0)) == groups


def test_a_tree_has_no_blocks_a_cycle_is_one_and_so_is_a_grid() -> None:
    tree, cycle, grid = domain("tree", 7, 4), domain("cycle", 7, 4), domain("grid", 9, 4)
    assert spoken_of(tree, "blocks") == spoken_of(tree, "epochs")
    assert set(spoken_of(cycle, "blocks").values()) == {frozenset(range(7))}
    assert set(spoken_of(grid, "blocks").values()) == {frozenset(range(9))}


def test_servers_of_all_groups_make_a_clique() -> None:
    """What the paper hides: a process in three groups is in a cycle of groups."""
    members = domain("clique", 5, 4)
    assert set(spoken_of(members, "blocks").values()) == {frozenset(range(5))}


@pytest.mark.parametrize("structure", ["tree", "cycle", "grid", "clique"])
def test_each_policy_carries_no_more_than_the_one_before(structure: Structure) -> None:
    others = [counted(structure, 9, policy).others for policy in POLICIES]
    assert others == sorted(others, reverse=True)
    assert others[-1] == 0
    assert others[0] > 0


def test_own_fields_are_the_same_whatever_the_policy_and_bounded_by_the_others() -> None:
    assert len({counted("grid", 9, policy).own for policy in POLICIES}) == 1
    alone = count_stamps(FlurryTraffic(domain("tree", 1, 4), 1500), "full")
    assert alone.most <= 3
    assert alone.others == 0


def test_in_a_tree_blocks_speak_of_neighbours_only() -> None:
    assert set(counted("tree", 15, "blocks").by_distance) == {1}
    assert max(counted("tree", 15, "full").by_distance) > 2


def test_the_longer_a_flurry_the_fewer_messages_carry_others() -> None:
    rates = [counted("cycle", 9, "full", locality).groups for locality in (0.0, 0.5, 0.9)]
    assert rates == sorted(rates, reverse=True)
    bare = [counted("cycle", 9, "full", locality).bare for locality in (0.0, 0.5, 0.9)]
    assert bare == sorted(bare)


def test_the_farther_a_group_the_more_seldom_it_is_spoken_of() -> None:
    far = counted("cycle", 9, "full", 0.9)
    assert far.rate(1) > far.rate(2) > far.rate(3) > 0
    assert far.rate(0) == far.rate(9) == 0


def test_the_run_is_a_function_of_its_seed() -> None:
    assert counted("grid", 16, "blocks") == counted("grid", 16, "blocks")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="is no square"):
        domain("grid", 8, 4)
    with pytest.raises(ValueError, match="more neighbours"):
        domain("grid", 9, 3)


def test_table_i() -> None:
    assert [most_fields("client-server", 1 + c, 1) for c in (1, 200)] == [3, 202]
