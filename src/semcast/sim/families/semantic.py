"""S-RM, S-SRM and the reliable baseline, simulated."""

from random import Random

import msgspec

from semcast.protocols.semantic import ChannelSettings, SemanticMulticast, Settings
from semcast.protocols.semantic.backlog import EACH
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.flow_scenario import AMPLE, draw_reserve
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.semantic_scenario import LARGEST, draw
from semcast.sim.stacks import StackFactory


def _settings(scenario: Scenario) -> Settings:
    answering = {number for number, habit in scenario.habits.items() if habit.answers}
    senders = tuple(sorted(answering | {traffic.sender for traffic in scenario.traffic}))
    limits = {}
    if scenario.spare_bytes is not None:
        limits = {"max_message": LARGEST, "buffer_bytes": len(senders) * LARGEST + scenario.spare_bytes}
    return Settings(
        buffer_messages=scenario.buffer,
        purging=scenario.purging,
        uniform=scenario.uniform,
        gossip_period=scenario.gossip_period,
        gossip_fanout=scenario.gossip_fanout,
        gossip_busy=scenario.gossip_busy,
        hopeful=scenario.hopeful,
        window=max(scenario.window, scenario.buffer),
        queue_messages=scenario.queue,
        reserve_bytes=_reserve(scenario),
        senders=senders,
        **limits,
    )


def _reserve(scenario: Scenario) -> int:
    return AMPLE if scenario.reserve is None else scenario.reserve


def _limit(scenario: Scenario) -> int:
    """What is kept for others, what waits for the program, and the reserve: no more messages than these."""
    return scenario.buffer + _backlog(scenario)


def _backlog(scenario: Scenario) -> int:
    """Queue and reserve, and where agreement is uniform what becomes safe at once.

    Where the reserve is not drawn, nobody answers: then no more waits than is under way when a stop is said,
    and what a program sends itself from the task that reads: that waits, again and again, and goes first.
    """
    if scenario.reserve is None:
        single = scenario.bursts is not None and scenario.bursts.single
        own = max((traffic.count for traffic in scenario.traffic), default=0) if single else 0
        return _queue(scenario) + scenario.size * scenario.buffer + own
    unsafe = scenario.buffer * 3 // 2 if scenario.uniform else 0
    return _queue(scenario) + -(-_reserve(scenario) // EACH) + unsafe


def _queue(scenario: Scenario) -> int:
    return scenario.queue or scenario.buffer


def _tighten(scenario: Scenario, rng: Random) -> Scenario:
    """A slot for each member, at least."""
    reserve = draw_reserve(rng)
    return msgspec.structs.replace(
        scenario,
        buffer=rng.choice((scenario.size, scenario.buffer)),
        queue=rng.choice((1, 1, 4)),
        reserve=reserve,
        ample=reserve == AMPLE,
    )


def _s_rm(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or SemanticMulticast
    assert issubclass(kind, SemanticMulticast)
    return stacks.s_rm(_settings(scenario), kind)


def _s_srm(scenario: Scenario, _mutant: Mutant) -> StackFactory:
    return stacks.s_srm(ChannelSettings(buffer_messages=scenario.buffer, purging=scenario.purging))


def _reliable(scenario: Scenario, _mutant: Mutant) -> StackFactory:
    return stacks.reliable(_settings(scenario))


def _draw_s_rm(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw(seed, S_RM.name)


def _draw_s_srm(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw(seed, S_SRM.name, uniform=False)


def _draw_reliable(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw(seed, RELIABLE.name, plain=True)


S_RM = FAMILIES.register(
    Family(
        name="s-rm",
        stack=_s_rm,
        draw=_draw_s_rm,
        mutants=MUTANTS["s-rm"],
        limit=_limit,
        queue=_queue,
        tighten=_tighten,
        backlog=_backlog,
    )
)
S_SRM = FAMILIES.register(Family(name="s-srm", stack=_s_srm, draw=_draw_s_srm))
RELIABLE = FAMILIES.register(Family(name="reliable", stack=_reliable, draw=_draw_reliable, limit=_limit))
