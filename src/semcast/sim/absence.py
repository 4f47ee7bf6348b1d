"""Members that are away: nothing passes their links, while their processes run on."""

from collections.abc import Callable
from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.core.stack import Stack
from semcast.sim.faults import AnyFault, Disconnect, Reconnect
from semcast.sim.scenario import Scenario

Tell = Callable[[Stack, Nanos], None]
"""How the program of a member tells its stack something."""


def _nothing(_stack: Stack, _now: Nanos) -> None:
    """Most stacks are told nothing: they notice, or do not care."""


class Absence(msgspec.Struct, frozen=True):
    """What a program says to its stack that knows when its machine is away."""

    goes: Tell = _nothing
    """Before its links go down."""
    returns: Tell = _nothing
    """Once they are up again."""


UNTOLD = Absence()
"""Nobody says anything."""


def absence(
    at: Nanos, duration: Nanos, member: int, *, notice: Nanos | None = None
) -> tuple[AnyFault, AnyFault]:
    """A member is away for a while; with `notice` its program says so, so long before and when it is back."""
    back = at + (notice or 0) + duration
    return Disconnect(at, member, notice), Reconnect(back, member, announced=notice is not None)


def with_absences(rng: Random, scenario: Scenario) -> Scenario:
    """The same scenario, in which members are away now and then, and links lose for all behind them."""
    found = list(scenario.faults)
    for _ in range(rng.randint(1, 2)):
        at, length = rng.randrange(scenario.duration), rng.choice((20, 200, 1000)) * MILLISECOND
        notice = rng.choice((None, 0, 5 * MILLISECOND))
        found += absence(at, length, rng.randrange(scenario.size), notice=notice)
    return msgspec.structs.replace(
        scenario,
        link_loss=rng.choice((0.0, 0.01, 0.05)),
        queue_packets=rng.choice((None, 50)),
        faults=tuple(sorted(found, key=lambda fault: fault.at)),
    )
