"""A game world: positions are items, and who joins late gets the world as it is."""

import asyncio
from random import Random

import semcast

MOVES = 50


async def player(name: str, start: asyncio.Event, done: asyncio.Barrier) -> dict[str, list[int]]:
    """Walk about; returns the world as this player sees it in the end."""
    rng = Random(name)
    async with semcast.ReplicatedDict.join("example-game", name=name) as world:
        await world.ready()
        await start.wait()
        x = y = 0
        for _ in range(MOVES):
            x, y = x + rng.choice((-1, 0, 1)), y + rng.choice((-1, 0, 1))
            await world.set(f"position of {name}", [x, y])
            await asyncio.sleep(0.002)
        await world.set(f"finished {name}", True)
        await world.wait_until(lambda seen: sum(key.startswith("finished") for key in seen) == 3)
        seen = {key: value for key, value in world.items() if key.startswith("position")}
        await done.wait()
        return seen


async def main() -> None:
    """Two players start; a third joins in the middle of the game."""
    start, done = asyncio.Event(), asyncio.Barrier(3)
    early = [asyncio.create_task(player(name, start, done)) for name in ("ann", "bob")]
    start.set()
    await asyncio.sleep(0.2)
    late = asyncio.create_task(player("cleo", start, done))
    worlds = await asyncio.gather(*early, late)
    assert worlds[0] == worlds[1] == worlds[2]
    for who, where in sorted(worlds[0].items()):
        print(f"{who}: {where}")
    print("all three see the same world")


if __name__ == "__main__":
    asyncio.run(main())
