"""Swarms of daemons and clients in short: on the ring, and on an abstract group communication.

Longer ones are run by hand: `semcast sim swarm --stack lightweight --seeds 0..1000`.
"""

import pytest
from tests.lightweight.world import wander

from semcast.core.ids import SECOND
from semcast.history.schema import Kind
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import examine, scenario_of
from semcast.specs.lightweight.kinds import CONF, DELIVER, ORDERED, PLACED, PRIVATE, TRANSITIONAL, VIEW
from semcast.specs.lightweight.story import story_of


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
        (5571, "who left and came back in one rest was not warned again"),
    ],
)
def test_runs_that_once_failed(seed: int, why: str) -> None:
    assert wander(seed).broken() == set(), why


def test_the_workload_of_a_run_goes_to_all_hosts() -> None:
    """`semcast sim run --stack lightweight`."""
    traffic = (Traffic(0, content="plain", arrivals="constant", rate=500.0, count=50),)
    finding = examine(Scenario(seed=1, stack="lightweight", size=3, traffic=traffic, duration=SECOND))
    assert finding.clean, finding.broken
    views = {row.members for row in story_of(finding.outcome.history).rows(VIEW)}
    assert max(map(len, views)) == 3
    given = [row.event for row in story_of(finding.outcome.history).rows(DELIVER)]
    assert sum(event.count for event in given if event.process.name == "p0") == 50
