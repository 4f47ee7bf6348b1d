"""Virtual time: a heap of things to do, and nothing that depends on anything but their order."""

import heapq
from collections.abc import Callable
from typing import Any

from semcast.core.ids import Nanos


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
        while heap and heap[0][0] <= until:
            self.now, _, call, args = pop(heap)
            self.steps += 1
            call(*args)
        self.now = max(self.now, until)

    def next_at(self) -> Nanos | None:
        """When the next thing is due."""
        return self._heap[0][0] if self._heap else None
