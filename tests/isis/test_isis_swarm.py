"""Swarms of causal domains in short.

Longer ones are run by hand: `semcast sim swarm --stack isis --seeds 0..300`.
"""

import pytest

from semcast.history.schema import Kind
from semcast.protocols.isis import Policy
from semcast.sim.isis_scenario import IsisVariant
from semcast.sim.swarm import examine, scenario_of
from semcast.specs.domains.kinds import GIVEN, LEFT, OUT, SENT, VIEW


@pytest.mark.parametrize("policy", list(Policy))
def test_the_swarm_finds_nothing(policy: Policy) -> None:
    seen: set[Kind] = set()
    for seed in range(10):
        finding = examine(scenario_of("isis", seed, IsisVariant(policy=policy)))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        seen.update(event.kind for event in finding.outcome.history.events)
    assert seen >= {VIEW, SENT, GIVEN, LEFT, OUT, Kind.CRASH}
