"""What programs do to a group in the middle of things: cancel, close, fail. Nothing is left behind."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from tests.live.lab.supervisor import eventually, judge

import semcast

PATIENCE = 20.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run, and see that every thread and task is gone afterwards."""
    before = set(threading.enumerate())

    async def watched() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        names = [thread.name for thread in threading.enumerate()]
        assert not [name for name in names if name.startswith("semcast")], names

    asyncio.run(watched())
    assert set(threading.enumerate()) <= before


def name() -> str:
    return f"program {token_hex(6)}"


@asynccontextmanager
async def pair(group: str, **settings: Any) -> AsyncIterator[tuple[semcast.Group, semcast.Group]]:
    """Two members that see each other."""
    async with (
        semcast.join(group, name="a", token_loss="300ms", **settings) as a,  # noqa: S106
        semcast.join(group, name="b", token_loss="300ms", **settings) as b,  # noqa: S106
    ):
        await asyncio.gather(until_view(a, 2), until_view(b, 2))
        yield a, b


async def until_view(group: semcast.Group, size: int) -> None:
    async for event in group:
        if isinstance(event, semcast.ViewChange) and len(event.view.members) == size:
            return


async def count(group: semcast.Group) -> int:
    """Messages until the group is closed."""
    got = 0
    async for event in group:
        got += isinstance(event, semcast.Message)
    return got


async def read_until(group: semcast.Group, last: bytes) -> list[bytes]:
    got: list[bytes] = []
    async for event in group:
        if isinstance(event, semcast.Message):
            got.append(event.payload)
            if event.payload == last:
                break
    return got


async def until_blocked(group: semcast.Group) -> "asyncio.Task[int]":
    """A task that waits in `send`, because `group` reads nothing and so holds everybody back."""
    sent = 0

    async def send() -> int:
        nonlocal sent
        while True:
            await group.send(b"more")
            sent += 1

    task = asyncio.create_task(send())
    seen = -1
    while seen != sent or group.try_send(b"room?") is not None:
        seen = sent
        await asyncio.sleep(0.1)
    assert not task.done()
    return task


SMALL = {"queue_messages": 8, "send_messages": 8, "window": 4}


def test_a_cancelled_send_is_not_sent_and_disturbs_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with pair(name(), record=str(tmp_path), **SMALL) as (a, b):
            waiting = await until_blocked(a)
            also_waiting = asyncio.create_task(a.send_many([b"x"] * 6))
            patient = asyncio.create_task(a.send(b"patient"))
            await asyncio.sleep(0)
            for task in (waiting, also_waiting):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert not patient.done()
            reading = asyncio.gather(read_until(a, b"the end"), read_until(b, b"the end"))
            await patient
            await a.send(b"the end")
            got = await reading
            assert got[0] == got[1]
            assert b"patient" in got[0]
            assert b"x" not in got[0]

    run(scenario())
    judge(tmp_path)


def test_several_that_wait_in_send_all_get_through() -> None:
    """One that needs little room must not take the wake-up from one that needs much."""

    async def scenario() -> None:
        async with pair(name(), **SMALL) as (a, b):
            waiting = await until_blocked(a)
            tasks = [asyncio.create_task(a.send_many([b"x"] * size)) for size in (8, 1, 7, 1, 5, 1)]
            await asyncio.sleep(0)
            waiting.cancel()
            reading = asyncio.create_task(count(a)), asyncio.create_task(count(b))
            await asyncio.gather(*tasks)
        await asyncio.gather(*reading)

    run(scenario())


def test_closing_ends_a_send_that_waits_and_an_iteration() -> None:
    async def scenario() -> None:
        async with pair(name(), **SMALL) as (a, _):
            waiting = await until_blocked(a)
            before = asyncio.get_running_loop().time()
            await a.close()
            assert asyncio.get_running_loop().time() - before < 5
            with pytest.raises(semcast.GroupClosedError, match="closed"):
                await waiting
            with pytest.raises(semcast.GroupClosedError):
                await a.send(b"too late")
            with pytest.raises(semcast.GroupClosedError):
                a.try_send(b"too late")
            await count(a)
            await a.close()  # again: nothing happens

    run(scenario())


def test_what_was_sent_just_before_the_end_arrives(tmp_path: Path) -> None:
    """`async with` that sends and goes: the driver's thread may not even have looked yet."""

    async def scenario() -> None:
        group = name()
        async with semcast.join(group, name="a", record=str(tmp_path), record_run="end") as a:
            reading = asyncio.create_task(count(a))
            for round_ in range(3):
                async with semcast.join(
                    group, name=f"b{round_}", record=str(tmp_path), record_run="end"
                ) as b:
                    await until_view(b, 2)
                    for _ in range(500):
                        assert b.try_send(b"last words", item="words" if round_ == 1 else None) is not None
                    await b.send_many([b"x" * 2000] * 1000, order="safe" if round_ == 2 else "agreed")
            await eventually(lambda: a.view is not None and len(a.view.members) == 1, "alone again")
        purged = a.stats().stack.purged_delivery
        assert await reading + purged == 3 * 1500
        assert a.stats().malformed == {}

    run(scenario())
    judge(tmp_path)


