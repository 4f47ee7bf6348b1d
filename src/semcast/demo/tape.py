"""What was seen of the members of a run of the demo, four times a second: what its picture is drawn from."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from semcast.demo.supervisor import Process

EVERY = 0.25


class Sight(NamedTuple):
    """One member at one moment."""

    rate: float
    """Messages a second delivered to it, lately."""
    view: int
    """Members of its view; 0 where there is no process."""


class Mark(NamedTuple):
    """Something that happened to a member."""

    at: float
    member: int
    words: str


class Tape:
    """Of one run.

    Args:
        processes: the members.
    """

    def __init__(self, processes: Sequence[Process]) -> None:
        self.names = [process.name for process in processes]
        self.times: list[float] = []
        self.sights: list[list[Sight]] = []
        """At each of these times, of each member."""
        self.marks: list[Mark] = []
        self._processes = processes
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def mark(self, process: Process, words: str) -> None:
        """Something happens to this member now."""
        self.marks.append(Mark(self.seconds, self._processes.index(process), words))

    def look(self) -> None:
        """At all members, now."""
        self.times.append(self.seconds)
        self.sights.append(
            [Sight(process.rate, process.report.get("view") or 0) for process in self._processes]
        )

    async def record(self) -> None:
        """Until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY)
