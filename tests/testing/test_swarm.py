"""`@swarm`: a world for each seed, and a failing seed that says how to see it again."""

import asyncio

import pytest

import semcast
from semcast.testing import World, WorldError, swarm, trouble

SEEN: list[int] = []


@swarm(seeds=3, hosts=["x", "y"])
def test_each_seed_has_a_world_of_its_own(world: World, tmp_path: object) -> None:
    assert tmp_path is not None, "fixtures come as they always do"
    assert world.hosts == ("x", "y")
    assert world.now == 0
    SEEN.append(world.seed)


def test_they_were_all_there() -> None:
    assert SEEN[-3:] == [0, 1, 2]


@swarm(seeds=range(40, 44))
def test_members_agree_whatever_befalls_them(world: World) -> None:
    async def member(name: str) -> None:
        async with semcast.join("g", name=name) as group:

            async def speak() -> None:
                for number in range(100):
                    await group.send(b"%d" % number, item="x")
                    await asyncio.sleep(0.2)

            speaking = asyncio.create_task(speak())
            async for _ in group:
                pass
            await speaking

    for host in world.hosts:
        world.start(host, member, host)
    trouble(world, 20)
    world.sleep(30)
    world.check()


def test_a_failing_seed_says_how_to_run_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    @swarm(seeds=10)
    def fragile(world: World) -> None:
        ran.append(world.seed)
        assert world.seed != 3, "broken"

    with pytest.raises(AssertionError, match="broken") as caught:
        fragile()
    assert ran == [0, 1, 2, 3]
    [note] = caught.value.__notes__
    assert note.startswith(
        "seed 3 failed; run it alone: SEMCAST_TEST_SEED=3 pytest tests/testing/test_swarm.py::"
    )
    monkeypatch.setenv("SEMCAST_TEST_SEED", "7")
    fragile()
    assert ran[4:] == [7]
    monkeypatch.setenv("SEMCAST_TEST_SEED", "many")
    with pytest.raises(WorldError, match="number of a seed"):
        fragile()


def test_what_is_no_test_of_a_world_is_refused() -> None:
    def none() -> None: ...

    async def later(world: World) -> None: ...

    with pytest.raises(WorldError, match="takes no `world`"):
        swarm()(none)
    with pytest.raises(WorldError, match="is async"):
        swarm()(later)  # type: ignore[arg-type]
    with pytest.raises(WorldError, match="without seeds"):
        swarm(seeds=0)
