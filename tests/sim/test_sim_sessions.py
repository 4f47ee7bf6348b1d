"""Durable subscriptions in swarms: programs acknowledge what they dealt with, stop, crash and come back.

Mutants are hunted with those of all stacks.
"""

import pytest

from semcast.history import Kind
from semcast.sim.faults import DiskFull
from semcast.sim.swarm import examine, scenario_of


def test_the_swarm_finds_nothing_under_all_kinds_of_trouble() -> None:
    """Sessions go on after stops and crashes; what was not acknowledged comes again; disks are full."""
    seen: set[str] = set()
    for seed in range(8):
        finding = examine(scenario_of("sessions", seed))
        assert finding.clean, f"seed {seed}: {finding.broken} {finding.scenario}"
        rows = finding.outcome.history.events
        ends = {row.process: row.kind for row in rows if row.kind in (Kind.CRASH, Kind.LEFT)}
        explicit = {row.process for row in rows if row.kind.value == "explicit"}
        for process in explicit & ends.keys():
            again = any(each.name == process.name and each > process for each in explicit)
            seen |= {f"{ends[process].value} and back"} if again else set()
        seen |= (
            {"disk full"} if any(isinstance(each, DiskFull) for each in finding.scenario.faults) else set()
        )
        given = [(row.process.name, row.sender, row.seq) for row in rows if row.kind is Kind.DELIVER]
        seen |= {"again"} if len(given) > len(set(given)) else set()
    assert seen == {"left and back", "crash and back", "disk full", "again"}


@pytest.mark.parametrize("seed", [500043, 520091, 520102, 520106, 540003, 540147, 560039, 560110, 560133])
def test_seeds_that_once_failed(seed: int) -> None:
    """500043: a name that had left and came back was taken for one that never comes back.

    520091, 520102: sessions that began after a disk was lost were to have what nobody knew any more.
    540003: what a member had sent before a logger knew of its session was to come again.
    520106: a logger said that it had an acknowledgement of a stream of which it had not heard yet.
    540147: a logger with one session, whose program was dead, took itself for cut off in every pause.
    560039: nobody started a logger again that took long to end with its disk full.
    560110: a log that crashed while it was written anew took messages for replacements of themselves.
    560133: who crashed after its session had ended, as it had asked, was to get what came until it was back.
    """
    finding = examine(scenario_of("sessions", seed))
    assert finding.clean, finding.broken
