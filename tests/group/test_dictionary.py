"""A replicated dictionary over real sockets, in one process."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

import semcast
from semcast.group.dictionary import Entry


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"dictionary-{uuid4().hex[:8]}"), 30))


def test_a_joiner_gets_the_state() -> None:
    async def test(name: str) -> None:
        async with semcast.ReplicatedDict.join(name, name="a") as first:
            await first.set("x", 1)
            await first.set("y", [1, "two", None])
            async with semcast.ReplicatedDict.join(name, name="b") as second:
                await second.ready()
                assert dict(second) == {"x": 1, "y": [1, "two", None]}

    run(test)


def test_assignments_reach_everybody_and_deletions_too() -> None:
    async def test(name: str) -> None:
        async with (
            semcast.ReplicatedDict.join(name, name="a") as a,
            semcast.ReplicatedDict.join(name, name="b") as b,
        ):
            await b.ready()
            await a.set("x", 1)
            await b.wait_until(lambda seen: seen.get("x") == 1)
            await b.delete("x")
            await a.wait_until(lambda seen: "x" not in seen)
            assert len(a) == len(b) == 0
            with pytest.raises(KeyError):
                await a.delete("x")

    run(test)


def test_a_transaction_is_seen_as_a_whole_or_not_at_all() -> None:
    async def test(name: str) -> None:
        async with (
            semcast.ReplicatedDict.join(name, name="a") as a,
            semcast.ReplicatedDict.join(name, name="b") as b,
        ):
            await b.ready()
            halves = []
            for number in range(50):
                async with a.transaction() as both:
                    both["left"] = both["right"] = number
                await asyncio.sleep(0)
                halves.append((b.get("left"), b.get("right")))
            await b.wait_until(lambda seen: seen.get("left") == 49)
            assert all(left == right for left, right in halves)
            with pytest.raises(KeyError):
                await give_up(a)
            assert a["left"] == 49

    async def give_up(table: semcast.ReplicatedDict) -> None:
        async with table.transaction() as never:
            never["left"] = table["nothing of that name"]

    run(test)


def test_members_that_were_apart_agree_again() -> None:
    """Two groups of one that find each other: the later assignment of each key wins."""

    async def test(name: str) -> None:
        a = semcast.ReplicatedDict.join(name, name="a", multicast=False)
        async with a:
            await a.set("both", "early")
            await a.set("a", 1)
            where = ":".join(map(str, a.group.address))
            async with semcast.ReplicatedDict.join(name, name="b", multicast=False) as b:
                await b.set("both", "late")
                await b.set("b", 2)
                async with semcast.ReplicatedDict.join(
                    name, name="c", multicast=False, peers=[where, ":".join(map(str, b.group.address))]
                ) as c:
                    expected = {"both": "late", "a": 1, "b": 2}
                    await c.wait_until(lambda seen: dict(seen) == expected)
                    await a.wait_until(lambda seen: dict(seen) == expected)
                    await b.wait_until(lambda seen: dict(seen) == expected)

    run(test)


def test_the_merge_function_can_be_replaced() -> None:
    def total(_key: str, here: Entry, came: Entry) -> Entry:
        return max(here, came, key=lambda entry: (entry.value, entry.stamp))

    async def test(name: str) -> None:
        async with (
            semcast.ReplicatedDict.join(name, merge=total, name="a") as a,
            semcast.ReplicatedDict.join(name, merge=total, name="b") as b,
        ):
            await b.ready()
            await a.set("highest", 10)
            await b.wait_until(lambda seen: seen.get("highest") == 10)
            await b.set("highest", 7)
            await b.set("done", 1)
            await a.wait_until(lambda seen: seen.get("done") == 1)
            assert a["highest"] == b["highest"] == 10

    run(test)


def test_what_cannot_be_sent_is_not_here_either() -> None:
    """It was, and the state for the next who joined could not be written: nobody read any more."""

    async def test(name: str) -> None:
        async with semcast.ReplicatedDict.join(name, name="a") as a:
            await a.set("x", 1)
            with pytest.raises(TypeError):
                await a.set("y", object())
            with pytest.raises(ValueError, match="payload of"):
                await a.set("z", bytes(1 << 24))
            assert dict(a) == {"x": 1}
            async with semcast.ReplicatedDict.join(name, name="b") as b:
                await b.ready()
                assert dict(b) == {"x": 1}

    run(test)


def test_a_merge_that_raises_makes_its_member_leave(caplog: pytest.LogCaptureFixture) -> None:
    def fussy(_key: str, _here: Entry, _came: Entry) -> Entry:
        raise ZeroDivisionError("a bug of the application")

    async def test(name: str) -> None:
        async with semcast.ReplicatedDict.join(name, name="a") as a:
            await a.set("x", 1)
            b = await semcast.ReplicatedDict.join(name, fussy, name="b").__aenter__()
            await b.group.wait_for(2)
            await a.wait_until(lambda _: len(a.group.members()) == 2)
            await a.set("x", 2)
            await a.set("x", 3)
            with pytest.raises(ZeroDivisionError):
                await b.wait_until(lambda seen: seen.get("x") == 3)
            while len(a.group.members()) > 1:
                await asyncio.sleep(0.05)
            with pytest.raises(ZeroDivisionError):
                await b.__aexit__(None, None, None)

    run(test)
    assert "its dictionary failed: ZeroDivisionError" in caplog.text
