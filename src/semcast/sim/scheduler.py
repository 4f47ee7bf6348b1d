"""Virtual time: a heap of things to do, and nothing that depends on anything but their order."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

from semcast.core.ids import SECOND, Nanos

_YOUNG = 400_000
"""Objects that are made between two looks for garbage while time runs: hardly any is garbage by then."""
_OLD = 1000
"""Looks at less than everything between two at everything, which takes seconds where hosts are many."""


class EndlessRunError(RuntimeError):
    """More happens than a run may take: it would go on without end."""


class Scheduler:
    """Calls what is due in order of time; ties go in the order they were asked for.

    Args:
        most: things that may happen in the whole run, then `EndlessRunError`; 0 for any number.
    """

    def __init__(self, most: int = 0) -> None:
        self.now: Nanos = 0
        self._most = most or sys.maxsize
        self._heap: list[tuple[Nanos, int, Callable[..., None], tuple[Any, ...]]] = []
        self._tie = 0
        self.steps = 0

    def at(self, when: Nanos, call: Callable[..., None], *args: Any) -> None:
        """Call `call(*args)` at `when`, or now if that has passed."""
        self._tie += 1
        heappush(self._heap, (when if when > self.now else self.now, self._tie, call, args))

    def run(self, until: Nanos) -> None:
        """Run everything due up to `until`, and leave the clock there."""
        heap, most = self._heap, self._most
        with _few_collections():
            while heap and heap[0][0] <= until:
                self.now, _, call, args = heappop(heap)
                self.steps += 1
                call(*args)
                if self.steps > most:
                    raise EndlessRunError(f"does not end: {most} steps, and {self.now / SECOND:.3f} s passed")
        self.now = max(self.now, until)

    def next_at(self) -> Nanos | None:
        """When the next thing is due."""
        return self._heap[0][0] if self._heap else None


@contextmanager
def _few_collections() -> Iterator[None]:
    """Simulated hosts leave hardly any cycles, and are many objects to look through for some."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _YOUNG) if before[0] else 0, before[1], max(before[2], _OLD))
    try:
        yield
    finally:
        gc.set_threshold(*before)
