"""The ring, simulated."""

from semcast.protocols.ring import Ring
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or Ring
    assert issubclass(kind, Ring)
    return stacks.ring(scenario.ring, kind, scenario.misfits)


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_ring(seed)


def _limit(scenario: Scenario) -> int | None:
    return scenario.ring.bound()


RING = FAMILIES.register(
    Family(
        name="ring",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["ring"],
        limit=_limit,
        announces=True,
        finds_members=True,
    )
)
