"""Programs that only publish, never read, stop, close, or wait: nobody stands still without being told."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

import pytest

import semcast
from semcast import blocking
from semcast.group.settings import parse_size

SMALL: dict[str, Any] = {"queue_messages": 8, "send_messages": 8, "window": 4}
STACKS: list[dict[str, Any]] = [{"stack": "ring"}, {"stack": "vsync"}]


def run(test: Callable[[str], Awaitable[None]]) -> None:
    async def watched() -> None:
        async with asyncio.timeout(30):
            await test(f"flow {token_hex(6)}")

    asyncio.run(watched())


def stack(settings: dict[str, Any]) -> str:
    return str(settings["stack"])


@asynccontextmanager
async def members(group: str, names: str, **settings: Any) -> AsyncIterator[list[semcast.Group]]:
    """Members that are in one view, whether they read or not."""
    found: list[semcast.Group] = []
    try:
        for name in names:
            own: dict[str, Any] = {"bootstrap": name == names[0]} if settings.get("stack") == "vsync" else {}
            found.append(await semcast.join(group, name=name, **own, **settings).__aenter__())
        await together(found)
        yield found
    finally:
        for each in reversed(found):
            await each.close()


async def together(groups: list[semcast.Group]) -> None:
    while any(len(each._seat.members()) != len(groups) for each in groups):
        await asyncio.sleep(0.02)


async def count(group: semcast.Group, most: int) -> int:
    got = 0
    async for event in group:
        got += isinstance(event, semcast.Message)
        if got == most:
            break
    return got


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_a_program_that_only_publishes_goes_on_for_ever(settings: dict[str, Any]) -> None:
    """12,288 messages were all that a lone member sent, and 51,434 with a subscriber."""

    async def test(name: str) -> None:
        async with members(name, "ab", **settings) as (a, b):
            reading = asyncio.create_task(count(b, 60_000))
            for number in range(60_000):
                await a.send(b"%d" % number)
            assert await reading == 60_000

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_nor_does_a_lone_one_stop(settings: dict[str, Any]) -> None:
    async def test(name: str) -> None:
        async with members(name, "a", **settings) as (a,):
            for number in range(20_000):
                await a.send(b"%d" % number)
            assert a.stats().skipped > 0

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_what_had_to_wait_leaves_together_with_what_follows(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message for which a program had waited left as a call of its own, in a frame of its own."""

    async def test(name: str) -> None:
        async with members(name, "a", **settings) as (a,):
            alone: list[Any] = []
            monkeypatch.setattr(a._room, "open_for_one", lambda _payload: False)  # as where others go first
            monkeypatch.setattr(a._drafts, "_hand_over", alone.append)
            first = await a.send(b"1")
            second = a.try_send(b"2")
            assert second is not None
            assert (second.seq - first.seq, alone) == (1, [])
            assert await count(a, 2) == 2

    run(test)


def test_a_blocking_one_does_not_stop_either() -> None:
    with blocking.join(f"flow {token_hex(6)}") as group:
        for number in range(12_000):
            group.send(b"%d" % number, timeout=5)
        first = next(group.events(timeout=5))
        assert isinstance(first, semcast.Skipped)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_an_idle_member_that_never_reads_stops_nobody(settings: dict[str, Any]) -> None:
    async def test(name: str) -> None:
        async with members(name, "pri", **settings, **SMALL) as (p, r, idle):
            readers = [asyncio.create_task(count(each, 5_000)) for each in (p, r)]
            for number in range(5_000):
                await p.send(b"%d" % number)
            assert await asyncio.gather(*readers) == [5_000, 5_000]
            assert idle.stats().skipped > 0

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_who_iterates_late_is_told_what_it_missed_and_the_view(settings: dict[str, Any]) -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", **settings, **SMALL) as (a, b):
            reading = asyncio.create_task(count(a, 101))
            for number in range(100):
                await a.send(b"%d" % number)
            while not b.stats().skipped:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # so that what is under way comes before b asks
            heard: list[object] = []
            async for event in b:
                if not heard:
                    await a.send(b"last")
                heard.append(event)
                if isinstance(event, semcast.Message) and event.payload == b"last":
                    break
            skipped, view = heard[:2]
            assert isinstance(skipped, semcast.Skipped)
            assert isinstance(view, semcast.ViewChange)
            assert {member.name for member in view.view.members} == {"a", "b"}
            assert b.view == view.view
            assert skipped.count + sum(isinstance(each, semcast.Message) for each in heard) == 101
            assert await reading == 101

    run(test)


def test_who_has_begun_to_iterate_is_not_skipped_while_others_run() -> None:
    """The reading task was there first, and many sends ran before it came to its first event."""

    async def test(group: str) -> None:
        async with semcast.join(group, **SMALL) as a:
            events: list[semcast.GroupEvent] = []

            async def read() -> None:
                async for event in a:
                    events.append(event)
                    if len(events) == 18:
                        break

            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            for _ in range(5):  # the loop of this program is kept busy, for longer than a queue may be full
                while a.try_send(b"x") is not None:
                    pass
                time.sleep(0.1)
            sending = asyncio.create_task(a.send_many([b"x"] * 17))
            await asyncio.gather(reading, sending)
            assert not [event for event in events if isinstance(event, semcast.Skipped)]
            assert a.stats().skipped == 0

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_changes_of_view_do_not_silence_who_never_iterates(settings: dict[str, Any]) -> None:
    """It fell mute at the second change: `send` returned, and nothing left."""

    async def test(name: str) -> None:
        async with members(name, "p", **settings) as (p,):
            for number in range(4):
                async with semcast.join(name, name=f"q{number}", **settings) as q:
                    await together([p, q])
                    await p.send(b"%d" % number)
                    async for event in q:
                        if isinstance(event, semcast.Message):
                            assert event.payload == b"%d" % number
                            break

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_who_wants_nothing_is_given_nothing(settings: dict[str, Any]) -> None:
    async def test(name: str) -> None:
        async with members(name, "a", **settings) as (a,):
            own = {"stack": settings["stack"], "receive": False}
            async with semcast.join(name, name="b", **own) as b:
                await together([a, b])
                assert b.view is not None
                assert {member.name for member in b.view.members} == {"a", "b"}
                await b.send(b"published")
                async for event in a:
                    if isinstance(event, semcast.Message):
                        assert event.payload == b"published"
                        break
                with pytest.raises(semcast.ConfigurationError, match="receive=False"):
                    await anext(aiter(b))
                assert b.stats().skipped == 0

    run(test)


