"""Q1 and Q2 of the papers' targets: no disk on the path of deliveries, answers on both sides."""

import pytest

from semcast.sim.experiments import EXPERIMENTS


def test_nothing_is_told_and_nothing_waits_for_a_disk_while_nothing_changes() -> None:
    slow = EXPERIMENTS["q1"]({"rate": 5.0, "sync_ms": 20.0})
    fast = EXPERIMENTS["q1"]({"rate": 5.0, "sync_ms": 5.0})
    for found in (slow, fast):
        assert (found["states"], found["cpcs"]) == (0, 0)
        assert float(found["green_ms"]) < 5.0 < float(found["reply_ms"])
    assert slow["green_ms"] == pytest.approx(fast["green_ms"], rel=0.2)


def test_a_change_of_the_members_is_told_by_all() -> None:
    found = EXPERIMENTS["q1"]({"rate": 5.0, "change": "partition"})
    assert found["states"] == 3 + 3  # on both sides, and when they are together again
    assert found["cpcs"] == 2 + 3


@pytest.mark.parametrize(
    ("level", "minority", "later"),
    [("strict", False, 1), ("queued", True, 0), ("session", False, 0), ("weak", True, 0), ("dirty", True, 0)],
)
def test_who_is_answered_without_a_primary(level: str, minority: bool, later: int) -> None:
    found = EXPERIMENTS["q2"]({"level": level})
    assert float(found["primary_ms"]) >= 0
    assert (float(found["minority_ms"]) >= 0) is minority
    assert found["done_after_heal"] == later
