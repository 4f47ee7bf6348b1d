"""Daemons: clients of three of them beside direct members of a ring, fan-out, joins, and a stopped client."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, against

NAMES = ("a", "b", "c")
COUNT, RUN = 300_000, 200
FANS = 100
JOINS = 10_000


class Process:
    """A program of the benchmark, or a daemon."""

    def __init__(self, module: str, *arguments: str, prefix: Sequence[str] = ()) -> None:
        command = [*prefix, sys.executable, "-m", module, *arguments]
        self.process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def says(self) -> dict[str, Any]:
        """The next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def go_on(self) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waited(self) -> float:
        """Seconds for which it was ready to run, and others had the processors."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks) / 1e9

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def daemons(count: int, *more: str) -> Iterator[list[tuple[Process, str]]]:
    """So many of one domain, and their sockets."""
    domain = f"bench-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        found = []
        for name in NAMES[:count]:
            path = f"{folder}/{name}.sock"
            flags = ["--socket", path, "--domain", domain, "--name", name, "--json", *more]
            process = Process("semcast", "daemon", *flags)
            stack.callback(process.end)
            found.append((process, path))
        for process, _ in found:
            process.says()
        yield found


def program(*arguments: str) -> Process:
    """A client."""
    return Process("benchmarks.daemonclients", *arguments)


def _together(programs: Sequence[Process], hosts: Sequence[Process]) -> tuple[float, float]:
    """Let all begin; returns how long the slowest took, and the processor's time of all from then on."""
    for each in programs:
        each.says()
    before = sum(each.cpu() for each in hosts)
    for each in programs:
        each.go_on()
    found = [each.says() for each in programs]
    used = sum(each.cpu() for each in hosts) - before
    return max(each["seconds"] for each in found), used + sum(each["cpu"] for each in found)


def _rate(places: Sequence[tuple[str, str]], hosts: Sequence[Process] = ()) -> tuple[float, float]:
    """Messages a second, and a CPU second, of three programs that all send and all receive."""
    programs = [program("member", where, through, "3", str(COUNT), str(RUN)) for where, through in places]
    try:
        seconds, cpu = _together(programs, hosts)
    finally:
        for each in programs:
            each.end()
    return 3 * COUNT / seconds, 3 * COUNT / cpu


def through_daemons() -> list[Row]:
    """Clients beside members."""
    direct, direct_cpu = _rate([(f"bench-{uuid.uuid4().hex}", "direct")] * 3)
    with daemons(3, "--leave-after", "60", "--queue-bytes", "256MiB") as hosts:
        light, light_cpu = _rate([(path, "daemon") for _, path in hosts], [host for host, _ in hosts])
    from benchmarks import corosyncpeer  # noqa: PLC0415 (its clients are processes as those here)

    return [
        against("3 daemons, a client each, 64 B in lists / direct members", light, "msg/s", direct, ">= 0.5"),
        against("the same, a CPU second / direct members", light_cpu, "msg/CPU s", direct_cpu, ""),
        corosyncpeer.row(light),
    ]


def fan_out(run: int, count: int, target: float) -> Row:
    """One message to a hundred local clients, by CPU second of the daemon."""
    with daemons(1) as [(host, path)]:
        audience, publisher = (
            program("audience", path, str(FANS)),
            program("publisher", path, str(count), str(run)),
        )
        try:
            audience.says()
            publisher.says()
            before = host.cpu()
            publisher.go_on()
            publisher.says()
            value = count * FANS / (host.cpu() - before)
        finally:
            audience.end()
            publisher.end()
    name = f"fan-out to {FANS} local clients, {run} a frame / target"
    return against(name, value, "deliveries/CPU s", target, ">= 1")


