"""A program that only publishes: it never iterates, so it says that it wants to be given nothing."""

import asyncio

import semcast

READINGS = 5_000


async def publish(name: str, listening: asyncio.Event) -> None:
    """Send readings. With `receive=False` nothing is kept for this program, and `view` is the latest."""
    async with semcast.join("example-publisher", name=name, receive=False) as group:
        await listening.wait()
        while group.view is None or len(group.view.members) < 2:
            await asyncio.sleep(0.01)
        for number in range(READINGS):
            await group.send(f"{number % 50}: {number}".encode(), item=f"sensor {number % 50}")
        await group.send(b"the end")


async def subscribe(listening: asyncio.Event) -> int:
    """Read until the publisher is done."""
    heard = 0
    async with semcast.join("example-publisher", name="subscriber") as group:
        listening.set()
        async for event in group:
            if isinstance(event, semcast.Message):
                heard += 1
                if event.payload == b"the end":
                    break
        return heard + group.stats().stack.purged_delivery


async def main() -> None:
    """One of each."""
    listening = asyncio.Event()
    _, accounted = await asyncio.gather(publish("sensors", listening), subscribe(listening))
    assert accounted == READINGS + 1
    print(f"{READINGS} readings were heard, or replaced by newer ones before they were read")


if __name__ == "__main__":
    asyncio.run(main())
