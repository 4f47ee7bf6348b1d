"""Programs that give a logger batches, in swarms: each is in the log whole and once.

Mutants are hunted with those of all stacks.
"""

import msgspec
import pytest

from semcast.core.annotations import Item
from semcast.history import History, Kind
from semcast.history.events import Event
from semcast.sim.swarm import examine, patrol, scenario_of
from semcast.specs import GOSSIP_BATCHES, Status


def test_the_swarm_finds_nothing() -> None:
    for report in patrol("gateway", range(8)):
        assert not report.broken, f"seed {report.seed}: {report.broken} {report.scenario}"


@pytest.mark.parametrize("seed", [26, 36, 153, 178, 181, 40002, 92014, 510069, 510111])
def test_seeds_that_once_failed(seed: int) -> None:
    """26, 36: what a logger had published was lost with its disk, and sessions were expected to have it.

    178: a gateway lost its disk and its keys; its new log had a batch from others, and from its publisher.
    153, 181: a batch that had left the log was asked for again, and was said to be at position 0.
    40002: sessions went from logger to logger for ever, as an admission took longer than they waited.
    92014: a member that was refused was owed the messages that it had sent before it heard so.
    510069: the only member was gone for good, and its logger, which heard nobody, was to end its session.
    510111: a logger asked a former life of its own for what its lost disk had.
    """
    [report] = patrol("gateway", range(seed, seed + 1))
    assert not report.broken, report.broken


def test_a_seed_publishes_under_all_kinds_of_trouble() -> None:
    """Half batches are asked for, batches are repeated, and publishers crash: the swarm is not idle."""
    seen: set[tuple[str, str | None]] = set()
    for seed in range(8):
        history = examine(scenario_of("gateway", seed)).outcome.history
        seen |= {(row.kind.value, row.level) for row in history.events}
        crashed = {row.process.name for row in history.events if row.kind is Kind.CRASH}
        again = {row.process.name for row in history.events if row.kind.value == "publisher"} & crashed
        seen |= {("publisher", "crashed")} if again else set()
    wanted = {("taken", "logged"), ("taken", "known"), ("refused", "stage"), ("publisher", "crashed")}
    assert wanted <= seen


def changed(history: History, rows: list[Event]) -> dict[str, Status]:
    broken = History(history.info, rows)
    return {name: judge(broken).status for name, judge in GOSSIP_BATCHES.items()}


def test_histories_that_are_wrong_are_called_so() -> None:
    """By hand: the end of a batch is gone, a batch comes twice, a wrong place is told, a batch is nowhere."""
    history = examine(scenario_of("gateway", 0)).outcome.history
    rows = list(history.events)
    assert set(changed(history, rows).values()) == {Status.HOLDS}
    [taken, *_] = [row for row in rows if row.kind.value == "taken"]
    assert isinstance(taken.annotation, Item)
    sent = [row for row in rows if row.kind is Kind.MULTICAST and row.process == taken.sender]
    last = sent[-1]
    without = [row for row in rows if row is not last]
    assert changed(history, without)["published_all"] is Status.VIOLATED
    replace = msgspec.structs.replace
    moved = [replace(row, seq=row.seq + 1) if row is taken else row for row in rows]
    assert changed(history, moved)["published_taken"] is Status.VIOLATED
    first = sent[0]
    doubled = [
        replace(row, crc=first.crc, size=first.size, count=first.count) if row is last else row
        for row in rows
    ]
    assert changed(history, doubled)["published_once"] is Status.VIOLATED
