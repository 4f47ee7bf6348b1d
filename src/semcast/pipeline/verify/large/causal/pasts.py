"""What causally precedes what in views: `specs.vsync.pasts`, for runs of any size.

m precedes m' if a process delivers m before it multicasts m', or through others so. Where everybody who
delivers m' has delivered as much as its sender had, what precedes is what was delivered. Where somebody has
not, it has heard a rumour; rumours are few, and are followed until there are no new ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from semcast.pipeline.verify.large.causal.arrays import Ints, by_key
from semcast.pipeline.verify.large.causal.field import Field
from semcast.pipeline.verify.large.causal.heard import Fault, alone
from semcast.pipeline.verify.large.causal.rumours import RUMOUR, learned, reach, spread
from semcast.pipeline.verify.large.causal.strips import Strip

MOST_MET = 10_000_000
"""So many rumours of one run the driver looks at, most of which say no more than others."""

MOST_RUMOURS = 4_000_000
"""And so many it has followed at a time."""

MOST_ROUNDS = 30

_CARRIED, _LATE, _CIRCLE = 0, 1, 2
_FOUND = ("path", "kind", "seat", "first", "last", "more")


class Pasts:
    """The views of some runs."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.course = field.course
        self._faults: dict[tuple[int, int, int, int], Fault] = {}
        self.circles: set[str] = set()
        """The runs in which precedence runs in a circle."""

        self.unknown: dict[str, str] = {}
        """By run, why it is not known what precedes what there."""

        self.rumours = np.zeros((4, 0), np.int64)
        """In order."""

        self._find_alone()
        self._find_rumours()

    def faults(self) -> Iterator[tuple[int, Fault]]:
        """With their paths. Where one is in a circle that is all that is said of it: what is late there?"""
        circles: set[int] = set()
        for (path, *_), fault in sorted(self._faults.items(), key=lambda item: (not item[1].circle, item[0])):
            if path not in circles:
                yield path, fault
            if fault.circle:
                circles.add(path)

    def open(self) -> list[int]:
        """The paths of runs in which it is known, or was until now, what precedes what."""
        closed = self.circles | self.unknown.keys()
        return [number for number, path in enumerate(self.course.paths) if path.run not in closed]

    def _find_alone(self) -> None:
        course = self.course

        def find(number: int, strip: Strip) -> Ints:
            return _fault_rows(course.path[number], alone(strip, course.start[number]))

        found = self.field.along(self.open(), find, _FOUND, MOST_RUMOURS)
        if found.shape[1] > MOST_RUMOURS:
            self._give_up(np.array(self.open()), f"there are more than {MOST_RUMOURS} faults")
        self._accuse(found)

    def _find_rumours(self) -> None:
        self._refuse(self.field.meet(self.open()), MOST_MET)
        self.rumours, fresh = learned(self.rumours, self.field.met(self.open()))
        self._refuse(Counter(fresh[0].tolist()), MOST_RUMOURS)
        fresh = self._of_open(fresh)
        for _ in range(MOST_ROUNDS):
            if not fresh.shape[1]:
                return
            self.rumours, fresh = learned(self.rumours, self._pass_on(fresh))
        self._give_up(fresh[0], f"what was heard of is passed on more than {MOST_ROUNDS} times")

    def _pass_on(self, fresh: Ints) -> Ints:
        """Where news (path, seat, index, value, until) are heard next, if they are not yet known there."""
        course, by_path = self.course, by_key(fresh)

        def follow(number: int, strip: Strip) -> Ints:
            path = course.path[number]
            own = course.paths[path].own
            carried, faults = spread(strip, course.start[number], own, by_path[path])
            seat, value, first, last = carried
            same, kind = np.full((2, len(seat)), [[path], [_CARRIED]])
            rows = np.stack((same, kind, seat, first, last, value))
            return np.concatenate((rows, _fault_rows(path, faults)), axis=1)

        found = self.field.along(by_path, follow, _FOUND, MOST_RUMOURS)
        if found.shape[1] > MOST_RUMOURS:
            self._give_up(fresh[0], f"what was heard of is passed on by more than {MOST_RUMOURS} messages")
        self._accuse(found[:, found[1] != _CARRIED])
        return self._tell(self._of_open(found[:, found[1] == _CARRIED]))

    def _tell(self, carried: Ints) -> Ints:
        """Where messages (path, _, seat, first, last, value) that carry rumours are delivered as news."""
        course = self.course
        path, _, seat, first, last, value = carried
        scope, own = (
            np.array([getattr(each, name) for each in course.paths])[path] for name in ("scope", "own")
        )
        by_scope = by_key(np.stack((scope, own, seat, value, first, last)))

        def hear(number: int, strip: Strip) -> Ints:
            path = course.path[number]
            found = reach(strip, course.start[number], by_scope[course.paths[path].scope])
            return np.concatenate((np.full((1, found.shape[1]), path), found))

        paths = [number for number, each in enumerate(course.paths) if each.scope in by_scope]
        told = self.field.along(paths, hear, RUMOUR, MOST_RUMOURS)
        if told.shape[1] > MOST_RUMOURS:
            self._give_up(carried[0], f"what was heard of is heard more than {MOST_RUMOURS} times")
        return self._of_open(told)

    def _refuse(self, many: Mapping[int, int], most: int) -> None:
        """Runs with more rumours than the driver may hold."""
        runs = Counter[str]()
        for path, number in many.items():
            runs[self.course.paths[path].run] += number
        for run, number in runs.items():
            if number > most:
                self.unknown[run] = (
                    f"{number} times who delivered a message had not delivered what its sender had, "
                    f"and more than {most} are not followed"
                )

    def _give_up(self, paths: Ints, reason: str) -> None:
        self.unknown.update((self.course.paths[path].run, reason) for path in np.unique(paths).tolist())

    def _accuse(self, rows: Ints) -> None:
        for path, kind, seat, first, last, index in rows.T.tolist():
            circle, key = kind == _CIRCLE, (path, index, seat, first)
            known = self._faults.get(key)
            if known is None or known.last < last:
                self._faults[key] = Fault(index, seat, first, last, circle)
            if circle:
                self.circles.add(self.course.paths[path].run)

    def _of_open(self, rows: Ints) -> Ints:
        """Of rows that begin with a path those of open ones."""
        return rows[:, np.isin(rows[0], self.open())]


def _fault_rows(path: int, faults: list[Fault]) -> Ints:
    rows = [
        (path, _CIRCLE if fault.circle else _LATE, fault.seat, fault.first, fault.last, fault.index)
        for fault in faults
    ]
    return np.array(rows, np.int64).reshape(-1, len(_FOUND)).T
