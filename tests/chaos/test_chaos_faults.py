"""Plans of chaos: drawn from a seed, possible, and varied."""

import pytest

from semcast.chaos.faults import (
    Cut,
    Join,
    Kill,
    Loss,
    Majority,
    Partition,
    Plan,
    Restart,
    Roll,
    Stall,
    Stop,
    draw,
)
from semcast.chaos.network import between

NAMES = ("a", "b", "c", "d", "e")


def plans(seeds: int = 20, seconds: float = 120.0) -> list[Plan]:
    return [draw(seed, NAMES, seconds, cuts=True) for seed in range(seeds)]


def test_a_seed_means_the_same_for_ever() -> None:
    assert draw(7, NAMES, 60, cuts=True) == draw(7, NAMES, 60, cuts=True)
    assert draw(7, NAMES, 60, cuts=True) != draw(8, NAMES, 60, cuts=True)


def test_a_minute_has_every_kind_of_fault() -> None:
    for seed in range(10):
        plan = draw(seed, NAMES, 60, cuts=True)
        kinds = {type(fault) for fault in (*plan.network, *plan.processes)}
        assert kinds == {Partition, Cut, Loss, Kill, Majority, Stop, Restart, Roll, Join}, f"seed {seed}"


@pytest.mark.parametrize("size", [2, 3, 4, 5, 9])
def test_what_is_drawn_can_be_done(size: int) -> None:
    names = NAMES[:size] if size <= 5 else tuple("abcdefghi")
    for seed in range(20):
        plan = draw(seed, names, 60, cuts=True)
        there = set(names) - set(plan.late)
        assert len(there) > len(names) / 2, "enough to begin with"
        assert sorted(plan.processes, key=lambda fault: fault.at) == list(plan.processes)
        for fault in (*plan.network, *plan.processes):
            assert fault.at >= 0
            match fault:
                case Partition(sides=sides):
                    assert sorted(name for side in sides for name in side) == sorted(names)
                    assert len(sides) > 1
                    assert all(sides)
                case Majority(down=down):
                    assert len(down) > len(there) / 2
                    assert set(down) <= there
                case Kill(down=down):
                    assert len(down) <= max(1, len(there) // 2)
                case Roll(names=rolled):
                    assert set(rolled) == there
                case Join(name=name):
                    assert name in plan.late


def test_on_loopback_the_network_is_left_alone() -> None:
    plan = draw(1, NAMES, 60, cuts=False)
    assert plan.network == ()
    assert plan.processes


def test_some_cuts_go_one_way() -> None:
    cuts = [fault for plan in plans() for fault in plan.network if isinstance(fault, Cut)]
    assert all((two, one) not in cut.pairs for cut in cuts for one, two in cut.pairs)
    assert {len(cut.pairs) for cut in cuts} == {1, 4}


def test_sides_are_cut_both_ways() -> None:
    assert sorted(between([("a", "b"), ("c",)])) == [("a", "c"), ("b", "c"), ("c", "a"), ("c", "b")]


def test_disks_stand_still_only_where_members_wait_for_them() -> None:
    plans = [draw(seed, NAMES, 120, cuts=False, stalls=True) for seed in range(5)]
    assert all(any(isinstance(fault, Stall) for fault in plan.processes) for plan in plans)
    assert not any(isinstance(fault, Stall) for fault in draw(1, NAMES, 120, cuts=False).processes)
