"""A group with a logger, and programs beside it that give the logger batches, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.sim.cluster import member_names
from semcast.sim.families.gossip import family_of, stack_of
from semcast.sim.families.record import FAMILIES
from semcast.sim.gateway_scenario import draw_gateway
from semcast.sim.mutants import Mutant
from semcast.sim.publishers import Publisher, Publishing
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings = scenario.settings
    assert isinstance(settings, Publishing)
    names = member_names(scenario.size, scenario.name_bytes)
    publishers = {names[number].name for number in settings.publishers}
    member = stack_of(scenario, mutant)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        if me.name in publishers:
            return Publisher(me, settings, rng, out)
        return member(me, [each for each in members if each.name not in publishers], rng, out)

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_gateway(seed)


GATEWAY = FAMILIES.register(family_of("gateway", _stack, _draw))
