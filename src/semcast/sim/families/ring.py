"""The ring, simulated."""

from random import Random

import msgspec

from semcast.core.ids import Nanos
from semcast.protocols.backoff import CAP
from semcast.protocols.ring import Ring
from semcast.protocols.ring.passing import stretched
from semcast.protocols.ring.settings import OVERHEAD
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.flow_scenario import AMPLE, LARGEST, draw_reserve
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory

ATTEMPTS = 5
"""To form a ring that may fail after a network has healed: what was sent before still arrives."""


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or Ring
    assert issubclass(kind, Ring)
    return stacks.ring(scenario.ring, kind, scenario.misfits)


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_ring(seed)


def _limit(scenario: Scenario) -> int | None:
    return scenario.ring.bound(scenario.size)


def _heals_within(scenario: Scenario) -> Nanos | None:
    """Who kept failing is invited again after five seconds at the latest; then a few rounds of formation.

    Nothing is promised where a program pauses and has little reserve: a member with more than that waiting
    stays out until its program has read enough.
    """
    if not scenario.ample and any(habit.pause for habit in scenario.habits.values()):
        return None
    settings = scenario.ring
    attempt = settings.token_loss * 3 // 2 + settings.gather + settings.commit
    return CAP + ATTEMPTS * stretched(attempt, scenario.size)


def _queue(scenario: Scenario) -> int:
    return scenario.ring.queue_messages


def _tighten(scenario: Scenario, rng: Random) -> Scenario:
    """The window is one packet for each member, at least."""
    window = rng.choice((scenario.size, 64))
    settings = msgspec.structs.replace(
        scenario.ring,
        window=window,
        visit=min(window, scenario.ring.visit),
        visit_least=1,
        queue_messages=rng.choice((1, 1, 4)),
        send_messages=rng.choice((1, 1, 4)),
        reserve_bytes=draw_reserve(rng),
    )
    return msgspec.structs.replace(scenario, ring=settings, ample=settings.reserve_bytes == AMPLE)


def _backlog(scenario: Scenario) -> int:
    """Queue and reserve, and what a change of configuration hands over at once."""
    settings = scenario.ring
    under_way = settings.window_of(scenario.size) * (settings.packet_bytes // 3 + 1)
    return settings.queue_messages + -(-settings.reserve_bytes // OVERHEAD) + under_way * 3 // 2


def _queue_bytes(scenario: Scenario) -> int:
    return scenario.ring.queue_bytes


def _narrow(scenario: Scenario, size: int) -> Scenario:
    settings = msgspec.structs.replace(scenario.ring, queue_messages=1024, queue_bytes=size)
    return msgspec.structs.replace(scenario, ring=settings)


def _backlog_bytes(scenario: Scenario) -> int:
    """Queue and reserve, what came last there, and what a change of configuration hands over at once."""
    settings = scenario.ring
    under_way = settings.window_of(scenario.size) * settings.packet_bytes + scenario.size * LARGEST
    return settings.queue_bytes + settings.reserve_bytes + under_way * 5 // 2


RING = FAMILIES.register(
    Family(
        name="ring",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["ring"],
        limit=_limit,
        queue=_queue,
        tighten=_tighten,
        backlog=_backlog,
        queue_bytes=_queue_bytes,
        narrow=_narrow,
        backlog_bytes=_backlog_bytes,
        announces=True,
        finds_members=True,
        heals_within=_heals_within,
    )
)
