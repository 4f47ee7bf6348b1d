"""Virtual time: a heap of things to do, and nothing that depends on anything but their order."""

import gc
import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from semcast.core.ids import Nanos

_YOUNG = 50_000
"""Objects that are made between two looks for garbage while time runs."""


class Scheduler:
    """Calls what is due in order of time; ties go in the order they were asked for."""

    def __init__(self) -> None:
        self.now: Nanos = 0
        self._heap: list[tuple[Nanos, int, Callable[..., None], tuple[Any, ...]]] = []
        self._tie = 0
        self.steps = 0

    def at(self, when: Nanos, call: Callable[..., None], *args: Any) -> None:
        """Call `call(*args)` at `when`, or now if that has passed."""
        self._tie += 1
        heapq.heappush(self._heap, (when if when > self.now else self.now, self._tie, call, args))

    def run(self, until: Nanos) -> None:
        """Run everything due up to `until`, and leave the clock there."""
        heap = self._heap
        pop = heapq.heappop
        with _few_collections():
            while heap and heap[0][0] <= until:
                self.now, _, call, args = pop(heap)
                self.steps += 1
                call(*args)
        self.now = max(self.now, until)

    def next_at(self) -> Nanos | None:
        """When the next thing is due."""
        return self._heap[0][0] if self._heap else None


@contextmanager
def _few_collections() -> Iterator[None]:
    """Simulated hosts leave hardly any cycles, and are many objects to look through for some."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _YOUNG) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
