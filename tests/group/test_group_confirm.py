"""`send(..., confirm=)`, `wait_for`, `minimum` and transactions, over real sockets."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any

import pytest

import semcast

STACKS: dict[str, dict[str, Any]] = {
    "ring": {},
    "fifo": {"stack": "vsync"},
    "total": {"stack": "vsync", "order": "total"},
    "consensus": {"stack": "vsync", "order": "total", "engine": "consensus"},
    "uniform": {"stack": "vsync", "uniform": True},
}


PATIENT: dict[str, Any] = {"token_loss": "20s"}


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"confirm-{token_hex(4)}"), 40))


@asynccontextmanager
async def members(group: str, names: str, **settings: Any) -> AsyncIterator[list[semcast.Group]]:
    chosen = {"minimum": len(names), "token_loss": "2s", **settings}
    groups = [semcast.join(group, name=name, **chosen) for name in names]
    await asyncio.gather(*groups)
    try:
        yield groups
    finally:
        await asyncio.gather(*(each.close() for each in groups))


async def heard(group: semcast.Group, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for event in group:
        if isinstance(event, semcast.Message):
            found.append(event.payload)
            if len(found) == count:
                return found
    raise AssertionError("ended")


@pytest.mark.parametrize("confirm", ["delivered", "safe"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_confirmation_names_view_and_position(stack: str, confirm: semcast.Confirm) -> None:
    async def test(name: str) -> None:
        async with members(name, "abc", **STACKS[stack]) as (a, b, c):
            first = await a.send(b"1", confirm=confirm)
            second = await a.send(b"2", confirm=confirm)
            assert [first.id.seq, second.id.seq] == [1, 2]
            assert first.id.sender == a.member
            assert {member.name for member in first.view.members} == {*"abc"}
            assert first.position < second.position
            assert await heard(b, 2) == await heard(c, 2) == [b"1", b"2"]

    run(test)


def test_a_handler_may_wait_for_confirmations() -> None:
    """Each answers what it reads, and waits for every answer; queues are small."""

    async def answer(group: semcast.Group, count: int) -> list[bytes]:
        answers: list[bytes] = []
        async for event in group:
            if isinstance(event, semcast.Message) and event.payload.startswith(b"q"):
                confirmation = await group.send(b"a" + event.payload[1:], confirm="safe")
                assert confirmation.id.sender == group.member
            elif isinstance(event, semcast.Message):
                answers.append(event.payload)
                if len(answers) == count:
                    break
        return answers

    async def test(name: str) -> None:
        async with members(name, "ab", queue_messages=8, send_messages=8) as (a, b):
            readers = [asyncio.create_task(answer(each, 60)) for each in (a, b)]
            for number in range(30):
                await a.send(b"q%d" % number)
            heard_by_a, heard_by_b = await asyncio.gather(*readers)
            assert heard_by_a == heard_by_b
            assert sorted(heard_by_a) == sorted([b"a%d" % number for number in range(30)] * 2)

    run(test)


def test_a_confirmation_that_never_comes_ends_with_the_group() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            b._loop.close()  # b is dead, and the others do not know yet
            sending = asyncio.create_task(a.send(b"x", confirm="safe"))
            with pytest.raises(
                semcast.UnconfirmedError, match=r"view \d+@.* began before it was safe in view"
            ):
                await sending

    run(test)


def test_closing_ends_the_wait() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", **PATIENT) as (a, b):
            b._loop.close()
            sending = asyncio.create_task(a.send(b"x", confirm="safe"))
            await asyncio.sleep(0.05)
            await a.close()
            with pytest.raises((semcast.GroupClosedError, semcast.UnconfirmedError)):
                await sending

    run(test)


def test_a_member_that_fails_ends_the_wait() -> None:
    def fail(_stack: object, _now: int) -> None:
        raise ZeroDivisionError("a bug of ours")

    async def test(name: str) -> None:
        async with members(name, "ab", **PATIENT) as (a, b):
            b._loop.close()
            sending = asyncio.create_task(a.send(b"x", confirm="safe"))
            await asyncio.sleep(0.05)
            a._seat.call(fail)
            with pytest.raises(semcast.GroupError, match="failed: a bug of ours"):
                await sending
            with pytest.raises(semcast.GroupError, match="failed: a bug of ours"):
                await a.close()

    run(test)


def test_of_many_messages_the_last_is_confirmed() -> None:
    """They are handed over in portions."""

    async def test(name: str) -> None:
        async with members(name, "ab", send_messages=4) as (a, b):
            reading = asyncio.create_task(heard(b, 11))
            one = await a.send_many([b"x"] * 10, confirm="delivered")
            assert one.id.seq == 10
            other = await a.send(b"y", confirm="delivered")
            assert (other.view, other.id.seq) == (one.view, 11)
            assert other.position - one.position == 1, "nothing comes between the last and what follows it"
            await reading

    run(test)


def test_who_waits_for_more_is_not_forgotten_for_who_waited_for_less() -> None:
    """Nothing else wakes a program that is given nothing."""

    async def test(name: str) -> None:
        async with semcast.join(name, name="a", receive=False) as a:
            more, less = asyncio.create_task(a.wait_for(3)), asyncio.create_task(a.wait_for(2))
            async with semcast.join(name, name="b"):
                assert len((await less).members) == 2
                async with semcast.join(name, name="c"):
                    assert len((await asyncio.wait_for(more, 15)).members) == 3

    run(test)


def test_wait_for_says_who_is_there() -> None:
    async def test(name: str) -> None:
        async with semcast.join(name, name="a") as a:
            with pytest.raises(TimeoutError, match=r"1 of 2 members after 0\.2 s: a"):
                await a.wait_for(2, timeout=0.2)
            waiting = asyncio.create_task(a.wait_for(2))
            async with semcast.join(name, name="b", minimum=2) as b:
                view = await waiting
                assert {member.name for member in view.members} == {"a", "b"}
                assert await b.wait_for(1) == await a.wait_for(2, timeout=1)

    run(test)


def test_who_never_iterates_waits_for_others_too() -> None:
    """The view is that of the protocol, whatever lies in the program's queue."""

    async def test(name: str) -> None:
        async with semcast.join(name, name="a", queue_messages=1) as a:
            for _ in range(5):
                async with semcast.join(name, name="b") as b:
                    here, there = await asyncio.gather(a.wait_for(2), b.wait_for(2))
                    # the former b may have left a moment ago, so a may not know of this one yet
                    assert [member.name for member in here.members] == ["a", "b"]
                    assert set(there.members) == {a.member, b.member}
            assert a.view is None, "this program has seen none"

    run(test)


