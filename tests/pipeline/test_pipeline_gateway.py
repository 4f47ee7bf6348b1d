"""Batches in runs that memory does not hold: Spark says what the checkers in memory say."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
from pyspark.sql import SparkSession
from tests.pipeline.agreement import differences, in_memory, said, statuses
from tests.pipeline.histories import lose_half, named, places, renumbered, write

from semcast.history import Event, History
from semcast.history.schema import Kind
from semcast.pipeline.verify import Options, survey, verify
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import GOSSIP, GOSSIP_BATCHES, GOSSIP_LOGS
from semcast.specs.gossip import kinds

NAMES = [*GOSSIP, *GOSSIP_LOGS, *GOSSIP_BATCHES]
"""Also the others: programs that publish are no sessions, and are owed nothing."""
SEEDS = (0, 3, 178)
CAUGHT = {
    "half-a-batch": 2,
    "keys-forgotten": 10,
    "key-beside-the-batch": 10,
    "stages-forgotten": 8,
    "published-twice": 0,
}


def lose_offers(events: list[Event], _random: Random) -> None:
    for place in reversed(places(events, kinds.OFFERED)[::2]):
        del events[place]


def take_elsewhere(events: list[Event], random: Random) -> None:
    """A batch is said to be where it is not."""
    place = random.choice(places(events, kinds.TAKEN))
    events[place] = msgspec.structs.replace(events[place], seq=events[place].seq + 1)


def unlog(events: list[Event], _random: Random) -> None:
    """What loggers published is not in their logs."""
    for place in reversed(places(events, kinds.LOG)):
        if events[place].sender == events[place].process:
            del events[place]


def refuse(events: list[Event], random: Random) -> None:
    """Pieces that were on disk are gone."""
    place = random.choice(places(events, kinds.ASKED))
    events.insert(place + 1, msgspec.structs.replace(events[place], kind=kinds.REFUSED, level="stage"))


def change_contents(events: list[Event], random: Random) -> None:
    own = {row.process for row in events if row.kind is kinds.OPENED}
    chosen = [place for place in places(events, Kind.MULTICAST) if events[place].process in own]
    place = random.choice(chosen)
    events[place] = msgspec.structs.replace(events[place], crc=1)


EDITS: tuple[Callable[[list[Event], Random], None], ...] = (
    lose_offers,
    take_elsewhere,
    unlog,
    refuse,
    change_contents,
    lose_half,
)


def histories() -> Iterator[History]:
    for seed in SEEDS:
        yield named(simulate(scenario_of("gateway", seed)).history, f"gateway-{seed}")
    for name, seed in CAUGHT.items():
        yield named(simulate(scenario_of("gateway", seed), MUTANTS["gateway"][name]).history, name)


def planted(history: History) -> Iterator[History]:
    for number, edit in enumerate(EDITS):
        events = list(history.events)
        edit(events, Random(number))
        yield renumbered(msgspec.structs.replace(history.info, run=f"planted-{edit.__name__}"), events)
        cut = msgspec.structs.replace(history.info, run=f"cut-{edit.__name__}", quiesced=False)
        yield renumbered(cut, events)


def test_batches_are_judged_as_in_memory(interpreted: SparkSession, tmp_path: Path) -> None:
    given = [*histories()]
    given += [*planted(given[0])]
    expected = in_memory(given, NAMES)
    for name in GOSSIP_BATCHES:
        assert statuses(expected, name) >= {"holds", "violated"}
    recorded = survey([write(given, tmp_path)])
    options = Options(NAMES, allow_missing=True, memory_rows=0)
    assert differences(said(verify(interpreted, recorded, options).verdicts), expected) == []
