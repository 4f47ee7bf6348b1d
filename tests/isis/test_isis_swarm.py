"""Swarms of causal domains in short.

Longer ones are run by hand: `semcast sim swarm --stack isis --seeds 0..300`.
"""

import pytest

from semcast.history.schema import Kind
from semcast.protocols.isis import Policy
from semcast.sim.isis_scenario import IsisVariant
from semcast.sim.swarm import examine, report, scenario_of
from semcast.specs.domains.kinds import GIVEN, LEFT, OUT, SENT, VIEW


@pytest.mark.parametrize("policy", list(Policy))
def test_the_swarm_finds_nothing(policy: Policy) -> None:
    seen: set[Kind] = set()
    seeds = 10 if policy in (Policy.CONSERVATIVE, Policy.FULL) else 6
    for seed in range(seeds):
        finding = examine(scenario_of("isis", seed, IsisVariant(policy=policy)))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        seen.update(event.kind for event in finding.outcome.history.events)
    assert seen >= {VIEW, SENT, GIVEN, LEFT, Kind.CRASH}
    assert OUT in seen or seeds < 10


@pytest.mark.parametrize(
    ("mutant", "policy", "seed"),
    [("discarded-at-flush", Policy.FULL, 2)],
)
def test_mutants_that_few_seeds_catch(mutant: str, policy: Policy, seed: int) -> None:
    """The others are caught by the swarm, or in `test_isis_directed.py`."""
    assert report(seed, "isis", mutant, IsisVariant(policy=policy, clients=False)).broken


def test_a_server_that_may_not_speak_yet_waits_for_the_next_input() -> None:
    """Seed 9: while a view ended, a server with news of clients looked again and again at the same moment."""
    scenario = scenario_of("isis", 9, IsisVariant(policy=Policy.CONSERVATIVE, clients=True))
    assert examine(scenario, most=100_000).clean


def test_who_was_put_out_while_it_asked_to_leave_is_out_of_all_groups() -> None:
    """Seed 23: it slept, sent in a view that was over, left it, and went on in another group."""
    finding = examine(scenario_of("isis", 23, IsisVariant(policy=Policy.FULL, clients=False)))
    assert finding.clean, finding.broken


def test_who_leaves_may_be_in_an_older_and_larger_view() -> None:
    """Seed 2073: its program was in a view of more members than the one that it left."""
    finding = examine(scenario_of("isis", 2073, IsisVariant(clients=False)))
    assert finding.clean, finding.broken


def test_a_flush_does_not_return_in_a_view_that_ended_without_its_process() -> None:
    """Seed 80007: who slept while it was put out sent in its old view, and its flush returned at once."""
    fixed = IsisVariant(policy=Policy.FULL, resilience="0", clients=False)
    finding = examine(scenario_of("isis", 80007, fixed))
    assert finding.clean, finding.broken


@pytest.mark.parametrize("seed", [18, 2073])
def test_a_direct_message_is_not_overtaken_while_a_group_is_joined(seed: int) -> None:
    """18: it waited for a group that was joined; 2073: for one that was left. What came later did not."""
    finding = examine(scenario_of("isis", seed, IsisVariant(policy=Policy.BLOCKS, clients=False)))
    assert finding.clean, finding.broken


def test_who_is_put_out_is_given_a_direct_message_before_what_follows_it() -> None:
    """Seed 8020: it waited for all that was left of the view, also for what its sender sent later."""
    finding = examine(scenario_of("isis", 8020, IsisVariant(policy=Policy.CONSERVATIVE, clients=False)))
    assert finding.clean, finding.broken


def test_a_client_does_not_say_of_other_groups_what_the_servers_have_heard() -> None:
    """Seed 600028: under blocks it passed on all that its contact had told it, as of direct messages."""
    finding = examine(scenario_of("isis", 600028, IsisVariant(policy=Policy.BLOCKS)))
    assert finding.clean, finding.broken


def test_who_waits_to_enter_a_view_does_not_ask_for_more_without_end() -> None:
    """Seed 2029: a look for the next view counted as room for more, which was asked for at once."""
    finding = examine(scenario_of("isis", 2029, IsisVariant(policy=Policy.EPOCHS, clients=False)))
    assert finding.clean, finding.broken


def test_what_who_is_put_out_sent_last_leaves_under_its_own_name() -> None:
    """Seed 600039: a simulated host sent it under the name of its successor, whose own then seemed old."""
    finding = examine(scenario_of("isis", 600039, IsisVariant(policy=Policy.EPOCHS)))
    assert finding.clean, finding.broken
