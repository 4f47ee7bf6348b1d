"""Live rings that grow: 32 members on this machine, and processes that join one that works."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from secrets import token_hex

from tests.live.lab.supervisor import Cluster

ROOT = Path(__file__).parents[2]
LOSS = "2s"
"""How long a process may be silent on a busy machine."""


async def crowd(group: str, first: int, count: int, everybody: int) -> Process:
    command = [sys.executable, "-m", "tests.live.lab.crowd", group, *map(str, (first, count, everybody))]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)


async def said(process: Process, count: int) -> list[str]:
    assert process.stdout is not None
    return [(await process.stdout.readline()).decode() for _ in range(count)]


def test_32_members_form_one_ring_and_get_everything() -> None:
    """In four processes: each with eight members, for the sake of the machine."""

    async def main() -> None:
        group = f"crowd {token_hex(6)}"
        processes = [await crowd(group, first, 8, 32) for first in range(0, 32, 8)]
        try:
            async with asyncio.timeout(60):
                lines = [line for process in processes for line in await said(process, 8)]
        finally:
            for process in processes:
                process.kill()
                await process.wait()
        assert sorted(line.split()[1] for line in lines) == ["32"] * 32

    asyncio.run(main())


def test_processes_that_join_a_working_ring_cause_two_views_and_no_failures(tmp_path: Path) -> None:
    async def main() -> None:
        async with Cluster(tmp_path, token_loss=LOSS) as cluster:
            await cluster.start(*"abcd")
            await cluster.together()
            before = {name: len(cluster[name].said("view")) for name in "abcd"}
            await cluster.start(*"xyz")
            await cluster.together()
            for name in "abcd":
                views = cluster[name].said("view")[before[name] :]
                assert len(views) <= 2
                assert all({*"abcd"} <= {*view["members"]} for view in views), "nobody alive is called failed"

    asyncio.run(main())
