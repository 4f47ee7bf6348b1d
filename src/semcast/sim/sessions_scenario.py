"""Scenarios of durable subscriptions: programs acknowledge what they dealt with, stop, crash and come back.

All the trouble that groups with loggers have; and disks of loggers that are full for a while.
"""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND
from semcast.protocols.gossip import GossipSettings, Protocol
from semcast.sim.dealing import Dealing
from semcast.sim.disks import LONGEST
from semcast.sim.faults import AnyFault, Crash, DiskFull, Leave, Recover
from semcast.sim.gossip_deeds import ForgetLogger
from semcast.sim.gossip_scenario import INACTIVE, draw_gossip
from semcast.sim.scenario import Scenario

STACK = "sessions"


def draw_sessions(seed: int) -> Scenario:
    """A group that is drawn as any, whose sessions go on when their programs stop, or end with them."""
    rng = Random(f"{STACK}/{seed}")
    scenario = draw_gossip(seed, rng.choice((Protocol.LBRM, Protocol.RPBCAST)))
    settings = scenario.settings
    assert isinstance(settings, GossipSettings)
    if not settings.loggers:
        scenario = draw_gossip(seed, Protocol.LBRM)
        settings = scenario.settings
        assert isinstance(settings, GossipSettings)
    members = scenario.size - len(settings.loggers)
    ended = Random(f"inactive/{STACK}/{seed}").random() < 0.3
    chosen = Dealing(
        **{
            "known": 1.0,
            **msgspec.structs.asdict(settings),
            "explicit": rng.random() < 0.8,
            "stays": rng.random() < 0.8,
            "at_most_once": False,
            "inactive": INACTIVE if ended else settings.inactive,
        },
        diligence=rng.choice((0.2, 0.5, 1.0)),
        lazy=rng.choice((0.0, 0.3, 0.7)),
        lazy_until=rng.choice((scenario.duration // 2, scenario.duration)),
    )
    # Who begins with what comes may be taken in by sponsors alone, and must not come back under its name.
    named = [number for number in range(members) if number not in scenario.late or settings.start != "new"]
    trouble = _restarts(rng, named, scenario.duration)
    if not any(isinstance(fault, ForgetLogger) for fault in scenario.faults):  # operators ask who is there
        trouble += _full_disks(rng, range(members, scenario.size), scenario.duration)
    return msgspec.structs.replace(
        scenario,
        stack=STACK,
        settings=chosen,
        faults=tuple(sorted([*scenario.faults, *trouble], key=lambda fault: fault.at)),
    )


def _restarts(rng: Random, members: list[int], duration: int) -> list[AnyFault]:
    """Programs stop or crash, and come back: at once, or when others have sent much."""
    found: list[AnyFault] = []
    for _ in range(rng.randint(1, 5) if members else 0):
        at, who = rng.randrange(duration), rng.choice(members)
        found.append(Leave(at, who) if rng.random() < 0.6 else Crash(at, who, 0))
        found.append(Recover(at + rng.choice((1, 20, 200, 1000, 3500)) * MILLISECOND, who))
    return found


def _full_disks(rng: Random, loggers: range, duration: int) -> list[AnyFault]:
    """Now and then a logger ends because its disk is full, and is started again and again until it is not.

    One that was started while it was full may take long to end: the last time is after that.
    """
    if rng.random() > 0.3:
        return []
    at, logger = rng.randrange(duration), rng.choice(loggers)
    length = rng.choice((20, 200, 600)) * MILLISECOND
    again = [*(at + part * length // 4 for part in (2, 3, 4)), at + length + LONGEST]
    return [DiskFull(at, length, logger), *(Recover(then, logger) for then in again)]
