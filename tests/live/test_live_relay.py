"""Networks that are late, out of order and forgetful: real processes behind a relay, recorded and judged."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.live.lab.relay import Relay, Weather
from tests.live.lab.supervisor import Cluster, delivered, multicast

from semcast.history import History

STACKS: dict[str, dict[str, Any]] = {
    "ring": {},
    "vsync": {"stack": "vsync", "minimum": 3, "order": "total"},
}
NAMES = "abc"


def play(
    folder: Path, stack: str, weather: Weather, *, later: Weather | None = None
) -> tuple[History, Relay]:
    """Three members send through the weather, and then through another one."""

    async def run() -> tuple[History, Relay]:
        settings = {"token_loss": "1s", "datagram": 1400, **STACKS[stack]}
        with Relay(NAMES, weather, seed=len(stack)) as relay:
            async with asyncio.timeout(90), Cluster(folder, **settings) as cluster:
                for name in NAMES:
                    await cluster.start(name, **relay.settings(name))
                await cluster.together()
                await cluster.traffic(rate=300, items=5)
                await cluster.flowing()
                if later is not None:
                    relay.weather = later
                    await cluster.flowing()
                await cluster.flowing()
                return await cluster.finish(), relay

    return asyncio.run(run())


@pytest.mark.parametrize("stack", STACKS)
def test_late_and_out_of_order(tmp_path: Path, stack: str) -> None:
    history, relay = play(tmp_path, stack, Weather(delay=(0.001, 0.02)))
    assert relay.overtaken > 0, "nothing was out of order"
    assert multicast(history) > 0


@pytest.mark.parametrize("stack", STACKS)
def test_lost_and_twice_and_out_of_order(tmp_path: Path, stack: str) -> None:
    history, relay = play(tmp_path, stack, Weather(delay=(0.0, 0.01), loss=0.05, duplication=0.1))
    assert relay.overtaken > 0, "nothing was out of order"
    assert all(delivered(history, name) > 0 for name in NAMES)


@pytest.mark.parametrize("stack", STACKS)
def test_a_way_that_becomes_long_in_one_direction(tmp_path: Path, stack: str) -> None:
    before, after = Weather(delay=(0.0, 0.002)), Weather(delay=(0.0, 0.002), slow_to="b", detour=0.06)
    history, _ = play(tmp_path, stack, before, later=after)
    assert all(delivered(history, name) > 0 for name in NAMES)