@pytest.mark.parametrize("leaves", ["by itself", "cancelled"])
def test_an_exception_in_user_code_leaves_nothing_behind(leaves: str) -> None:
    async def scenario() -> None:
        group = name()

        async def program() -> None:
            async with semcast.join(group, name="a") as a:
                await a.send(b"hello")
                async for event in a:
                    if isinstance(event, semcast.Message):
                        if leaves == "cancelled":
                            await asyncio.Event().wait()
                        raise ZeroDivisionError("a bug of the application")

        task = asyncio.create_task(program())
        if leaves == "cancelled":
            await asyncio.sleep(0.3)
            task.cancel()
        with pytest.raises((ZeroDivisionError, asyncio.CancelledError)):
            await task

    run(scenario())


def test_cancelled_while_it_joins_and_while_it_closes() -> None:
    async def scenario() -> None:
        for turns in (1, 2, 5, 20):
            joining = asyncio.create_task(semcast.join(name()).__aenter__())
            for _ in range(turns):
                await asyncio.sleep(0)
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
        for turns in (1, 2, 3):
            group = await semcast.join(name()).__aenter__()
            closing = asyncio.create_task(group.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await eventually(
                lambda: not [each for each in asyncio.all_tasks() if each is not asyncio.current_task()],
                "no tasks",
            )

        def ours() -> list[str]:
            return [thread.name for thread in threading.enumerate() if thread.name.startswith("semcast")]

        await eventually(lambda: not ours(), "the threads ended")

    run(scenario())


def test_a_dictionary_whose_program_fails_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async def program() -> None:
            async with semcast.ReplicatedDict.join(name()) as table:
                await table.set("x", 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await program()

    run(scenario())


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"payload": b"x", "item": ""}, ValueError),
        ({"payload": b"x", "item": "x" * 300}, ValueError),
        ({"payload": b"x", "item": "\ud800"}, ValueError),
        ({"payload": b"x", "item": "i", "obsoletes": []}, ValueError),
        ({"payload": b"x", "obsoletes": [semcast.MessageId(semcast.MemberId("a"), 0)]}, ValueError),
        ({"payload": b"x", "obsoletes": [semcast.MessageId(semcast.MemberId("a"), 1)] * 2000}, ValueError),
        ({"payload": b"x", "order": "causal"}, semcast.ConfigurationError),
        ({"payload": "text"}, TypeError),
        ({"payload": bytearray(b"may change")}, TypeError),
        ({"payload": bytes((1 << 24) + 1)}, ValueError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(value),
)
def test_what_cannot_be_sent_is_refused_and_the_member_lives(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    async def scenario() -> None:
        async with semcast.join(name()) as a:
            with pytest.raises(error):
                await a.send(**wrong)
            with pytest.raises(error):
                a.try_send(**wrong)
            await a.send(b"right")
            async for event in a:
                if isinstance(event, semcast.Message):
                    assert event.payload == b"right"
                    break

    run(scenario())


def test_an_update_that_was_refused_replaces_nothing() -> None:
    """The message that got its number instead must not become obsolete in its place."""

    async def scenario() -> None:
        async with semcast.join(name()) as a:
            with pytest.raises(ValueError, match="bytes"):
                await a.send(bytes((1 << 24) + 1), items=["x", "y"])
            important = await a.send(b"important")
            await a.send(b"1", items=["x", "y"])
            async for event in a:
                if isinstance(event, semcast.Message) and event.annotation is not None:
                    assert important not in getattr(event.annotation, "ids", ())
                    break

    run(scenario())


def test_a_loop_can_be_left_and_taken_up_again() -> None:
    async def scenario() -> None:
        async with semcast.join(name()) as a:
            await a.send_many([b"%d" % number for number in range(100)])
            got: list[bytes] = []
            while len(got) < 100:
                async for event in a:
                    if isinstance(event, semcast.Message):
                        got.append(event.payload)
                        break
            assert got == [b"%d" % number for number in range(100)]

    run(scenario())


def test_statistics_can_be_asked_for_at_any_time() -> None:
    """While the driver's thread changes what is being counted."""

    async def scenario() -> None:
        async with pair(name(), queue_messages=64) as (a, b):
            reading = asyncio.create_task(count(b))
            slow = asyncio.create_task(_read_slowly(a))
            for number in range(3000):
                await b.send(b"%d" % number, item=f"item {number % 500}")
                for _ in range(3):
                    assert a.stats().buffered >= 0
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)
        await reading

    run(scenario())


async def _read_slowly(group: semcast.Group) -> None:
    async for _ in group.batches():
        await asyncio.sleep(0.001)
