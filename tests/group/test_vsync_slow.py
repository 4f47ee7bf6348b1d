"""What becomes of a member whose application does not follow, as programs set it."""

import asyncio
from typing import Any

import pytest
from tests.group.test_vsync_group import members, run, until_view

import semcast
from semcast.group.families.vsync import vsync_settings
from semcast.group.settings import resolve
from semcast.obsolescence import Purging


async def send_until(group: semcast.Group, stop: asyncio.Task[Any]) -> None:
    """As much as flow control allows."""
    while not stop.done():
        if group.try_send(b"x" * 100) is None:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    "limit", [{"expel_after": "300ms"}, {"expel_when_full": True}], ids=lambda each: next(iter(each))
)
def test_who_does_not_follow_is_put_out_and_the_others_go_on(limit: dict[str, Any]) -> None:
    async def test(name: str) -> None:
        async with members(name, "abc", buffer_messages=64, rejoin=False, **limit) as (a, b, c):
            without = asyncio.create_task(until_view(a, "ab"))
            also = asyncio.create_task(until_view(b, "ab"))
            await send_until(a, without)
            change, _ = await asyncio.gather(without, also)
            assert change.left == (c.member,)
            assert change.failed == ()
            with pytest.raises(semcast.GroupClosedError, match="too slow"):
                async for _ in c:
                    pass

    run(test)


def test_who_cannot_follow_leaves_by_itself_if_that_is_its_policy() -> None:
    async def test(name: str) -> None:
        slow: dict[str, Any] = {"stack": "vsync", "token_loss": "2s", "buffer_messages": 64}
        async with (
            members(name, "ab", buffer_messages=64) as (a, b),
            semcast.join(name, name="c", policy="leave", **slow) as c,
        ):
            await asyncio.gather(*(until_view(each, "abc") for each in (a, b, c)))
            without = asyncio.create_task(until_view(a, "ab"))
            also = asyncio.create_task(until_view(b, "ab"))
            await send_until(a, without)
            change, _ = await asyncio.gather(without, also)
            assert [member.name for member in change.left] == ["c"]
            with pytest.raises(semcast.GroupClosedError, match="its application is too slow"):
                async for _ in c:
                    pass

    run(test)


def test_settings_of_a_program_reach_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMCAST_EXPEL_WHEN_FULL", "yes")
    chosen = vsync_settings(
        resolve({"stack": "vsync", "expel_after": "2s", "policy": "block"}), 1000, state=False
    )
    assert (chosen.expel_after, chosen.expel_when_full) == (2_000_000_000, True)
    assert chosen.purging is Purging.OFF
    purging = vsync_settings(resolve({"stack": "vsync"}), 1000, state=False)
    assert purging.purging is Purging.LAZY
    assert purging.leave_after == purging.expel_after == 0
