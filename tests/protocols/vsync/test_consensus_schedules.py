"""Consensus in thousands of drawn schedules, and what they catch."""

import pytest
from tests.protocols.vsync.consensuslab import MUTANTS, BrokenError, Exploration, Lab

from semcast.protocols.vsync.consensus import Consensus

SCHEDULES = 2000


@pytest.mark.parametrize("size", [3, 5, 10])
def test_if_all_suspect_all_for_ever_nobody_decides_and_traffic_does_not_grow(size: int) -> None:
    lab = Lab(size)
    for rank in range(size):
        lab.propose(rank, b"v%d" % rank)
        lab.suspect(rank, *(other for other in range(size) if other != rank))
    for _ in range(30):
        lab.carry()
        assert len(lab.wire) <= 3 * size * size
    assert lab.decisions == {}
    assert lab.members[0].round > 30
    lab.heal()


def test_agreement_validity_integrity_and_termination_in_thousands_of_schedules() -> None:
    for seed in range(SCHEDULES):
        try:
            lab = Exploration(seed).run()
        except BrokenError as failure:
            pytest.fail(f"seed {seed}: {failure}")
        assert not any(member.malformed for member in lab.members), f"seed {seed}"


@pytest.mark.parametrize(("mutant", "broken"), MUTANTS, ids=lambda of: getattr(of, "__name__", of))
def test_the_exploration_catches_a_broken_member(mutant: type[Consensus], broken: str) -> None:
    for seed in range(SCHEDULES):
        try:
            Exploration(seed, mutant).run()
        except BrokenError as failure:
            if str(failure).startswith(broken):
                return
    pytest.fail(f"{mutant.__name__} went unnoticed")
