"""The checkers of causal domains against sentences read literally, on random small histories.

What is judged of rows one by one is judged so, too, in whatever order they come.
"""

from collections import Counter
from random import Random

import msgspec
import pytest
from tests.specs.domain_histories import shuffled, wander
from tests.specs.domain_literal import JUDGED, Literal

from semcast.history import Event, History
from semcast.specs import Status, check
from semcast.specs.domains.stream import Streaming

SEEDS = 150


@pytest.mark.parametrize("part", range(4))
def test_checkers_say_what_the_sentences_say(part: int) -> None:
    seen: Counter[tuple[str, Status]] = Counter()
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        history = wander(seed)
        if seed % 2:
            history = shuffled(history, Random(seed))
        literal = Literal(history)
        for verdict in check(history, JUDGED):
            expected = literal.judge(verdict.property)
            assert (verdict.status, verdict.count) == expected, (seed, str(verdict))
            seen[verdict.property, verdict.status] += 1
    for name in JUDGED:
        assert seen[name, Status.HOLDS] > 5, name
        assert seen[name, Status.VIOLATED] > 5, name


@pytest.mark.parametrize("part", range(4))
def test_rows_one_by_one_come_to_the_same(part: int) -> None:
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        rng = Random(seed)
        history = wander(seed)
        if seed % 2:
            history = shuffled(history, rng)
        if seed % 5 == 0:
            history = cut_off(history, rng)
        for order in (by_time(history), drawn(history, rng)):
            assert_same(history, order, seed)


def cut_off(history: History, rng: Random) -> History:
    """One process stops recording somewhere."""
    who = rng.choice(history.processes)
    last = rng.randint(0, len(history.of(who)))
    info = msgspec.structs.replace(history.info, cut_off=(who,))
    return History(info, [event for event in history.events if event.process != who or event.index < last])


def by_time(history: History) -> list[Event]:
    return sorted(history.events, key=lambda event: (event.at, event.process, event.index))


def drawn(history: History, rng: Random) -> list[Event]:
    events = list(history.events)
    rng.shuffle(events)
    return events


def assert_same(history: History, order: list[Event], seed: int) -> None:
    streaming = Streaming(history.info, history.processes)
    for event in order:
        streaming.take(event)
    found = streaming.verdicts()
    for verdict in check(history, list(found)):
        other = found[verdict.property]
        assert (other.status, other.count) == (verdict.status, verdict.count), (seed, verdict, other)
        assert bool(other.offending) == bool(verdict.offending)
