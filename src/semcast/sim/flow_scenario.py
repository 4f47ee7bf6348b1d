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
_MOST = 60
"""Messages of a sender where others answer each of them."""


def with_programs(rng: Random, scenario: Scenario) -> Scenario:
    """The same trouble, with programs of all kinds."""
    habits = draw_habits(rng, scenario.size)
    answered = any(habit.answers for habit in habits.values())
    bursts = scenario.bursts
    if bursts is not None:
        bursts = msgspec.structs.replace(bursts, send_messages=rng.choice((1, 1, 10)), run=1)
    return msgspec.structs.replace(
        scenario,
        habits=habits,
        bursts=bursts,
        traffic=tuple(_countless(each, answered=answered) for each in scenario.traffic),
        app_delays={
            number: min(delay, (1 if answered else 20) * MILLISECOND)
            for number, delay in scenario.app_delays.items()
        },
    )


def draw_reserve(rng: Random) -> int:
    """Nothing, one message, or plenty."""
    return rng.choice((0, ONE, AMPLE))


def _countless(traffic: Traffic, *, answered: bool) -> Traffic:
    """Annotations that count messages would count wrong: answers come between them, and sends may fail."""
    return msgspec.structs.replace(
        traffic,
        content=traffic.content if traffic.content == "plain" else "items",
        count=min(traffic.count, _MOST) if answered else traffic.count,
        size=min(traffic.size, 100),
    )
