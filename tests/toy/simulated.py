"""The toy for the simulator: how it is built, what its swarm draws, and what must be caught."""

from collections.abc import Sequence
from random import Random

import msgspec
from tests.toy.stack import SaidOnce, Toy, ToySettings

from semcast.core import MemberId, Outbox, Stack
from semcast.core.ids import MILLISECOND
from semcast.sim.families import FAMILIES, Family
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.semantic_scenario import draw
from semcast.sim.stacks import StackFactory


def _settings(scenario: Scenario) -> ToySettings:
    settings = scenario.settings or ToySettings()
    assert isinstance(settings, ToySettings)
    return settings


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind, settings = mutant.stack or Toy, _settings(scenario)
    assert issubclass(kind, Toy)

    def build(me: MemberId, members: Sequence[MemberId], _rng: Random, out: Outbox) -> Stack:
        return kind(me, members, settings, out)

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    """The troubles of other fixed groups."""
    rng = Random(f"toy/{seed}/settings")
    settings = ToySettings(most=rng.choice((1, 5, 64)), again=rng.choice((5, 20)) * MILLISECOND)
    return msgspec.structs.replace(draw(seed, "toy", plain=True, uniform=False), settings=settings)


def _limit(scenario: Scenario) -> int:
    return _settings(scenario).most


FAMILIES.register(
    Family(name="toy", stack=_stack, draw=_draw, limit=_limit, mutants={"said-once": Mutant(SaidOnce)})
)
