"""S-RM, S-SRM and the reliable baseline, simulated."""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND
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
        queue_bytes=scenario.queue_bytes,
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
    and what programs send from the task that reads: they wait in `send`, again and again, and no stop binds
    who waits.
    """
    if scenario.reserve is None:
        single = scenario.bursts is not None and scenario.bursts.single
        exempt = sum([traffic.count for traffic in scenario.traffic]) if single else 0
        return _queue(scenario) + scenario.size * scenario.buffer + exempt
    unsafe = scenario.buffer * 3 // 2 if scenario.uniform else 0
    return _queue(scenario) + -(-_reserve(scenario) // EACH) + unsafe


def _queue(scenario: Scenario) -> int:
    return scenario.queue or scenario.buffer


def _queue_bytes(scenario: Scenario) -> int:
    return _settings(scenario).queue_size()


def _narrow(scenario: Scenario, size: int) -> Scenario:
    return msgspec.structs.replace(scenario, queue=1024, queue_bytes=size)


def _backlog_bytes(scenario: Scenario) -> int | None:
    """Queue and reserve, what came last there, and where agreement is uniform what becomes safe at once."""
    if scenario.reserve is None:
        return None
    unsafe = scenario.buffer * LARGEST * 3 // 2 if scenario.uniform else 0
    return _queue_bytes(scenario) * 5 // 4 + scenario.reserve + unsafe + 2 * LARGEST


def _tighten(scenario: Scenario, rng: Random) -> Scenario:
    """A slot for each member, at least.

    With one slot and gossip to one member at a time a message takes a quarter of a second, and hundreds of
    answers take minutes: such groups gossip more.
    """
    reserve = draw_reserve(rng)
    buffer = rng.choice((scenario.size, scenario.buffer))
    slow = buffer == scenario.size and scenario.gossip_fanout == 1
    return msgspec.structs.replace(
        scenario,
        buffer=buffer,
        queue=rng.choice((1, 1, 4)),
        reserve=reserve,
        ample=reserve == AMPLE,
        gossip_fanout=3 if slow else scenario.gossip_fanout,
        gossip_period=10 * MILLISECOND if slow else scenario.gossip_period,
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
        queue_bytes=_queue_bytes,
        narrow=_narrow,
        backlog_bytes=_backlog_bytes,
    )
)
S_SRM = FAMILIES.register(Family(name="s-srm", stack=_s_srm, draw=_draw_s_srm))
RELIABLE = FAMILIES.register(Family(name="reliable", stack=_reliable, draw=_draw_reliable, limit=_limit))
