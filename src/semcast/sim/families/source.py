"""A group with a logger, and programs beside it that read its log by position, simulated."""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.sim.cluster import member_names
from semcast.sim.families.gossip import family_of, stack_of
from semcast.sim.families.record import FAMILIES
from semcast.sim.mutants import Mutant
from semcast.sim.readers import Querying, Reader
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.source_scenario import STACK, draw_source
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings = scenario.settings
    assert isinstance(settings, Querying)
    names = member_names(scenario.size, scenario.name_bytes)
    readers = {names[number].name for number in settings.readers}
    member = stack_of(scenario, msgspec.structs.replace(mutant, stack=None))
    reader = mutant.stack or Reader
    assert issubclass(reader, Reader)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        if me.name in readers:
            return reader(me, settings, rng, out)
        return member(me, [each for each in members if each.name not in readers], rng, out)

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_source(seed)


SOURCE = FAMILIES.register(family_of(STACK, _stack, _draw))
