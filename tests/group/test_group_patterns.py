"""Patterns on live groups."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex
from typing import Any

import pytest

import semcast
from semcast.patterns import BackupReply, Executed, PrimaryBackup, ReadAnswer, ReplicatedState, StateMachine

PATIENT: dict[str, Any] = {"token_loss": "2s"}


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"patterns-{token_hex(4)}"), 40))


def book(state: Mapping[str, bytes], request: bytes) -> Executed:
    left = int(state.get("seats", b"3"))
    if left == 0:
        return Executed({}, b"sold out")
    return Executed({"seats": b"%d" % (left - 1), "last": request}, b"seat %d" % left)


def service(me: semcast.MemberId) -> PrimaryBackup:
    return PrimaryBackup(me, book)


def test_a_service_survives_its_primary() -> None:
    async def test(name: str) -> None:
        lives = [semcast.live(name, service, name=who, minimum=2, uniform=True, **PATIENT) for who in "abc"]
        await asyncio.gather(*(each.__aenter__() for each in lives))
        await asyncio.gather(*(each.group.wait_for(3) for each in lives))
        numbers = [(each, each.pattern.request(each.group.member.name.encode())) for each in lives]
        answers = [await each.answer(number) for each, number in numbers]
        assert all(isinstance(answer, BackupReply) for answer in answers)
        assert sorted(answer.reply for answer in answers if isinstance(answer, BackupReply)) == [
            b"seat 1",
            b"seat 2",
            b"seat 3",
        ]
        primary = next(each for each in lives if each.pattern.primary == each.group.member)
        rest = [each for each in lives if each is not primary]
        await primary.close()
        number = rest[1].pattern.request(b"late")
        answer = await rest[1].answer(number)
        assert isinstance(answer, BackupReply)
        assert answer.reply == b"sold out"
        await asyncio.gather(*(each.close() for each in rest))

    run(test)


def test_a_state_machine_and_a_late_member() -> None:
    async def test(name: str) -> None:
        a, b = (semcast.live(name, StateMachine, name=who, minimum=2, **PATIENT) for who in "ab")
        await asyncio.gather(a.__aenter__(), b.__aenter__())
        for number in range(200):
            a.pattern.update("x", b"%d" % number)
            b.pattern.update("y", b"%d" % number)
        await asyncio.gather(
            *(each.until(lambda p: p.state == {"x": b"199", "y": b"199"}) for each in (a, b))
        )
        async with semcast.live(name, StateMachine, name="c", **PATIENT) as c:
            assert dict(c.pattern.state) == {"x": b"199", "y": b"199"}
            answer = await c.answer(c.pattern.read("x"))
            assert isinstance(answer, ReadAnswer)
            assert answer.value == b"199"
        await asyncio.gather(a.close(), b.close())

    run(test)


def test_operations_are_seen_whole() -> None:
    async def test(name: str) -> None:
        a, b = (semcast.live(name, ReplicatedState, name=who, minimum=2, **PATIENT) for who in "ab")
        await asyncio.gather(a.__aenter__(), b.__aenter__())
        for number in range(100):
            a.pattern.operation({"bid": b"%d" % number, "ask": b"%d" % (number + 2)})
        await b.until(lambda p: p.of("a").get("bid") == b"99")
        assert dict(b.pattern.of("a")) == {"bid": b"99", "ask": b"101"}
        await asyncio.gather(a.close(), b.close())

    run(test)


def test_waiting_ends_with_the_group() -> None:
    async def test(name: str) -> None:
        async with semcast.live(name, ReplicatedState, bootstrap=True) as alone:
            waiting = asyncio.create_task(alone.until(lambda p: "x" in p.of("nobody")))
            await asyncio.sleep(0.05)
            await alone.close()
            with pytest.raises(semcast.GroupClosedError):
                await waiting

    run(test)


def test_a_pattern_that_raises_makes_its_member_leave_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """It read no more, and so stopped the whole group, without a word."""

    def fussy(me: semcast.MemberId) -> PrimaryBackup:
        def execute(state: Mapping[str, bytes], request: bytes) -> Executed:
            if request == b"poison" and me.name == "a":
                raise ZeroDivisionError("a bug of the application")
            return book(state, request)

        return PrimaryBackup(me, execute)

    async def test(name: str) -> None:
        a = await semcast.live(name, fussy, name="a", bootstrap=True, **PATIENT).__aenter__()
        b = await semcast.live(name, fussy, name="b", **PATIENT).__aenter__()
        number = b.pattern.request(b"poison")
        with pytest.raises(semcast.GroupClosedError, match="its pattern failed: a bug of the application"):
            await a.until(lambda _: False)
        answer = await b.answer(number)
        assert isinstance(answer, BackupReply)
        assert answer.reply == b"seat 3"
        await asyncio.gather(a.close(), b.close())

    run(test)
    assert "a bug of the application" in caplog.text


def test_what_a_pattern_cannot_send_is_told_to_who_waits() -> None:
    async def test(name: str) -> None:
        async with semcast.live(name, StateMachine, bootstrap=True) as a:
            a.pattern.update("x", bytes((1 << 24) + 1))
            with pytest.raises(semcast.GroupClosedError, match="its pattern failed: payload of 167772"):
                await a.answer(a.pattern.read("x"))

    run(test)


def test_a_pattern_may_be_looked_at_when_its_group_is_closed() -> None:
    """With much that was not sent: nothing is raised into the loop of the program."""
    raised: list[object] = []

    async def test(name: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: raised.append(context))
        async with semcast.live(name, StateMachine, bootstrap=True) as a:
            for number in range(3000):
                a.pattern.update(f"x{number}", b"1")
        assert len(a.pattern.state) <= 3000
        await asyncio.sleep(0.1)

    run(test)
    assert not raised
