"""What a swarm says of runs that end badly though no history shows it."""

import msgspec
import pytest

from semcast.core import View
from semcast.core.ids import SECOND
from semcast.history import History
from semcast.sim.families import FAMILIES
from semcast.sim.judges import judge
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import Outcome, simulate

QUIET = Scenario(1, "ring", 3, traffic=(Traffic(0, "plain", "constant", 100.0, 20),), duration=SECOND)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return simulate(QUIET)


def test_a_quiet_run_is_above_reproach(outcome: Outcome) -> None:
    assert judge(QUIET, outcome) == []


def test_who_waits_for_ever_is_named(outcome: Outcome) -> None:
    member = next(iter(outcome.views))
    stuck = msgspec.structs.replace(outcome, stuck=[member])
    assert judge(QUIET, stuck) == [f"liveness: {member} cannot send for ever"]


def test_members_that_stay_apart_are_named(outcome: Outcome) -> None:
    first, *others = outcome.views
    apart = msgspec.structs.replace(outcome, views={**outcome.views, first: View(9, (first,))})
    assert judge(QUIET, apart) == [f"liveness: {first} did not find all others again"]
    assert others


def test_healing_has_a_bound(outcome: Outcome) -> None:
    bound = FAMILIES.of("ring").heals_within(QUIET)
    assert bound is not None
    assert judge(QUIET, msgspec.structs.replace(outcome, united_after=bound)) == []
    [late] = judge(QUIET, msgspec.structs.replace(outcome, united_after=bound + 1))
    assert late.startswith("healing: ")


def test_views_need_a_reason(outcome: Outcome) -> None:
    views = [event for event in outcome.history.events if event.kind.value == "view"]
    more = [msgspec.structs.replace(views[-1], view=100 + number) for number in range(20)]
    history = History(outcome.history.info, [*outcome.history.events, *more])
    [restless] = judge(QUIET, msgspec.structs.replace(outcome, history=history))
    assert restless.startswith("calm: ")
