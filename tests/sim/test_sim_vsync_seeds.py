"""Seeds of virtual synchrony that once failed, and why."""

import pytest

from semcast.sim.swarm import examine
from semcast.sim.vsync_scenario import draw_vsync

SEEDS = {
    910116: "a token holder's own words took numbers that its application did not know of, so that commits "
    "replaced messages they did not mean",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_that_once_failed(seed: int) -> None:
    finding = examine(draw_vsync(seed))
    assert finding.clean, finding.broken
