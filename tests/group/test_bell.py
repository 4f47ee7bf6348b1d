"""A bell: who waits goes on in the very call that rings, and can be cancelled as with any future."""

import asyncio

import pytest

from semcast.group.bell import Bell


async def waiting(bell: Bell, story: list[str], name: str = "task") -> None:
    await bell.wait()
    story.append(name)


async def in_a_callback(bell: Bell, story: list[str]) -> None:
    """Ring as the loop does, and note when that is over."""
    rung = asyncio.Event()

    def ring() -> None:
        bell.ring()
        story.append("rung")
        rung.set()

    asyncio.get_running_loop().call_soon(ring)
    await rung.wait()


def test_who_waits_goes_on_before_the_call_returns() -> None:
    async def program() -> None:
        bell, story = Bell(), list[str]()
        task = asyncio.create_task(waiting(bell, story))
        await asyncio.sleep(0)
        await in_a_callback(bell, story)
        assert story == ["task", "rung"]
        await task

    asyncio.run(program())


def test_who_waits_again_waits_for_the_next_time() -> None:
    async def program() -> None:
        bell, story = Bell(), list[str]()

        async def waits_twice() -> None:
            for _ in range(2):
                bell.clear()
                await waiting(bell, story)

        task = asyncio.create_task(waits_twice())
        await asyncio.sleep(0)
        await in_a_callback(bell, story)
        assert story == ["task", "rung"]
        await in_a_callback(bell, story)
        assert story == ["task", "rung", "task", "rung"]
        await task

    asyncio.run(program())


def test_a_task_rings_for_the_next_round() -> None:
    async def program() -> None:
        bell, story = Bell(), list[str]()
        tasks = [asyncio.create_task(waiting(bell, story, name)) for name in "ab"]
        await asyncio.sleep(0)
        bell.ring_soon()
        story.append("rung")
        await asyncio.gather(*tasks)
        assert story == ["rung", "a", "b"]

    asyncio.run(program())


def test_it_stays_rung_until_somebody_clears_it() -> None:
    async def program() -> None:
        bell = Bell()
        bell.ring_soon()
        await bell.wait()
        bell.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await bell.wait()

    asyncio.run(program())


def test_who_is_cancelled_waits_no_more_and_hears_nothing() -> None:
    async def program() -> None:
        bell, story = Bell(), list[str]()
        task = asyncio.create_task(waiting(bell, story))
        await asyncio.sleep(0)
        task.cancel()
        bell.ring_soon()
        with pytest.raises(asyncio.CancelledError):
            await task
        await in_a_callback(bell, story)
        assert story == ["rung"]

    asyncio.run(program())


def test_who_is_cancelled_after_it_rang_is_cancelled_where_it_waits_next() -> None:
    async def program() -> None:
        bell, story = Bell(), list[str]()

        async def waits_twice() -> None:
            await waiting(bell, story)
            bell.clear()
            await bell.wait()

        task = asyncio.create_task(waits_twice())
        await asyncio.sleep(0)
        bell.ring_soon()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert story in ([], ["task"])

    asyncio.run(program())
