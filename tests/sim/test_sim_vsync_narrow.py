"""Virtual synchrony over networks that carry little, with names as long as they may be."""

import pytest

from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.vsync import DetectorSettings, Order, VsyncSettings
from semcast.sim.faults import Crash, Recover
from semcast.sim.mutants import MUTANTS
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import examine, scenario_of


def crowd(loss: float) -> Scenario:
    """32 members with names of 60 bytes, some of which start again."""
    detector = DetectorSettings(
        heartbeat=250 * MILLISECOND, timeout_initial=SECOND, timeout_min=SECOND, timeout_max=2 * SECOND
    )
    settings = VsyncSettings(
        order=Order.CAUSAL, minimum=17, state=True, frame_bytes=900, buffer_messages=200, detector=detector
    )
    traffic = tuple(Traffic(sender, "items", "poisson", 5.0, 5, size=100) for sender in range(0, 32, 4))
    victims = (0, 5, 6)
    faults = [Crash(SECOND + number, number, detected_after=0) for number in victims]
    back = [Recover(1200 * MILLISECOND + number, number) for number in victims]
    return Scenario(
        seed=1,
        stack="vsync",
        size=32,
        mtu=1280,
        name_bytes=60,
        loss=loss,
        vsync=settings,
        traffic=traffic,
        faults=(*faults, *back),
        duration=1500 * MILLISECOND,
    )


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_32_members_with_long_names_found_a_group_and_come_back_to_it(loss: float) -> None:
    finding = examine(crowd(loss))
    assert finding.clean, finding.broken
    assert finding.outcome.oversized == 0


def test_seed_312_six_members_with_long_names_meet_again() -> None:
    """A welcome named everybody three times: more than a datagram carries, so nobody ever got one."""
    finding = examine(scenario_of("vsync", 312))
    assert finding.clean, finding.broken


def test_who_never_cuts_a_frame_is_caught() -> None:
    broken = " ".join(examine(crowd(0.0), MUTANTS["vsync"]["never-in-pieces"]).broken)
    assert "size: " in broken
    assert "did not find all others" in broken
