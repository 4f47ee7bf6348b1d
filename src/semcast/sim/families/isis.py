"""Causal domains, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.protocols.isis import ISIS as PROTOCOL
from semcast.protocols.isis import IsisSettings
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.isis_programs import DomainProcess, IsisPlan
from semcast.sim.isis_scenario import IsisVariant, draw_isis
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    plan = scenario.settings or _plain(scenario)
    kind = mutant.stack or DomainProcess
    assert isinstance(plan, IsisPlan)
    assert issubclass(kind, DomainProcess)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        number = next(place for place, member in enumerate(members) if member.name == me.name)
        return kind(me, plan, number, rng, out)

    return build


def _plain(scenario: Scenario) -> IsisPlan:
    """Two groups of all."""
    everybody = tuple(range(scenario.size))
    return IsisPlan(settings=IsisSettings(notes=True), groups=(("a", everybody), ("b", everybody)))


def _draw(seed: int, fixed: Fixed | None) -> Scenario:
    assert fixed is None or isinstance(fixed, IsisVariant)
    return draw_isis(seed, fixed)


def _limit(_scenario: Scenario) -> int | None:
    return None


ISIS = FAMILIES.register(
    Family(
        name=PROTOCOL.name,
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["isis"],
        limit=_limit,
    )
)
