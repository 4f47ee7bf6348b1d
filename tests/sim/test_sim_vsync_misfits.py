"""Members of a group with agreed views that have set otherwise what all must have set alike."""

from random import Random

import msgspec
import pytest

from semcast.core.ids import SECOND
from semcast.history import Kind
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.mutants import MUTANTS
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import examine, scenario_of
from semcast.sim.vsync_users import odd_settings

SETTINGS = VsyncSettings(minimum=3, buffer_messages=40)


def misfitting(seed: int, *, late: bool) -> Scenario:
    """Four members that send, and the last of them differs from the others."""
    traffic = tuple(Traffic(sender, "plain", "poisson", 50.0, 40) for sender in range(4))
    return Scenario(
        seed=seed,
        stack="vsync",
        size=4,
        vsync=SETTINGS,
        traffic=traffic,
        misfits=(3,),
        late={3: SECOND} if late else {},
    )


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_misfit_is_told_and_the_others_are_left_in_peace(seed: int, late: bool) -> None:
    scenario = misfitting(seed, late=late)
    finding = examine(scenario)
    assert finding.clean, finding.broken
    views = {event.view for event in finding.outcome.history.events if event.kind is Kind.VIEW}
    assert views == {1}, "nobody else is disturbed"


def test_every_setting_that_must_agree_is_drawn() -> None:
    scenario = misfitting(0, late=False)
    found = set()
    for seed in range(60):
        odd = odd_settings(msgspec.structs.replace(scenario, seed=seed))
        difference = SETTINGS.terms().differs(odd.terms())
        assert difference is not None
        found.add(difference.split()[0])
    assert found == {"order", "flush", "uniform", "frame_bytes", "buffer_messages", "window"}


def test_swarms_draw_misfits() -> None:
    drawn = [scenario_of("vsync", seed) for seed in Random(1).sample(range(200, 2000), 200)]
    assert sum(bool(scenario.misfits) for scenario in drawn) >= 5


def test_who_lets_misfits_in_is_caught() -> None:
    broken = " ".join(examine(misfitting(1, late=True), MUTANTS["vsync"]["terms-ignored"]).broken)
    assert "are in one view though settings differ" in broken
