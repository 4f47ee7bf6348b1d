"""Daemons of lightweight groups over the ring, with their clients, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.protocols.lightweight import LIGHTWEIGHT as PROTOCOL
from semcast.protocols.lightweight import LightweightSettings
from semcast.protocols.ring import Ring
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.lightweight_clients import Daemon
from semcast.sim.lightweight_scenario import draw_lightweight
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings, ring = scenario.settings or LightweightSettings(notes=True), scenario.ring
    assert isinstance(settings, LightweightSettings)

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, ring, rng, out)

    def build(me: MemberId, _members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        return Daemon(
            me,
            settings,
            below,
            rng,
            out,
            machine=mutant.daemon,
            works=bool(scenario.traffic),
            host=mutant.host,
        )

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_lightweight(seed)


def _limit(_scenario: Scenario) -> int | None:
    return None


LIGHTWEIGHT = FAMILIES.register(
    Family(
        name=PROTOCOL.name,
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["lightweight"],
        limit=_limit,
        finds_members=True,
    )
)
