"""A program that gives up while it joins is cancelled, and not let in after all."""

import asyncio
import os

import pytest

import semcast


@pytest.mark.parametrize("turns", range(4))
def test_a_cancellation_at_the_moment_in_which_the_group_is_there_is_not_swallowed(turns: int) -> None:
    async def scenario() -> None:
        group = semcast.join(f"cancelled {os.getpid()}", stack="ring")
        entering = asyncio.create_task(group.__aenter__())
        await asyncio.sleep(0.01)
        group._settled.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        if not entering.done():
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
        await group.close()

    asyncio.run(scenario())
