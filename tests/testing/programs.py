"""Ordinary programs, as one would write them for a live group."""

import asyncio

import semcast


async def chat(name: str, members: int, said: list[tuple[str, bytes]], seconds: float = 60) -> None:
    """Say something now and then, and note what everybody says."""
    async with semcast.join("chat", name=name) as group:
        await group.wait_for(members)

        async def speak() -> None:
            for number in range(10):
                await group.send(f"{name} {number}".encode())
                await asyncio.sleep(0.5)

        speaking = asyncio.create_task(speak())
        try:
            async with asyncio.timeout(seconds):
                async for event in group:
                    if isinstance(event, semcast.Message):
                        said.append((name, event.payload))
        except TimeoutError:
            await speaking


async def counter(name: str, rounds: int) -> dict[str, object]:
    """Share a dictionary."""
    async with semcast.ReplicatedDict.join("counts", name=name) as counts:
        for number in range(rounds):
            await counts.set(name, number)
            await asyncio.sleep(0.2)
        await asyncio.sleep(5)
        return dict(counts)


async def answering(name: str, seconds: float) -> None:
    """Answer calls."""
    async with semcast.join("calls", name=name) as group:
        group.on_call(lambda request: name.encode() + b":" + request.payload)
        await asyncio.sleep(seconds)


async def asking(members: int) -> list[bytes]:
    """Ask all others."""
    async with semcast.join("calls", name="asking") as group:
        await group.wait_for(members)
        answer = await group.call(b"who?", replies="all", timeout=10)
        return sorted(answer.replies.values())
