"""What processes cost: on a shared machine the only measure that neighbours do not change much."""

import os
from pathlib import Path
from time import perf_counter
from typing import NamedTuple


class Spent(NamedTuple):
    """Seconds: of all processors together, and by the clock."""

    cpu: float
    wall: float


def now() -> Spent:
    """What this process and everything below it have spent so far, and the time."""
    return Spent(cpu_seconds(), perf_counter())


def since(began: Spent) -> Spent:
    """What was spent since then."""
    ends = now()
    return Spent(ends.cpu - began.cpu, ends.wall - began.wall)


def load() -> str:
    """How busy the machine is, for wall times: how many processes want its processors."""
    return f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


def cpu_seconds() -> float:
    """Of this process and of everything below it: Java, and the Python of executors."""
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        spent[process] = sum(int(ticks) for ticks in fields[11:15])
    total, todo = 0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += spent.get(process, 0)
        todo += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")
