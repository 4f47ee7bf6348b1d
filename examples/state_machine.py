"""A replicated state machine: items that everybody may write and read, exactly, through the group.

`semcast.live` runs the pattern `StateMachine` in a group with total order. Updates of several members are the
same everywhere; `read` gives the value at one place of that order, and a member that is behind skips updates
that were overwritten before anybody read them.
"""

import asyncio
from typing import Any

import semcast
from semcast.patterns import ReadAnswer, StateMachine

SETTINGS: dict[str, Any] = {"minimum": 2, "uniform": True, "token_loss": "2s"}
GROUP = "example-valves"


async def read(member: "semcast.Live[StateMachine]", item: str) -> bytes | None:
    """The value of an item, at the place of this question in the order of all updates."""
    answer = await member.answer(member.pattern.read(item))
    assert isinstance(answer, ReadAnswer)
    return answer.value


async def main() -> None:
    """Three control rooms turn the same valves."""
    rooms = [semcast.live(GROUP, StateMachine, name=name, **SETTINGS) for name in ("north", "south", "west")]
    await asyncio.gather(*(room.__aenter__() for room in rooms))
    await asyncio.gather(*(room.group.wait_for(3) for room in rooms))
    for number in range(100):
        for room in rooms:
            room.pattern.update("valve", f"{number} by {room.group.member.name}".encode())
    await asyncio.gather(*(read(room, "valve") for room in rooms))  # each read comes after its own updates
    values = await asyncio.gather(*(read(room, "valve") for room in rooms))
    print(f"all three read the same after 300 updates: {values[0]!r}")
    assert values[0] is not None
    assert values == [values[0]] * 3
    async with semcast.live(GROUP, StateMachine, name="east", **SETTINGS) as late:
        print(f"east joined late and reads {await read(late, 'valve')!r}")
        assert await read(late, "valve") == values[0]
    await asyncio.gather(*(room.close() for room in rooms))


if __name__ == "__main__":
    asyncio.run(main())
