"""What processes cost: on a shared machine the only measure that neighbours do not change much."""

import os
from pathlib import Path
from threading import Event, Lock, Thread
from time import perf_counter, sleep
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
    """Of this process and of everything below it: Java, and the Python of executors.

    Also of what has ended: Spark ends workers that wait for a minute, and their parent does not wait for
    them, so that no process has their seconds any more. So a thread looks at all processes twice a second.
    """
    with _lock:
        _look()
        if not _watching.is_set():
            _watching.set()
            Thread(target=_watch, daemon=True).start()
        return sum(_seen.values()) / os.sysconf("SC_CLK_TCK")


_seen: dict[tuple[int, str], int] = {}
"""By process and when it began, the ticks that it spent when it was last seen."""

_lock = Lock()
_watching = Event()
_EACH = 0.5


def _watch() -> None:
    while True:
        sleep(_EACH)
        with _lock:
            _look()


def _look() -> None:
    children: dict[int, list[int]] = {}
    spent: dict[int, tuple[str, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        spent[process] = fields[19], int(fields[11]) + int(fields[12])
    todo = [os.getpid()]
    while todo:
        process = todo.pop()
        if process in spent:
            began, ticks = spent[process]
            _seen[process, began] = ticks
        todo += children.get(process, [])