def joins(clients: int) -> list[Row]:
    """Without a change of the ring; in a second, and in a CPU second of the clients' daemon.

    On a busy machine the daemon waits for a processor most of the time, so that is also left out.
    """
    with daemons(3) as hosts:
        joiner, host = program("joiner", hosts[0][1], str(JOINS), str(clients)), hosts[0][0]
        try:
            joiner.says()
            cpu, waited = host.cpu(), host.waited()
            joiner.go_on()
            seconds = joiner.says()["seconds"]
            cpu, waited = host.cpu() - cpu, host.waited() - waited
        finally:
            joiner.end()
    name = f"joins of {clients} client{'s' * (clients > 1)} with 3 daemons / target"
    alone = "the same, without the time for which its daemon waited for a processor / target"
    return [
        against(name, JOINS / seconds, "joins/s", 20_000, ">= 1"),
        against(alone, JOINS / (seconds - waited), "joins/s", 20_000, ">= 1"),
        against("the same, by CPU of the daemon / target", JOINS / cpu, "joins/CPU s", 20_000, ""),
    ]


def stopped() -> Row:
    """What is left of the rate of others where one client is stopped."""
    rates = []
    for stop in (False, True):
        with daemons(1, "--leave-after", "60") as [(_, path)]:
            audience = program("audience", path, "10")
            lazy = program("audience", path, "1")
            publisher = program("publisher", path, "100000", "10")
            try:
                for each in (audience, lazy, publisher):
                    each.says()
                if stop:
                    lazy.process.send_signal(signal.SIGSTOP)
                publisher.go_on()
                rates.append(100_000 / publisher.says()["seconds"])
            finally:
                for each in (audience, lazy, publisher):
                    each.end()
    return against("one of 11 clients is stopped / none is", rates[1], "msg/s", rates[0], ">= 0.95")


def latencies() -> list[Row]:
    """What the way through a daemon adds to the time until a message is delivered to its sender."""

    def measure(places: Sequence[tuple[str, str]]) -> dict[str, Any]:
        programs = [program("latency", where, through, "3", "1500") for where, through in places]
        try:
            for each in programs:
                each.says()
            for each in programs:
                each.go_on()
            return programs[0].says()
        finally:
            for each in programs:
                each.end()

    direct = measure([(f"bench-{uuid.uuid4().hex}", "direct")] * 3)
    with daemons(3) as hosts:
        light = measure([(path, "daemon") for _, path in hosts])
    return [
        against(
            "latency at 1,000/s from each of 3, median / direct",
            light["median"],
            "us",
            direct["median"],
            "<= 150 us more",
        ),
        against("the same, 99 % / direct", light["late"], "us", direct["late"], "<= 500 us more"),
    ]


def many_groups() -> Row:
    """The same traffic where there are 10,000 other groups."""
    found = []
    for groups in ("10", "10000"):
        with daemons(1) as [(host, path)]:
            others, audience = program("settler", path, groups), program("audience", path, "3")
            publisher = program("publisher", path, "100000", "10")
            try:
                for each in (others, audience, publisher):
                    each.says()
                before = host.cpu()
                publisher.go_on()
                publisher.says()
                found.append(100_000 / (host.cpu() - before))
            finally:
                for each in (others, audience, publisher):
                    each.end()
    return against("messages, 10,000 other groups / 10 others", found[1], "msg/CPU s", found[0], ">= 0.9")


def memory() -> list[Row]:
    """10,000 groups, 1,000 clients, 100,000 memberships in one daemon, and their census."""
    code = Path(__file__).with_name("daemonmap.py")
    found = json.loads(subprocess.run([sys.executable, str(code)], check=True, capture_output=True).stdout)  # noqa: S603
    return [
        against("memory of 100,000 memberships / target", found["mib"], "MiB", 100, "<= 1"),
        against("census of them, by CPU / target", found["census"], "CPU s", 1.0, "<= 1"),
        against("bytes of the census / target", found["bytes"], "B", 3_000_000, "<= 1"),
    ]


def run() -> list[Row]:
    """All of it."""
    rows = through_daemons()
    rows += latencies()
    rows += [
        fan_out(1, 10_000, 300_000),
        fan_out(64, 128_000, 5_000_000),
        *joins(1),
        *joins(100),
        stopped(),
        many_groups(),
        *memory(),
    ]
    return rows
