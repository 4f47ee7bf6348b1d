"""Swarms: on the abstract group communication, step by step, and on the ring in virtual time."""

import msgspec
import pytest
from tests.replication.swarm import Swarm

from semcast.core.ids import MemberId, Nanos
from semcast.history import History, Kind, read_history, write_history
from semcast.replication.machine import Machine
from semcast.replication.reads import ReadQueue
from semcast.replication.settings import ReplicationSettings
from semcast.sim.faults import Recover
from semcast.sim.mutants import MUTANTS
from semcast.sim.mutants import replication as mutants
from semcast.sim.simulate import simulate
from semcast.sim.swarm import examine, scenario_of
from semcast.specs import Status, check
from semcast.specs.replication.kinds import INSTALL, WHOLE
from semcast.specs.replication.ledger import text_of

CAUGHT: list[tuple[type[Machine], str]] = [
    (mutants.BitsAsPrinted, "repl_liveness"),
    (mutants.HalfIsEnough, "repl_one_primary"),
    (mutants.GreenInTransitional, "repl_green_in_primary"),
    (mutants.RedsInArrivalOrder, "repl_total_order"),
    (mutants.RedsById, "repl_causal"),
    (mutants.LateQueuedDropped, "repl_queued"),
]
READS: list[tuple[type[ReadQueue], str]] = [
    (mutants.WeakSeesRed, "repl_weak"),
    (mutants.DeltaDeletedAtAnyGreen, "repl_dirty"),
]


@pytest.mark.parametrize("seeds", [range(20), range(20, 40), range(40, 60)], ids=str)
def test_a_drawn_course_of_splits_and_crashes_breaks_nothing(seeds: range) -> None:
    assert {seed: broken for seed in seeds if (broken := Swarm(seed).run())} == {}


@pytest.mark.parametrize(("mutant", "name"), CAUGHT, ids=lambda each: getattr(each, "__name__", each))
def test_chance_catches_it(mutant: type[Machine], name: str) -> None:
    assert any(name in _broken(Swarm(seed, mutant)) for seed in range(40))


@pytest.mark.parametrize(("mutant", "name"), READS, ids=lambda each: getattr(each, "__name__", each))
def test_chance_catches_wrong_reads(mutant: type[ReadQueue], name: str) -> None:
    assert any(name in Swarm(seed, reading=mutant).run() for seed in range(40))


def _broken(swarm: Swarm) -> set[str]:
    try:
        return swarm.run()
    except Exception as error:  # whatever a broken server raises is a finding
        return {type(error).__name__}


@pytest.mark.parametrize("seeds", [range(12), range(12, 24)], ids=str)
def test_servers_over_the_ring(seeds: range) -> None:
    found = {seed: examine(scenario_of("replication", seed)) for seed in seeds}
    assert {seed: finding.broken for seed, finding in found.items() if finding.broken} == {}
    assert sum(max(stack.delivered for stack in each.outcome.stacks) for each in found.values()) > 500


@pytest.mark.parametrize("seed", [13, 27, 61, 119])
def test_operators_give_up_servers_that_come_back_and_lineages_do_not_mix(seed: int) -> None:
    assert examine(scenario_of("replication", seed)).broken == []


@pytest.mark.parametrize("seed", [38, 105])
def test_old_copies_of_disks_are_put_back_and_found_out(seed: int) -> None:
    assert examine(scenario_of("replication", seed)).broken == []


@pytest.mark.parametrize(
    "seed", [32, 41, 55, 57, 156, 167, 2084, 2162, 10555, 520098, 520117, 520139, 910015]
)
def test_seeds_that_once_failed(seed: int) -> None:
    """41: a removed server stayed in its primary. 55, 57: who had forgotten all starts, and delivers.

    156: a guest lacked what the others had forgotten. 32: answers after a snapshot had wrong places.
    167: reds that are handed in slowly were begun anew for ever. 2162: an operator forgot a server where
    nobody knew that the others had gone on with it; the one who was told had other servers than the rest from
    then on. 2084: who forgot others, and had many reds, was told in every exchange to hand these in first.
    10555: the same, where it was far behind. 520098: a server installed a primary, and forgot it; the others,
    who had heard that it agreed, did not notice. 520117, 520139: what actions make of the group depended on
    whom an operator had given up when they came.
    """
    assert examine(scenario_of("replication", seed)).broken == []


@pytest.mark.parametrize("seed", [520116, 520133, 520228, 520909, 731149])
def test_seeds_in_which_nobody_can_be_blamed(seed: int) -> None:
    """520116: what only one disk had was lost with it, as all others crashed before their syncs.

    520133: a server was removed, and starts anew with an empty disk: nobody lets it in again. 520228: an old
    copy of a store is put back that was thought to be lost. 520909: servers are given up where nothing was
    ordered since they were in a primary. 731149: the same positions are given anew after that.
    """
    assert examine(scenario_of("replication", seed)).broken == []


@pytest.mark.parametrize("seed", [*range(60), 731015])
def test_no_scenario_loses_all_disks(seed: int) -> None:
    """What all have lost nobody can tell: they would found another group, and rightly so."""
    scenario = scenario_of("replication", seed)
    assert isinstance(scenario.settings, ReplicationSettings)
    lost = {each.member for each in scenario.faults if isinstance(each, Recover) and not each.with_disk}
    assert len(lost) < len(scenario.settings.names)


def test_the_rows_are_well_formed_and_read_back(tmp_path) -> None:  # type: ignore[no-untyped-def]
    history = examine(scenario_of("replication", 3)).outcome.history
    write_history(history, tmp_path / "run.parquet")
    again = read_history(tmp_path / "run.parquet")
    assert again.events == history.events
    assert [verdict.status for verdict in check(again)] == [verdict.status for verdict in check(history)]
    assert all(verdict.status is not Status.VIOLATED for verdict in check(again))


def test_a_state_that_is_said_to_have_one_action_more_is_noticed() -> None:
    mutant = MUTANTS["replication"]["snapshot-names-too-high"]
    broken = [
        finding for seed in (0, 6, 9) for finding in examine(scenario_of("replication", seed), mutant).broken
    ]
    assert any(finding.startswith("repl_state") for finding in broken)


def test_every_mutant_is_registered_by_name() -> None:
    kinds = {mutant.machine for mutant in MUTANTS["replication"].values()}
    assert kinds >= {mutant for mutant, _ in CAUGHT}


def test_who_was_given_up_and_goes_on_as_a_primary_is_found() -> None:
    """Primaries that were lost with all disks of those given up are excused, later ones are not."""
    history = simulate(scenario_of("replication", 910015)).history
    [whole] = [event for event in history.events if event.kind is INSTALL and text_of(event) == WHOLE]
    assert {verdict.status for verdict in check(history, ["repl_one_primary"])} == {Status.HOLDS}
    p0 = MemberId("p0")
    lost = [event for event in history.events if event.kind is INSTALL and event.process == p0][-1]

    def another_primary(at: Nanos) -> Status:
        """What is said if p0, which never crashes here, installs a primary of the same number then."""
        planted = msgspec.structs.replace(lost, view=whole.view, order=(whole.order or 0) + 1, at=at)
        events = [
            planted if event is lost else event
            for event in history.events
            if event.process != p0 or event.kind is not Kind.CRASH
        ]
        [verdict] = check(History(history.info, events), ["repl_one_primary"])
        return verdict.status

    assert another_primary(whole.at - 1) is Status.HOLDS
    assert another_primary(whole.at + 1) is Status.VIOLATED