def test_who_wants_nothing_has_no_state() -> None:
    class Hooks:
        def export(self) -> bytes:
            return b""

        def restore(self, state: bytes) -> None: ...

    async def test(name: str) -> None:
        with pytest.raises(semcast.ConfigurationError, match="receive"):
            semcast.join(name, stack="vsync", bootstrap=True, receive=False, state=Hooks())

    run(test)


async def for_ever(group: semcast.Group) -> None:
    while True:
        await group.send(b"x", timeout=0.3)


async def stopped(group: semcast.Group) -> None:
    """It begins to read, and stops."""
    async for _ in group:
        break


def test_a_send_waits_no_longer_than_it_is_told_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", policy="block", **SMALL) as (a, b):
            await stopped(b)
            reading = asyncio.create_task(count(a, 1 << 30))
            with pytest.raises(semcast.SendTimeoutError) as caught:
                await for_ever(a)
            assert isinstance(caught.value, TimeoutError)
            held = a.stats().held_back
            assert held is not None
            assert held.by is not None
            assert held.by.name == "b"
            assert str(held.by) in str(caught.value)
            with pytest.raises(semcast.SendTimeoutError) as portion:
                await a.send_many([b"x"] * 100, timeout=0.1)
            assert portion.value.accepted == 0
            while not any(each.name == "semcast.flow" for each in caplog.records):
                await asyncio.sleep(0.05)
            reading.cancel()

    with caplog.at_level(logging.INFO, "semcast.flow"):
        run(test)
    assert any("held back" in each.getMessage() and "b" in each.getMessage() for each in caplog.records)


def test_a_large_call_is_handed_over_in_portions() -> None:
    async def test(name: str) -> None:
        async with members(name, "a", **SMALL) as (a,):
            reading = asyncio.create_task(count(a, 2_000))
            await a.send_many([b"x"] * 1_000)
            await a.send_items([(f"item {number}", b"x") for number in range(1_000)])
            assert await reading == 2_000

    run(test)


def test_what_was_accepted_of_a_large_call_is_said() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", policy="block", **SMALL) as (a, b):
            await asyncio.gather(stopped(a), stopped(b))
            with pytest.raises(semcast.SendTimeoutError) as caught:
                await a.send_many([b"x"] * 10_000, timeout=0.5)
            assert 0 < caught.value.accepted < 10_000
            assert caught.value.accepted % SMALL["send_messages"] == 0
            reading = [asyncio.create_task(count(each, 1 << 30)) for each in (a, b)]
            assert (await a.send(b"y")).seq == caught.value.accepted + 1, "so many were handed over"
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    run(test)


@pytest.mark.parametrize("settings", STACKS, ids=stack)
def test_large_messages_fill_queues_by_their_bytes(settings: dict[str, Any]) -> None:
    """A reader that stopped has little of them, so has the sender, and one larger than all goes through."""
    small = {"queue_bytes": "100kB", "send_bytes": "100kB", "reserve": "0", "policy": "block"}

    async def test(name: str) -> None:
        async with members(name, "ab", **small, **settings) as (a, b):
            reading = asyncio.create_task(count(a, 1 << 30))
            await stopped(b)
            with pytest.raises(semcast.SendTimeoutError) as caught:
                await a.send_many([bytes(50_000)] * 500, timeout=1)
            sent = caught.value.accepted
            assert 0 < sent < 250, "what waits on both sides, and what is under way"
            assert a.stats().waiting_to_send <= 3
            await asyncio.gather(count(b, sent + 1), a.send_many([bytes(1_000_000)], timeout=20))
            reading.cancel()

    run(test)


def test_a_tight_loop_of_sends_lets_its_own_reader_run() -> None:
    async def test(name: str) -> None:
        async with members(name, "a", send_messages=1 << 30) as (a,):  # it never has to wait
            got = 0

            async def read() -> None:
                nonlocal got
                async for event in a:
                    got += isinstance(event, semcast.Message)

            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            deadline = asyncio.get_running_loop().time() + 10
            while not got:
                await a.send(b"x")
                assert asyncio.get_running_loop().time() < deadline
            reading.cancel()

    run(test)


@pytest.mark.parametrize("lists", [False, True])
def test_an_iteration_ends_when_the_program_closes_its_group(lists: bool) -> None:
    async def test(name: str) -> None:
        async with members(name, "a") as (a,):

            async def read() -> str:
                if lists:
                    async for _ in a.batches():
                        pass
                else:
                    async for _ in a:
                        pass
                return "ended"

            reading = asyncio.create_task(read())
            await asyncio.sleep(0.05)
            await a.close()
            assert await reading == "ended"
            assert [event async for event in a] == []

    run(test)


@pytest.mark.parametrize(
    ("text", "size"), [("64MiB", 64 << 20), ("0", 0), ("1kB", 1000), ("2 KiB", 2048), ("7B", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "64 Mb/s", "iB", "1iB", "many"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match="size"):
        parse_size(text)
