"""Whoever watches a live group sees its members, and they do not see who watches."""

import asyncio
import socket
import time
from secrets import token_hex

import pytest

import semcast
from semcast.group.observing import observe
from semcast.group.settings import resolve
from semcast.net.observer import Observer, Sighting


def sample(observer: Observer, count: int) -> list[Sighting]:
    """Listen until so many members have spoken twice."""
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline:
        found = observer.members()
        if len(found) == count and all(each.before is not None for each in found):
            return found
        observer.wait(0.1)
    pytest.fail(f"only heard {observer.members()}")


async def watched(name: str, groups: list[semcast.Group], **settings: object) -> list[Sighting]:
    await asyncio.gather(*(group.__aenter__() for group in groups))
    try:
        with observe(name, resolve(settings)) as observer:
            found = await asyncio.to_thread(sample, observer, len(groups))
        for group in groups:
            stats = group.stats()
            assert stats.stack.malformed == 0, "a status is nothing for a stack"
            assert stats.malformed == {}
        return found
    finally:
        await asyncio.gather(*(group.close() for group in groups))


def test_the_members_of_a_ring() -> None:
    async def scenario() -> list[Sighting]:
        name = f"test-{token_hex(6)}"
        return await watched(name, [semcast.join(name, name="a"), semcast.join(name, name="b")])

    found = asyncio.run(scenario())
    assert [each.member.name for each in found] == ["a", "b"]
    assert {each.status.members for each in found} == {2}
    assert found[0].status.representative == found[1].status.representative
    assert all(each.status.uptime > 0 for each in found)


def test_the_members_of_a_fixed_list() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
    ):
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        members = tuple(
            f"{name}=127.0.0.1:{each.getsockname()[1]}" for name, each in (("a", one), ("b", two))
        )

    async def scenario() -> list[Sighting]:
        name = f"test-{token_hex(6)}"
        groups = [semcast.join(name, name=who, stack="s-rm", members=members) for who in ("a", "b")]
        return await watched(name, groups, stack="s-rm", members=members)

    found = asyncio.run(scenario())
    assert [each.member.name for each in found] == ["a", "b"]
    assert {(each.status.view, each.status.representative) for each in found} == {(1, None)}
