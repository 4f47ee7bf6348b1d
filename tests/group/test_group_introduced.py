"""Without a meeting point, whoever is listed among one's peers introduces one to the others."""

import asyncio
from secrets import token_hex

import pytest

import semcast

DEADLINE = 20.0


async def sees(group: semcast.Group, count: int) -> set[str]:
    """The names in the first view of so many."""
    async for event in group:
        if isinstance(event, semcast.ViewChange) and len(event.view.members) == count:
            return {member.name for member in event.view.members}
    return set()


@pytest.mark.parametrize("listed", [0, 1])
def test_a_newcomer_gets_in_by_any_member(listed: int) -> None:
    """Whether the one it lists speaks for the others or not."""
    name = f"introduced-{token_hex(4)}"

    async def member(number: int, *peers: semcast.Group) -> semcast.Group:
        addresses = tuple(f"{host}:{port}" for host, port in (peer.address for peer in peers))
        return semcast.join(name, name=f"m{number}", multicast=False, bind="127.0.0.1:0", peers=addresses)

    async def test() -> None:
        async with asyncio.timeout(DEADLINE), await member(0) as first, await member(1, first) as second:
            await asyncio.gather(sees(first, 2), sees(second, 2))
            async with await member(2, (first, second)[listed]) as third:
                seen = await asyncio.gather(*(sees(each, 3) for each in (first, second, third)))
                assert seen == [{"m0", "m1", "m2"}] * 3

    asyncio.run(test())
