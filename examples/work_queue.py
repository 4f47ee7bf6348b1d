"""A work queue through a daemon: each job is done by one worker, and nobody is in charge.

All workers see the same jobs in the same order and the same views, so all know whose turn it is: the member
at `place % members`. A worker that dies is gone from the next view, and others do what it had not reported.
So a job is done once, or at least once where a worker died meanwhile. `python examples/work_queue.py` starts
a daemon of its own and three workers, and kills one of them.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import semcast
from semcast import DomainMessage, DomainView

JOBS = 30


async def work(path: str, name: str) -> None:
    """One worker: does the jobs that are its own, and says so to the workers and to who wants to know."""
    async with semcast.connect(path, name=name) as host:
        jobs = await host.join("jobs")
        await host.send("results", b"here")
        members: tuple[semcast.MemberId, ...] = ()
        waiting: dict[bytes, int] = {}
        async for event in jobs:
            if isinstance(event, DomainView):
                members = event.view.members
            elif isinstance(event, DomainMessage):
                kind, _, job = event.payload.partition(b" ")
                if kind == b"do":
                    waiting[job] = event.order or 0
                else:
                    waiting.pop(job, None)
            mine = [job for job, place in waiting.items() if members[place % len(members)] == host.member]
            for job in mine:
                del waiting[job]
                await asyncio.sleep(0.01)  # the work
                await host.cast(["jobs", "results"], b"done " + job)  # at one position in both


async def main(path: str) -> None:
    """Hand out jobs from outside, kill a worker, and wait until all jobs are done."""
    command = [sys.executable, __file__, path]
    workers = [subprocess.Popen([*command, name]) for name in ("ann", "ben", "cat")]  # noqa: S603
    done: dict[bytes, str] = {}
    here = 0
    try:
        async with semcast.connect(path, name="boss") as host, asyncio.timeout(60):
            results = await host.join("results")
            async for event in results:
                if not isinstance(event, DomainMessage):
                    continue
                kind, _, job = event.payload.partition(b" ")
                if kind == b"here":
                    here += 1
                    if here == len(workers):
                        for number in range(JOBS):
                            await host.send("jobs", b"do %d" % number)
                    continue
                done[job] = event.id.sender.name.partition("@")[0]
                if len(done) == JOBS // 3:
                    workers[0].send_signal(signal.SIGKILL)
                if len(done) == JOBS:
                    break
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    print(f"{JOBS} jobs are done:", dict(sorted(Counter(done.values()).items())))


def start_daemon(folder: str) -> "tuple[subprocess.Popen[str], str]":
    """A daemon of our own, in a domain of our own."""
    path = f"{folder}/semcast.sock"
    flags = ["--socket", path, "--domain", f"work-{os.getpid()}", "--name", "host", "--json"]
    command = [sys.executable, "-m", "semcast", "daemon", *flags]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert daemon.stdout is not None
    daemon.stdout.readline()
    return daemon, path


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(*sys.argv[1:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            daemon, path = start_daemon(folder)
            try:
                asyncio.run(main(path))
            finally:
                daemon.terminate()
                daemon.communicate()
