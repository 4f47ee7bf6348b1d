"""What a swarm says of runs that end badly though no history shows it."""

import msgspec
import pytest

from semcast.core import View
from semcast.core.ids import MILLISECOND, SECOND
from semcast.history import History
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.families import FAMILIES
from semcast.sim.habits import Habit
from semcast.sim.judges import judge
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import RunOutcome, simulate

QUIET = Scenario(1, "ring", 3, traffic=(Traffic(0, "plain", "constant", 100.0, 20),), duration=SECOND)


@pytest.fixture(scope="module")
def outcome() -> RunOutcome:
    return simulate(QUIET)


def test_a_quiet_run_is_above_reproach(outcome: RunOutcome) -> None:
    assert judge(QUIET, outcome) == []


def test_who_waits_for_ever_is_named(outcome: RunOutcome) -> None:
    member = next(iter(outcome.views))
    stuck = msgspec.structs.replace(outcome, stuck=[member])
    assert judge(QUIET, stuck) == [f"liveness: {member} cannot send for ever"]


def test_members_that_stay_apart_are_named(outcome: RunOutcome) -> None:
    first, *others = outcome.views
    apart = msgspec.structs.replace(outcome, views={**outcome.views, first: View(9, (first,))})
    assert judge(QUIET, apart) == [f"liveness: {first} did not find all others again"]
    assert others


def test_healing_has_a_bound(outcome: RunOutcome) -> None:
    bound = FAMILIES.of("ring").heals_within(QUIET)
    assert bound is not None
    assert judge(QUIET, msgspec.structs.replace(outcome, united_after=bound)) == []
    [late] = judge(QUIET, msgspec.structs.replace(outcome, united_after=bound + 1))
    assert late.startswith("healing: ")


def test_views_need_a_reason(outcome: RunOutcome) -> None:
    views = [event for event in outcome.history.events if event.kind.value == "view"]
    more = [msgspec.structs.replace(views[-1], view=100 + number) for number in range(20)]
    history = History(outcome.history.info, [*outcome.history.events, *more])
    [restless] = judge(QUIET, msgspec.structs.replace(outcome, history=history))
    assert restless.startswith("calm: ")


def test_no_healing_is_promised_where_a_policy_puts_out_a_program_that_reads_too_seldom() -> None:
    """Seed 314: it was put out and came back, again and again, as long as there was something to read."""
    settings = VsyncSettings(expel_after=400 * MILLISECOND)
    seldom = Scenario(
        seed=1, stack="vsync", size=3, vsync=settings, habits={0: Habit(pause=300 * MILLISECOND)}
    )
    often = msgspec.structs.replace(seldom, habits={0: Habit(pause=20 * MILLISECOND)})
    never_out = msgspec.structs.replace(seldom, vsync=VsyncSettings())
    heals_within = FAMILIES.of("vsync").heals_within
    assert heals_within(seldom) is None
    assert heals_within(often) is not None
    assert heals_within(never_out) is not None
