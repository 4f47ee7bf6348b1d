"""Scenarios of programs that read a log by position: all the trouble that groups with loggers have."""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.protocols.gossip import GossipSettings, Protocol
from semcast.sim.cluster import member_names
from semcast.sim.faults import AnyFault, Crash, Leave, Recover
from semcast.sim.gossip_scenario import draw_gossip
from semcast.sim.readers import Querying
from semcast.sim.scenario import Scenario, Traffic

STACK = "source"


def draw_source(seed: int) -> Scenario:
    """A group that is drawn as any, in which the first few are no members but read; they crash more often."""
    rng = Random(f"{STACK}/{seed}")
    scenario = draw_gossip(seed, rng.choice((Protocol.LBRM, Protocol.RPBCAST)))
    if not _settings(scenario).loggers:
        scenario = draw_gossip(seed, Protocol.LBRM)
    settings = _settings(scenario)
    members = scenario.size - len(settings.loggers)
    readers = tuple(range(min(rng.choice((1, 2, 3)), members - 1)))
    source = rng.choice(settings.loggers)
    chosen = Querying(
        **{"known": 1.0, **msgspec.structs.asdict(settings)},
        readers=readers,
        source=source,
        most=rng.choice((3, 20, 1000)),
        tasks=rng.choice((1, 2, 4)),
        pause=rng.choice((5, 20, 100)) * MILLISECOND,
        failing=rng.choice((0.0, 0.1, 0.3)),
        repeated=rng.choice((0.0, 0.3)),
        strict=rng.random() < 0.3,
        prefix=rng.choice(("", "", "", "i0")),
    )
    names = [member.name for member in member_names(scenario.size, scenario.name_bytes)]
    trouble = _restarts(rng, readers, names.index(source), scenario.duration)
    kept = [fault for fault in scenario.faults if not (isinstance(fault, Leave) and fault.member in readers)]
    return msgspec.structs.replace(
        scenario,
        stack=STACK,
        settings=chosen,
        traffic=_of_members(rng, scenario, readers, members),
        app_delays={number: delay for number, delay in scenario.app_delays.items() if number not in readers},
        late={number: at for number, at in scenario.late.items() if number not in readers},
        faults=tuple(sorted([*kept, *trouble], key=lambda fault: fault.at)),
    )


def _settings(scenario: Scenario) -> GossipSettings:
    assert isinstance(scenario.settings, GossipSettings)
    return scenario.settings


def _of_members(
    rng: Random, scenario: Scenario, readers: tuple[int, ...], members: int
) -> tuple[Traffic, ...]:
    """What members send; if only readers would, a member does instead."""
    traffic = tuple(each for each in scenario.traffic if each.sender not in readers)
    if traffic:
        return traffic
    sender = rng.randrange(len(readers), members)
    return (msgspec.structs.replace(scenario.traffic[0], sender=sender),)


def _restarts(rng: Random, readers: tuple[int, ...], source: int, duration: Nanos) -> list[AnyFault]:
    """Readers and their logger crash, and are back soon."""
    found: list[AnyFault] = []
    for _ in range(rng.randint(0, 4)):
        at, who = rng.randrange(duration), rng.choice((*readers, source))
        found += [Crash(at, who, 0), Recover(at + rng.choice((1, 20, 200)) * MILLISECOND, who)]
    return found
