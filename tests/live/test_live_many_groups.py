"""Many groups of one process: one thread and one pair of sockets, and each has a fate of its own."""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex

import pytest
from tests.live.test_live_programs import name, pair, read_until, run, until_view

import semcast
from semcast.core.ids import Nanos
from semcast.core.stack import Stack

PATIENCE = 20.0


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_twenty_groups_have_one_thread_and_one_pair_of_sockets() -> None:
    """Besides: what wakes the thread, and what it waits with. Those that come later share, too."""

    async def test() -> None:
        before, prefix = descriptors(), name()
        groups = [await semcast.join(f"{prefix} {at}") for at in range(20)]
        assert len({group.address for group in groups}) == 1
        assert len(groups[0]._hub.endpoint.filenos()) == 2
        assert descriptors() - before == 4
        more = [await semcast.join(f"{prefix} {at}") for at in range(20, 22)]
        assert len(groups[0]._hub.endpoint.filenos()) == 3, "a kernel allows 20 meeting points to a socket"
        for group in [*groups[:19], more[0]]:
            await group.close()
        for group in (groups[19], more[1]):
            await group.send(b"still here")
            assert await read_until(group, b"still here") == [b"still here"]
            await group.close()
        assert descriptors() == before

    run(test())


def test_one_is_closed_and_the_others_go_on() -> None:
    async def test() -> None:
        first, second = name(), name()
        async with pair(first) as (a, b):
            async with semcast.join(second) as lodger:
                assert lodger.address == a.address
            await b.send(b"after that")
            assert await read_until(a, b"after that") == [b"after that"]

    run(test())


def test_two_members_of_a_group_have_sockets_of_their_own() -> None:
    async def test() -> None:
        group = name()
        async with pair(group) as (a, b), semcast.join(name()) as other:
            assert a.address != b.address
            assert other.address in (a.address, b.address)
            await a.send(b"hello")
            assert await read_until(b, b"hello") == [b"hello"]

    run(test())


def test_an_error_in_one_group_is_told_to_its_program_and_ends_that_group_alone() -> None:
    def fail(_stack: Stack, _now: Nanos) -> None:
        raise ZeroDivisionError("in the stack")

    async def test() -> None:
        async with pair(name()) as (a, b):
            sharing = next(each for each in (a, b) if each._works.lease.shared)
            victim = await semcast.join(name())
            assert victim.address == sharing.address
            victim.command(fail)
            with pytest.raises(semcast.GroupError, match="in the stack"):
                async for _ in victim:
                    pass
            with pytest.raises(semcast.GroupError, match="in the stack"):
                await victim.close()
            await b.send(b"unmoved")
            assert await read_until(a, b"unmoved") == [b"unmoved"]
            assert [len(each.members()) for each in (a, b)] == [2, 2]

    run(test())


def test_a_fixed_port_serves_several_groups_too() -> None:
    """Firewalls and lists of peers then know one port."""

    async def test() -> None:
        one, other = name(), name()
        async with semcast.join(one, multicast=False, bind="127.0.0.1:0") as first:
            host, port = first.address
            peers = [f"{host}:{port}"]
            async with (
                semcast.join(other, multicast=False, bind="127.0.0.1:0") as second,
                semcast.join(other, multicast=False, peers=peers) as third,
            ):
                assert second.address == first.address != third.address
                await asyncio.gather(until_view(second, 2), until_view(third, 2))

    run(test())


def test_a_child_process_that_was_forked_has_sockets_and_a_thread_of_its_own() -> None:
    """Those of its parent are nobody's there."""
    context = multiprocessing.get_context("fork")

    async def test() -> None:
        async with semcast.join(name()) as group:
            told: multiprocessing.Queue[tuple[str, int]] = context.Queue()
            process = context.Process(target=_child, args=(told,))
            process.start()
            assert await asyncio.to_thread(told.get, timeout=PATIENCE) != group.address
            await asyncio.to_thread(process.join, PATIENCE)
            assert process.exitcode == 0
            await group.send(b"still here")
            assert await read_until(group, b"still here") == [b"still here"]

    asyncio.run(test())


def _child(told: "multiprocessing.Queue[tuple[str, int]]") -> None:
    async def test() -> None:
        async with semcast.join(name()) as group:
            await group.send(b"hello")
            assert await read_until(group, b"hello") == [b"hello"]
            told.put(group.address)

    asyncio.run(test())


class Process:
    """A program in many groups, and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def until(self, words: str) -> None:
        assert self.process.stdout is not None
        while line := (await self.process.stdout.readline()).decode().strip():
            if line == words:
                return
        raise AssertionError(f"it ended before it said {words}")

    async def mark(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"mark\n")
        await self.process.stdin.drain()


@asynccontextmanager
async def processes(names: str, groups: int) -> AsyncIterator[list[Process]]:
    prefix, root, pipe = f"many-{token_hex(4)}", Path(__file__).parents[2], asyncio.subprocess.PIPE
    made: list[Process] = []
    try:
        for each in names:
            command = [sys.executable, "-m", "tests.live.lab.busybody", each, prefix, str(groups)]
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=root)
            made.append(Process(process))
        yield made
    finally:
        for started in made:
            if started.process.returncode is None:
                started.process.kill()
            await started.process.wait()


def test_three_processes_in_ten_groups_each_and_one_is_killed() -> None:
    async def test() -> None:
        async with asyncio.timeout(60), processes("abc", 10) as (a, b, c):
            for each in (a, b, c):
                await each.until("joined 1 1")
            for each in (a, b, c):
                await each.until("members 3")
            await c.mark()
            for each in (a, b):
                await each.until("heard c")
            c.process.kill()
            for each in (a, b):
                await each.until("members 2")
            for each in (a, b):
                await each.mark()
            for each in (a, b):
                await each.until("heard abc")

    asyncio.run(test())
