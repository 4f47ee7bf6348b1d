"""Programs that read a log by position, in swarms: every message once, or told that it was trimmed.

Mutants are hunted with those of all stacks.
"""

import msgspec
import pytest

from semcast.history import History, Kind
from semcast.history.events import Event
from semcast.sim.swarm import examine, scenario_of
from semcast.specs import GOSSIP_READERS, Status


def test_the_swarm_finds_nothing_under_all_kinds_of_trouble() -> None:
    """Readers and their loggers crash, messages are trimmed, batches are repeated: the swarm is not idle."""
    seen: set[str] = set()
    for seed in range(8):
        finding = examine(scenario_of("source", seed))
        assert finding.clean, f"seed {seed}: {finding.broken} {finding.scenario}"
        history = finding.outcome.history
        readers = {row.process.name for row in history.events if row.kind.value == "reader"}
        loggers = {row.process.name for row in history.events if row.kind.value == "opened"}
        crashed = {row.process.name for row in history.events if row.kind is Kind.CRASH}
        seen |= {"reader crashed"} if readers & crashed else set()
        seen |= {"logger crashed"} if loggers & crashed else set()
        seen |= {"several"} if len(readers) > 1 else set()
        seen |= {row.kind.value for row in history.events if row.process.name in readers}
        done = [(row.process.name, row.annotation) for row in history.events if row.kind.value == "counted"]
        seen |= {"repeated"} if len(done) > len({str(each) for each in done}) else set()
    wanted = {"reader crashed", "logger crashed", "several", "repeated"}
    assert {*wanted, "given", "skipped", "counted", "stopped"} <= seen


def verdicts(history: History, rows: list[Event]) -> dict[str, Status]:
    broken = History(history.info, rows)
    return {name: judge(broken).status for name, judge in GOSSIP_READERS.items()}


@pytest.fixture(scope="module")
def history() -> History:
    """One in which nothing was trimmed, so that all that is missing is replaced."""
    return examine(scenario_of("source", 1)).outcome.history


def test_histories_that_are_wrong_are_called_so(history: History) -> None:
    """By hand: a message is missing, or twice, or another one; a batch is left out; the log drops one."""
    rows, replace = list(history.events), msgspec.structs.replace
    assert set(verdicts(history, rows).values()) == {Status.HOLDS}
    kinds = [row.kind.value for row in rows]
    [given, *_], [counted, *_] = (
        [row for row, kind in zip(rows, kinds, strict=True) if kind == wanted]
        for wanted in ("given", "counted")
    )
    last = [row for row, kind in zip(rows, kinds, strict=True) if kind == "given"][-1]
    assert verdicts(history, [row for row in rows if row is not last])["read_all"] is Status.VIOLATED
    place = rows.index(given)
    assert verdicts(history, [*rows[:place], given, *rows[place:]])["read_once"] is Status.VIOLATED
    other = replace(given, seq=given.seq + 1)
    changed = [other if row is given else row for row in rows]
    assert verdicts(history, changed)["read_true"] is Status.VIOLATED
    moved = replace(counted, count=counted.count + 1)
    changed = [moved if row is counted else row for row in rows]
    assert verdicts(history, changed)["read_once"] is Status.VIOLATED
    [collected, *_] = [row for row, kind in zip(rows, kinds, strict=True) if kind == "collect"]
    changed = [replace(row, level="expired") if row is collected else row for row in rows]
    assert verdicts(history, changed)["read_kept"] is Status.VIOLATED
