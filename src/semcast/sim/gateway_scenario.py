"""Scenarios of programs that give a logger batches: all the trouble that groups with loggers have."""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND
from semcast.protocols.gossip import GossipSettings, Protocol
from semcast.sim.faults import Leave
from semcast.sim.gossip_deeds import PublishBatch
from semcast.sim.gossip_scenario import draw_gossip
from semcast.sim.publishers import Publishing
from semcast.sim.scenario import Scenario

STACK = "gateway"
_FEW = 0.5
_FEW_KEYS = 6
"""That a logger knows, sometimes: fewer than one program has batches, while another one is away."""


def draw_gateway(seed: int) -> Scenario:
    """A group that is drawn as any, in which the first one or two are no members but publish."""
    rng = Random(f"{STACK}/{seed}")
    scenario = draw_gossip(seed, rng.choice((Protocol.LBRM, Protocol.RPBCAST)))
    settings = scenario.settings
    assert isinstance(settings, GossipSettings)
    if not settings.loggers:
        scenario = draw_gossip(seed, Protocol.LBRM)
        settings = scenario.settings
        assert isinstance(settings, GossipSettings)
    members = scenario.size - len(settings.loggers)
    publishers = tuple(range(min(rng.choice((1, 1, 2)), members - 1)))
    batches = rng.choice((4, 8, 16))
    chosen = Publishing(
        **{"known": 1.0, **msgspec.structs.asdict(settings)},
        publishers=publishers,
        gateway=rng.choice(settings.loggers),
        batches=batches,
        pause=rng.choice((MILLISECOND, scenario.duration // batches)),
        failing=rng.choice((0.0, 0.3)),
        hasty=rng.choice((0.0, 0.3, 0.6)),
        whole=rng.choice((0.0, 0.3)),
        twice=rng.choice((0.0, 0.3)),
        repeated=rng.choice((0.0, 0.3, 0.6)),
    )
    if Random(f"{STACK}/keys/{seed}").random() < _FEW:
        chosen = msgspec.structs.replace(chosen, publish_keys=_FEW_KEYS)
    return msgspec.structs.replace(
        scenario,
        stack=STACK,
        settings=chosen,
        traffic=tuple(each for each in scenario.traffic if each.sender not in publishers),
        app_delays={
            number: delay for number, delay in scenario.app_delays.items() if number not in publishers
        },
        late={number: at for number, at in scenario.late.items() if number not in publishers},
        faults=tuple(
            fault
            for fault in scenario.faults
            if not (isinstance(fault, Leave) and fault.member in publishers)
            and not isinstance(fault, PublishBatch)  # by programs that are not told of here
        ),
    )
