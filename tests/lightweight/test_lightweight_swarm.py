"""Swarms of daemons and clients in short: on the ring, and on an abstract group communication.

Longer ones are run by hand: `semcast sim swarm --stack lightweight --seeds 0..1000`.
"""

import pytest
from tests.lightweight.world import wander

from semcast.history.schema import Kind
from semcast.sim.swarm import examine, scenario_of
from semcast.specs.lightweight.kinds import CONF, DELIVER, ORDERED, PLACED, PRIVATE, TRANSITIONAL, VIEW


def test_the_swarm_finds_nothing() -> None:
    seen: set[tuple[Kind, str | None]] = set()
    for seed in range(20):
        finding = examine(scenario_of("lightweight", seed))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        seen.update((event.kind, event.level) for event in finding.outcome.history.events)
    assert {kind for kind, _ in seen} >= {CONF, ORDERED, VIEW, TRANSITIONAL, DELIVER, PRIVATE, PLACED}
    assert {level for kind, level in seen if kind is VIEW} == {
        "join",
        "leave",
        "gone",
        "flush",
        "configuration",
    }
    assert {level for kind, level in seen if kind is PRIVATE} == {"delivered", "undeliverable"}


@pytest.mark.parametrize("first", [0, 100, 200])
def test_random_runs_without_a_ring_find_nothing(first: int) -> None:
    for seed in range(first, first + 100):
        assert wander(seed).broken() == set(), f"seed {seed}"


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (118, "who joined a torn group in a rest was not warned"),
        (316, "a join from another part tore a group in a rest"),
        (373, "a census was complete in a rest"),
    ],
)
def test_runs_that_once_failed(seed: int, why: str) -> None:
    assert wander(seed).broken() == set(), why
