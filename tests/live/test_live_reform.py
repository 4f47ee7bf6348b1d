"""A lost majority, and an operator who says that it is gone: `semcast reform`, `group.reform()`."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from tests.live.lab.supervisor import Cluster

MANUAL = {"stack": "vsync", "minimum": 2, "reform": "manual"}


async def reform(group: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "semcast.cli.main", "reform", "--json", group]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, timeout=40
    )


def test_who_survived_goes_on_when_an_operator_says_so_and_not_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path, **MANUAL) as cluster:
            await cluster.start("a", "b", "c")
            await cluster.together()
            refused = await reform(cluster.group)
            assert refused.returncode == 1
            assert "nobody needs to be told" in refused.stderr
            for name in "bc":
                await cluster.kill(name)
            await cluster["a"].until(lambda: bool(cluster["a"].said("minority")), "noticed")
            assert len(cluster["a"].view()) == 3, "it waits"
            told = await reform(cluster.group)
            assert told.returncode == 0, told.stderr
            [member] = json.loads(told.stdout)["members"]
            assert (member["member"]["name"], member["phase"]) == ("a", "operational")
            await cluster["a"].until_view("a")
            await cluster.start("b", "c")
            await cluster.together()

    asyncio.run(run())
