"""Processes that take their steps together where they must, and stop where they never can.

A path is the steps of one process in order. A step that is in several paths is taken by all of them at
the same moment, and some steps come after another one. Seen as a graph, with the same steps merged, the
steps never taken are those in a circle or behind one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain


class Walk:
    """How far the processes come.

    >>> walk = Walk([[1, 2, 3], [2, 1, 4]], {})
    >>> walk.taken, sorted(walk.stuck), walk.circle()
    ([], [1, 2, 3, 4], [(0, 1), (1, 2)])
    """

    def __init__(self, paths: Sequence[Sequence[int]], after: Mapping[int, int]) -> None:
        self._paths = paths
        self._after = after
        self._at = [0] * len(paths)
        self.taken: list[tuple[int, list[int]]] = []
        """The steps that were taken, in an order that all paths agree with, and by which paths."""

        self._go()

    @cached_property
    def stuck(self) -> set[int]:
        """The steps that were not taken."""
        return {step for path, at in zip(self._paths, self._at, strict=True) for step in path[at:]}

    def circle(self) -> list[tuple[int, int]]:
        """Numbers of paths and the steps they wait at, each behind the next and the last behind the first.

        Only where something is stuck.
        """
        number = next(n for n, path in enumerate(self._paths) if self._at[n] < len(path))
        seen: dict[int, int] = {}
        trail: list[tuple[int, int]] = []
        while (step := self._paths[number][self._at[number]]) not in seen:
            seen[step] = len(trail)
            trail.append((number, step))
            number = self._holding_up(step)
        return trail[seen[step] :]

    def _holding_up(self, step: int) -> int:
        """The path that has yet to come to a step, or to the one it comes after."""
        for number, path in enumerate(self._paths):
            ahead = path[self._at[number] + 1 :]
            if step in ahead:
                return number
        wanted = self._after[step]
        return next(n for n, path in enumerate(self._paths) if wanted in path[self._at[n] :])

    def _go(self) -> None:
        paths, at, after = self._paths, self._at, self._after
        expected = Counter(chain.from_iterable(paths))
        arrived: dict[int, list[int]] = {}
        waiting: dict[int, list[int]] = {}
        done: set[int] = set()
        ready = list(range(len(paths)))[::-1]
        while ready:
            number = ready.pop()
            if at[number] == len(paths[number]):
                continue
            step = paths[number][at[number]]
            here = arrived.setdefault(step, [])
            here.append(number)
            if len(here) < expected[step]:
                continue
            first = after.get(step)
            if first is not None and first not in done:
                waiting.setdefault(first, []).append(step)
                continue
            # What waited for a step is not waited for itself: only sends are, and they wait for nothing.
            for now in (step, *waiting.pop(step, ())):
                here = arrived.pop(now)
                done.add(now)
                self.taken.append((now, here))
                for other in here:
                    at[other] += 1
                ready.extend(here)
