"""A group whose members send to the meeting point what is for everybody."""

import asyncio
from contextlib import AsyncExitStack
from secrets import token_hex
from typing import Any

import pytest

import semcast

COUNT = 3000
PATIENCE = 30.0


async def read(group: semcast.Group, *, upto: int) -> list[bytes]:
    got: list[bytes] = []
    async for event in group:
        if isinstance(event, semcast.Message):
            got.append(event.payload)
            if len(got) == upto:
                return got
    return got


SETTINGS: dict[str, dict[str, Any]] = {"ring": {}, "vsync": {"stack": "vsync", "minimum": 3}}


async def exchange(stack: str) -> tuple[list[list[bytes]], int]:
    """All send; returns what each got, and how many datagrams the first sent."""
    settings = {"fanout": "multicast", "datagram": 1400, "token_loss": "2s", **SETTINGS[stack]}
    name = f"fanout {token_hex(4)}"
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as opened:
        joins = [semcast.join(name, name=each, **settings) for each in "abc"]
        groups = await asyncio.gather(*map(opened.enter_async_context, joins))
        readers = [asyncio.create_task(read(group, upto=3 * COUNT)) for group in groups]
        while not all(map(ready, groups)):
            await asyncio.sleep(0.05)
        before = groups[0].stats().network.datagrams_out
        for group in groups:
            await group.send_many([group.member.name.encode() + bytes(500)] * COUNT)
        found = await asyncio.gather(*readers)
        return found, groups[0].stats().network.datagrams_out - before


def ready(group: semcast.Group) -> bool:
    """Whether it is with the others, and hears them at the meeting point."""
    return group.view is not None and len(group.view.members) == 3 and group._hub._together


@pytest.mark.parametrize("stack", SETTINGS)
def test_everybody_gets_everything(stack: str) -> None:
    found, datagrams = asyncio.run(exchange(stack))
    assert all(sorted(got) == sorted(found[0]) for got in found)
    if stack == "ring":
        assert found[1] == found[2] == found[0]
    # Two messages a datagram: to each of the others it would have taken twice as many.
    assert COUNT // 2 <= datagrams < COUNT


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"fanout": "broadcast"}, "choose unicast or multicast"),
        ({"fanout": "multicast", "multicast": False}, "needs multicast = true"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], says: str) -> None:
    async def join() -> None:
        semcast.join("fanout", **settings)

    with pytest.raises(semcast.ConfigurationError, match=says):
        asyncio.run(join())
