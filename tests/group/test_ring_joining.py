"""Live rings: who is let in, who is refused and told why, and when it begins."""

import asyncio
from uuid import uuid4

import pytest

import semcast


@pytest.fixture
def group() -> str:
    return f"joining-{uuid4().hex[:8]}"


async def members(group: semcast.Group, count: int) -> None:
    """Wait for a view of so many."""
    async with asyncio.timeout(20):
        async for event in group:
            if isinstance(event, semcast.ViewChange) and len(event.view.members) == count:
                return


def test_a_newcomer_with_another_window_is_refused_and_told_which(group: str) -> None:
    async def main() -> None:
        async with semcast.join(group, name="a"), semcast.join(group, name="b") as b:
            await members(b, 2)
            with pytest.raises(semcast.GroupError, match=r"settings are not those of .*: window is 64 here"):
                async with asyncio.timeout(20), semcast.join(group, name="c", window=64):
                    raise AssertionError("it was let in")
            async with semcast.join(group, name="d"):
                await members(b, 3)

    asyncio.run(main())


def test_a_member_waits_until_enough_are_there(group: str) -> None:
    async def main() -> None:
        inside = asyncio.Event()

        async def first() -> None:
            async with semcast.join(group, name="a", minimum=2) as a:
                inside.set()
                await a.send(b"to whoever is there")
                await asyncio.sleep(0.2)

        task = asyncio.create_task(first())
        await asyncio.sleep(1)
        assert not inside.is_set()
        async with asyncio.timeout(20), semcast.join(group, name="b", minimum=2) as b:
            async for event in b:
                if isinstance(event, semcast.Message):
                    assert event.payload == b"to whoever is there"
                    break
        await task

    asyncio.run(main())


def test_names_are_bounded(group: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match="name of 65 bytes: at most 64"):
        semcast.join(group, name="x" * 65)
