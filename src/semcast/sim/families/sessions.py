"""Groups of durable subscriptions with loggers, whose programs say what they are through with, simulated."""

import msgspec

from semcast.sim.dealing import DealingMember
from semcast.sim.families.gossip import family_of, stack_of
from semcast.sim.families.record import FAMILIES
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.sessions_scenario import STACK, draw_sessions
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    return stack_of(scenario, msgspec.structs.replace(mutant, stack=mutant.stack or DealingMember))


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_sessions(seed)


SESSIONS = FAMILIES.register(family_of(STACK, _stack, _draw))
