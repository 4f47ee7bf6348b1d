"""Scenarios for flow control: programs that do not just read, and queues as small as they may be."""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND
from semcast.sim.habits import draw_habits
from semcast.sim.scenario import Scenario, Traffic

AMPLE = 64 << 20
"""A reserve, in bytes, that holds all messages of a run."""
ONE = 128
"""A reserve for one message."""
LARGEST = 2000
"""Bytes of a message, at most, with what a workload adds to the size that was drawn."""
_MOST = 60
"""Messages of a sender where others answer each of them."""
_MOST_OF_ALL = 200
"""Messages of all senders where somebody reads a few at a time, and then nothing for long."""
_LONG = 100 * MILLISECOND


def with_programs(rng: Random, scenario: Scenario) -> Scenario:
    """The same trouble, with programs of all kinds."""
    habits = draw_habits(rng, scenario.size)
    answered = any(habit.answers for habit in habits.values())
    pausing = any(habit.pause > _LONG for habit in habits.values())
    most = _MOST_OF_ALL // max(1, len(scenario.traffic)) if pausing else None
    most = min(most or _MOST, _MOST) if answered else most
    bursts = scenario.bursts
    if bursts is not None:
        bursts = msgspec.structs.replace(bursts, send_messages=rng.choice((1, 1, 10)), run=1)
    return msgspec.structs.replace(
        scenario,
        habits=habits,
        bursts=bursts,
        traffic=tuple(_countless(each, most) for each in scenario.traffic),
        app_delays={
            number: min(delay, (1 if answered else 20) * MILLISECOND)
            for number, delay in scenario.app_delays.items()
        },
    )


def with_large(rng: Random, scenario: Scenario) -> Scenario:
    """The same with messages that are large for their queues."""
    traffic = tuple(
        msgspec.structs.replace(each, size=rng.choice((each.size, 1000))) for each in scenario.traffic
    )
    return msgspec.structs.replace(scenario, traffic=traffic)


def draw_bytes(rng: Random) -> int:
    """Less than one large message, one, or a few."""
    return rng.choice((1, 1000, 4000))


def draw_reserve(rng: Random) -> int:
    """Nothing, one message, or plenty."""
    return rng.choice((0, ONE, AMPLE))


def _countless(traffic: Traffic, most: int | None) -> Traffic:
    """Annotations that count messages would count wrong: answers come between them, and sends may fail."""
    return msgspec.structs.replace(
        traffic,
        content=traffic.content if traffic.content == "plain" else "items",
        count=traffic.count if most is None else min(traffic.count, most),
        size=min(traffic.size, 100),
    )
