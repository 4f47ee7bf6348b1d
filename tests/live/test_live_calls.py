"""Calls between real processes, some of which are killed, stopped or never answer."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

import semcast

MEMBER = """
import asyncio, sys
import semcast

async def main(group, name, habit, stack, order):
    more = {"order": order, "minimum": 2} if order else {}
    async with semcast.join(group, name=name, stack=stack, token_loss="1s", **more) as member:
        count = 0

        if habit == "counts":
            @member.on_call
            def counts(request):
                nonlocal count
                count += 1
                return b"%d" % count
        elif habit == "never":
            @member.on_call
            async def never(request):
                print("asked", flush=True)
                await asyncio.sleep(3600)
        elif habit == "asks":
            @member.on_call
            async def asks(request):
                if request.payload == b"again":
                    return b"1"
                answer = await member.call(b"again", timeout=20)
                return b"%d" % len(answer.replies)

        print("ready", flush=True)
        if habit == "calls":
            async def call():
                answer = await member.call(b"+", timeout=30)
                assert answer.complete, answer
                print("said", *{reply.decode() for reply in answer.replies.values()}, flush=True)
            await member.wait_for(4)
            for _ in range(20):
                await asyncio.gather(*(call() for _ in range(5)))
            print("done", flush=True)
        elif habit == "waits":
            await member.wait_for(3)
            print(await member.call(b"+", timeout=None), flush=True)
        await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


class Process:
    """A member in a process of its own."""

    def __init__(self, group: str, name: str, habit: str, stack: str = "ring", order: str = "") -> None:
        self.name = name
        command = [sys.executable, "-c", MEMBER, group, name, habit, stack, order]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    async def until(self, word: str) -> list[str]:
        """Its lines up to one that begins with this word."""
        assert self._process.stdout is not None
        found: list[str] = []
        while not found or not found[-1].startswith(word):
            line = await asyncio.wait_for(asyncio.to_thread(self._process.stdout.readline), 40)
            assert line, f"{self.name} ended"
            found.append(line.strip())
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@asynccontextmanager
async def others(group: str, *habits: str, **settings: Any) -> AsyncIterator[list[Process]]:
    started = [Process(group, f"p{number}", habit, **settings) for number, habit in enumerate(habits)]
    try:
        await asyncio.gather(*(process.until("ready") for process in started))
        yield started
    finally:
        for process in started:
            process.kill()


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"live-calls-{uuid4().hex[:8]}"), 55))


def names(members: Any) -> list[str]:
    return sorted(member.name for member in members)


def member(group: str, **settings: Any) -> semcast.Group:
    found: semcast.Group = semcast.join(group, **{"name": "me", "token_loss": "1s", **settings})
    return found


STACKS = [("ring", ""), ("vsync", "total")]


@pytest.mark.parametrize(("stack", "order"), STACKS, ids=["ring", "vsync"])
def test_who_is_killed_departed_and_who_is_silent_is_missing(stack: str, order: str) -> None:
    async def test(name: str) -> None:
        more: dict[str, Any] = {"order": order, "minimum": 2} if order else {}
        async with (
            others(name, "counts", "never", stack=stack, order=order) as (_counts, never),
            member(name, stack=stack, **more) as me,
        ):
            await me.wait_for(3, 20)
            silent = await me.call(b"+", timeout=0.5)
            assert (silent.outcome, names(silent.replies), names(silent.missing)) == (
                "timeout",
                ["p0"],
                ["p1"],
            )
            assert silent.departed == ()
            await never.until("asked")
            call = asyncio.create_task(me.call(b"+", timeout=None))
            await never.until("asked")
            never.kill()
            gone = await call
            assert (gone.outcome, names(gone.replies), names(gone.departed)) == ("complete", ["p0"], ["p1"])
            assert gone.missing == ()
            majority = await me.call(b"+", replies="majority")
            assert (majority.complete, names(majority.replies)) == (True, ["p0"])

    run(test)


def test_a_caller_that_is_killed_leaves_nothing_behind() -> None:
    async def test(name: str) -> None:
        async with (
            others(name, "counts", "waits") as (_counts, caller),
            member(name) as me,
        ):
            asked = asyncio.Event()

            @me.on_call
            async def never(request: semcast.CallRequest) -> bytes:
                asked.set()
                await asyncio.sleep(3600)
                return b""

            await asyncio.wait_for(asked.wait(), 30)
            assert me._desk._machine.under_way()[1] == 1
            caller.kill()
            while me._desk._machine.under_way()[1]:
                await asyncio.sleep(0.05)  # until the view without it; the test has a deadline

    run(test)


def test_two_callers_at_once_see_the_same_order() -> None:
    """All replicas say the same to each call, whoever asks."""

    async def test(name: str) -> None:
        async with (
            others(name, "counts", "calls", "calls") as (_counts, one, two),
            member(name) as me,
        ):
            count = 0

            @me.on_call
            def counts(request: semcast.CallRequest) -> bytes:
                nonlocal count
                count += 1
                return b"%d" % count

            lines = [line.split() for each in (one, two) for line in await each.until("done")]
            said = [line[1:] for line in lines if line[0] == "said"]
            assert len(said) == 200
            assert count == 200
            assert [each for each in said if len(each) != 1] == []

    run(test)


def test_handlers_in_processes_ask_each_other() -> None:
    async def test(name: str) -> None:
        async with (
            others(name, "asks", "asks", "asks") as _processes,
            member(name) as me,
        ):
            await me.wait_for(4, 20)
            answers = await asyncio.gather(*(me.call(b"ask", timeout=30) for _ in range(20)))
            for answer in answers:
                assert list(answer.replies.values()) == [b"3", b"3", b"3"]

    run(test)


def test_the_next_worker_takes_over_from_one_that_is_killed() -> None:
    async def test(name: str) -> None:
        async with (
            others(name, "counts", "never") as (_counts, dies),
            member(name) as me,
        ):
            await me.wait_for(3, 20)
            jobs = [asyncio.create_task(me.call(b"job", to="one", timeout=None)) for _ in range(20)]
            await dies.until("asked")
            dies.kill()
            answers = await asyncio.gather(*jobs)
            assert all(names(answer.replies) == ["p0"] for answer in answers)
            assert {tuple(names(answer.departed)) for answer in answers} == {(), ("p1",)}

    run(test)
