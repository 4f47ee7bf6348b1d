"""The laziest programs, as processes, through two daemons, all at once: nothing stands still."""

import asyncio
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.daemon.processes import PATIENCE, DaemonProcess

import semcast
from semcast.domains import DomainMessage

SENT = 300
"""As many as a program that sends does."""
WANTED = ("twin0", "twin1", "again")
PROGRAM = """
import asyncio, sys
import semcast

async def main(where, name, group, habit):
    async with semcast.connect(where, name=name) as host:
        member = await host.join(group)
        print("ready", flush=True)
        if habit == "sends":
            for number in range(300):
                await member.send(b"%s %d" % (name.encode(), number))
            await asyncio.sleep(3600)
        elif habit == "never reads":
            await asyncio.sleep(3600)
        elif habit == "answers":
            @member.on_call
            async def echo(request):
                await member.send(b"asked")
                return request.payload
            async for event in member:
                if isinstance(event, semcast.Message) and not event.payload.startswith(b"answer"):
                    await member.send(b"answer to " + event.payload)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[list[DaemonProcess]]:
    """Two of one domain."""
    domain = f"lazy-{uuid.uuid4().hex}"
    both = [DaemonProcess(tmp_path / f"{name}.sock", domain, name).ready() for name in "ab"]
    yield both
    for each in both:
        each.kill()


class Programs:
    """Those of one test."""

    def __init__(self, daemons: list[DaemonProcess], group: str) -> None:
        self._daemons = daemons
        self._group = group
        self.running: list[subprocess.Popen[str]] = []

    def start(self, place: int, name: str, habit: str) -> "subprocess.Popen[str]":
        """One more, at a daemon."""
        command = [sys.executable, "-c", PROGRAM, self._daemons[place].socket, name, self._group, habit]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def ready(self, process: "subprocess.Popen[str]") -> None:
        """Wait until it is in the group."""
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def end(self) -> None:
        """Kill all."""
        for process in self.running:
            process.kill()
            process.communicate()


def test_lazy_programs_stop_nobody(daemons: list[DaemonProcess]) -> None:
    asyncio.run(_lazy(daemons))


async def _lazy(daemons: list[DaemonProcess]) -> None:
    group = f"g-{uuid.uuid4().hex[:8]}"
    programs = Programs(daemons, group)
    try:
        async with semcast.connect(daemons[1].socket, name="reader") as here:
            member = await here.join(group)
            for place, name, habit in ((0, "idle", "never reads"), (1, "polite", "answers")):
                programs.ready(programs.start(place, name, habit))
            twice = [programs.start(place, f"twin{place}", "sends") for place in (0, 1)]  # starts twice
            again = programs.start(0, "again", "sends")
            programs.ready(again)
            for _ in range(2):  # and restarts at once
                again.send_signal(signal.SIGKILL)
                again = programs.start(0, "again", "sends")
                programs.ready(again)
            second = programs.start(0, "idle", "never reads")  # the same name twice
            _, told = second.communicate(timeout=PATIENCE)
            assert second.returncode != 0
            assert "the name 'idle' is taken" in told
            heard: Counter[str] = Counter()
            async with asyncio.timeout(2 * PATIENCE):
                async for event in member:
                    if not isinstance(event, DomainMessage):
                        continue
                    heard[" ".join(event.payload.decode().split()[:-1])] += 1
                    if min(heard[f"{each}{what}"] for each in ("", "answer to ") for what in WANTED) >= SENT:
                        break
            answer = await member.call(b"?", replies="first", timeout=PATIENCE)
            assert answer.result == b"?"
            assert all(process.poll() is None for process in (*twice, again))
            names = {each.name for each in member.members()}
            assert names == {"reader@b", "idle@a", "polite@b", "twin0@a", "twin1@b", "again@a"}
    finally:
        programs.end()