def test_waiting_ends_when_the_group_closes() -> None:
    async def test(name: str) -> None:
        async with semcast.join(name) as group:
            waiting = asyncio.create_task(group.wait_for(2))
            await asyncio.sleep(0.05)
            await group.close()
            with pytest.raises(semcast.GroupClosedError):
                await waiting

    run(test)


def test_first_messages_reach_everybody_who_waits_for_them() -> None:
    """Three that start at once, and send as soon as they are in."""

    async def test(name: str) -> None:
        async with members(name, "abc") as groups:
            sent = [await each.send(each.member.name.encode(), confirm="safe") for each in groups]
            assert all(len(each.view.members) == 3 for each in sent)
            found = await asyncio.gather(*(heard(each, 3) for each in groups))
            assert found == [found[0]] * 3

    run(test)


def test_a_transaction_is_one_message() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            async with a.transaction() as quote:
                quote["bid"] = b"159"
                quote["ask"] = b"161"
            with suppress(RuntimeError):
                async with a.transaction() as quote:
                    quote["bid"] = b"never"
                    raise RuntimeError
            await a.send(b"end")
            first, end = await heard(b, 2)
            assert semcast.assignments(first) == {"bid": b"159", "ask": b"161"}
            assert end == b"end"
            with pytest.raises(ValueError, match="not what a transaction sent"):
                semcast.assignments(end)

    run(test)


def test_a_signal_makes_a_program_leave() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            a.leave_on_signals(signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGUSR1)
            async for event in b:
                if isinstance(event, semcast.ViewChange) and event.left:
                    assert [member.name for member in event.left] == ["a"]
                    break
            await a.close()

    run(test)


def test_a_signal_makes_a_program_leave_all_its_groups() -> None:
    """Those that were closed before change nothing about that; a second signal does what it did before."""
    heard: list[int] = []

    async def test(name: str) -> None:
        before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
        try:
            async with (
                semcast.join(f"{name} 1") as first,
                semcast.join(f"{name} 2") as second,
                semcast.join(f"{name} 3") as third,
            ):
                for each in (first, second, third):
                    each.leave_on_signals(signal.SIGUSR1)
                await third.close()
                os.kill(os.getpid(), signal.SIGUSR1)
                for each in (first, second, third):
                    async for _ in each:
                        pass
                assert not heard
        finally:
            signal.signal(signal.SIGUSR1, before)

    run(test)


def test_closing_goes_on_however_often_it_is_cancelled() -> None:
    async def test(name: str) -> None:
        for turns in range(1, 8):
            group = await semcast.join(f"{name} {turns}")
            waiting = asyncio.create_task(group.wait_for(2))
            closing = asyncio.create_task(group.close())
            for _ in range(turns):
                await asyncio.sleep(0)
                closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await group.close()
            with pytest.raises(semcast.GroupClosedError):
                await waiting

    run(test)


def test_misuse_is_told_by_name() -> None:
    with pytest.raises(semcast.GroupError, match="running event loop"):
        semcast.join("m")

    async def test(name: str) -> None:
        unused = semcast.join(name)
        with pytest.raises(semcast.GroupError, match="not open"):
            await unused.send(b"x")
        await unused.close()
        with pytest.raises(semcast.ConfigurationError, match="name of a group must be a string"):
            semcast.join(5)  # type: ignore[call-overload]
        async with semcast.join(name) as group:
            wrong: Any = 5
            with pytest.raises(TypeError, match="item 5"):
                await group.send(b"x", item=wrong)
            with pytest.raises(ValueError, match="item ''"):
                await group.send(b"x", item="")
            with pytest.raises(TypeError, match="payload of type str"):
                await group.send("x")  # type: ignore[call-overload]
            with pytest.raises(TypeError, match="obsoletes names 5"):
                await group.send(b"x", obsoletes=[wrong])
            with pytest.raises(semcast.ConfigurationError, match="confirm 'sure'"):
                await group.send(b"x", confirm="sure")  # type: ignore[call-overload]
            with pytest.raises(semcast.GroupError, match="entered before"):
                await group.__aenter__()

    run(test)


def test_the_switch_interval_is_restored() -> None:
    before = sys.getswitchinterval()

    async def test(name: str) -> None:
        async with semcast.join(name), semcast.join(name):
            assert sys.getswitchinterval() < before

    run(test)
    assert sys.getswitchinterval() == before
