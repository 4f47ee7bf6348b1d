"""Runs the comparison: each contestant in turn, with processes of its own, all on the same tasks."""

import importlib.util
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import mean, median

import msgspec

from semcast.bench.compare.work import HOST, Seen, Task
from semcast.bench.measuring import BenchError

MEMBERS = 3
LATENCY_RATE = 1000
_SOON = 200_000_000
_DRAIN = 0.5
_LARGE = 1024
_SMALL = 64


class Contender(msgspec.Struct, frozen=True):
    """Who takes part."""

    name: str
    label: str
    order: str
    """What it promises about the order of messages."""
    package: str = ""
    """That has to be installed."""
    served: bool = False
    """Whether there is a process in the middle."""


CONTESTANTS = (
    Contender("hub", "asyncio TCP hub, 64 a write", "total", served=True),
    Contender("pyzmq", "pyzmq, no drop, one a call", "sender", package="zmq"),
    Contender("lists", "Semcast ring, lists of 64", "total"),
    Contender("single", "Semcast ring, one call a message", "total"),
    Contender("safe", "Semcast ring, safe", "total, known to all"),
)


class Standing(msgspec.Struct, frozen=True):
    """What one contestant reached: medians of its runs. Rates in messages a second at the slowest member."""

    label: str
    order: str
    small: float
    large: float
    three: float
    """Of messages of 1 KiB by three senders together."""
    p50_us: float
    p99_us: float
    cpu_us: float
    """Of all members, for a message of 64 bytes; what a process in the middle takes comes on top."""
    whole: bool
    """Whether nothing was lost, doubled or out of its sender's order."""


class Missing(msgspec.Struct, frozen=True):
    """A contestant that cannot be run here."""

    label: str
    package: str


def compare(seconds: float, runs: int) -> list[Standing | Missing]:
    """All contestants, in turns, so that a slow minute of the machine meets each of them."""
    found: dict[str, list[Standing]] = {each.name: [] for each in CONTESTANTS}
    absent = [each for each in CONTESTANTS if each.package and not importlib.util.find_spec(each.package)]
    for run in range(runs):
        present = [each for each in CONTESTANTS if each not in absent]
        for each in present if run % 2 == 0 else reversed(present):
            found[each.name].append(_measure(each, seconds))
    return [
        Missing(each.label, each.package) if each in absent else _middle(found[each.name])
        for each in CONTESTANTS
    ]


def _measure(contender: Contender, seconds: float) -> Standing:
    """One run of one of them."""
    with _members(contender) as members:
        lone = _task(members, 1, seconds, size=_SMALL, rate=LATENCY_RATE)
        small = _task(members, 2, seconds, size=_SMALL)
        large = _task(members, 3, seconds, size=_LARGE)
        three = _task(members, 4, seconds, size=_LARGE, senders=MEMBERS)
    others = [sorted(each.latencies) for each in lone[1:]]
    if not all(others):
        raise BenchError(f"{contender.label}: no message arrived")
    rate = min(each.rate for each in small)
    spent = sum(each.cpu for each in small)
    return Standing(
        label=contender.label,
        order=contender.order,
        small=rate,
        large=min(each.rate for each in large),
        three=min(each.rate for each in three),
        p50_us=mean(each[len(each) // 2] for each in others) / 1e3,
        p99_us=max(each[len(each) * 99 // 100] for each in others) / 1e3,
        cpu_us=1e6 * spent / rate if rate else 0.0,
        whole=all(each.in_order for seen in (lone, small, large, three) for each in seen),
    )


@contextmanager
def _members(contender: Contender) -> "Iterator[list[subprocess.Popen[str]]]":
    """Its processes, once all of them hear each other."""
    ports = _free_ports(MEMBERS + 1)
    members: list[subprocess.Popen[str]] = []
    numbers = [*([MEMBERS] if contender.served else []), *range(MEMBERS)]
    command = [sys.executable, "-m", "semcast.bench.compare.member", contender.name]
    try:
        for number in numbers:
            members.append(
                subprocess.Popen(  # noqa: S603 (this interpreter, and arguments of our own)
                    [*command, str(number), json.dumps(ports)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        programs = members[-MEMBERS:]
        for number, member in enumerate(programs):
            if _line(member).strip() != "up":
                raise BenchError(f"{contender.label}: member {number} did not start")
        yield programs
    finally:
        for member in members:
            member.kill()
            member.communicate()  # until it has ended; closes its pipes


def _task(
    members: "Sequence[subprocess.Popen[str]]",
    number: int,
    seconds: float,
    *,
    size: int,
    rate: int = 0,
    senders: int = 1,
) -> list[Seen]:
    """Have all members do this; what each of them saw."""
    begin = time.monotonic_ns() + _SOON
    end = begin + int(seconds * 1e9)
    task = Task(number=number, size=size, senders=senders, rate=rate, begin=begin, end=end)
    for member in members:
        assert member.stdin is not None
        member.stdin.write(msgspec.json.encode(task).decode() + "\n")
        member.stdin.flush()
    seen = [msgspec.json.decode(_line(member), type=Seen) for member in members]
    time.sleep(_DRAIN)  # what is still under way counts for nobody
    return seen


def _line(member: "subprocess.Popen[str]") -> str:
    assert member.stdout is not None
    line = member.stdout.readline()
    if not line:
        raise BenchError("a member of the comparison has ended")
    return line


def _free_ports(count: int) -> list[int]:
    """Different ones: each is taken until all are chosen."""
    with ExitStack() as taken:
        probes = [taken.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def _middle(runs: Sequence[Standing]) -> Standing:
    figures = ("small", "large", "three", "p50_us", "p99_us", "cpu_us")
    medians = {name: median([getattr(each, name) for each in runs]) for name in figures}
    return msgspec.structs.replace(runs[0], **medians, whole=all(each.whole for each in runs))
