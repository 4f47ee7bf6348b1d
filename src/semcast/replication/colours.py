"""The colours of actions at one server (Amir 1995, 6.1 and figure 6.19).

Red: known, and no place in the order yet. Green: the place is known. A cut says how many actions of each
creator are known; a gap is an error, not something to drop. Yellow is in the books: it is a set of reds.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from struct import pack

import msgspec

from semcast.replication.actions import Run, RunId, red_key
from semcast.replication.ids import Creator, Number

NOTHING = b""
"""The chain hash before the first action."""


class Painted(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The colours as they are written down, but for the green runs that are kept."""

    start: Number
    digest: bytes
    """The chain hash at the start."""
    cut: list[tuple[Creator, Number]]
    """The last green action of each creator there."""
    clock: Number
    reds: list[Run] = []


class GapError(Exception):
    """An action came before one that its creator made earlier: the group communication broke its promise."""


class Colours:
    """Which actions this server knows, and in which order those are that have a place."""

    def __init__(self) -> None:
        self.cut: dict[Creator, int] = {}
        """red_cut: the last known action of each creator."""
        self.reds: dict[RunId, Run] = {}
        """In order of arrival."""
        self.arrivals = 0
        """How many runs were red when they came, and which of them each of the reds is."""
        self.arrived: dict[RunId, int] = {}
        self.line = 0
        """The green line: the position of the last green action."""
        self.digest = NOTHING
        """Chain hash of the green actions: two servers with equal lines have equal hashes."""
        self.clock = 0
        """The highest Lamport clock of any known action."""
        self._green_cut: dict[Creator, int] = {}
        self._greens: list[Run] = []  # from `start` on
        self._ends: list[int] = []  # the position of the last action of each
        self._hashes: list[bytes] = []  # the chain hash after each
        self._sizes: list[int] = []  # the bytes of all green actions since the start of this process, there
        self._size = self._start_size = 0
        self._start = 0, NOTHING  # where `_greens` begins
        self._start_cut: dict[Creator, int] = {}  # the last green action of each creator there

    @property
    def start(self) -> int:
        """The actions up to this position are not kept any more."""
        return self._start[0]

    def is_green(self, run: RunId) -> bool:
        """Whether it has a place here."""
        return run[1] <= self._green_cut.get(run[0], 0)

    def knows(self, creator: Creator, index: int) -> bool:
        """Whether an action is known here."""
        return index <= self.cut.get(creator, 0)

    def has_green(self, creator: Creator, index: int) -> bool:
        """Whether an action has a place here."""
        return index <= self._green_cut.get(creator, 0)

    def mark_red(self, run: Run) -> bool:
        """It is known from now on; returns whether it was not before."""
        known = self.cut.get(run.creator, 0)
        if run.first <= known:
            return False
        if run.first > known + 1:
            raise GapError(f"{run} after {known}")
        self.cut[run.creator] = run.last
        self.reds[run.id] = run
        self.arrivals += 1
        self.arrived[run.id] = self.arrivals
        self.clock = max(self.clock, run.clock)
        return True

    def mark_green(self, run: Run) -> int:
        """It is next in the order; returns the position of its first action, 0 if it had one before."""
        if run.last <= self._green_cut.get(run.creator, 0):
            return 0
        if self.reds.pop(run.id, None):
            del self.arrived[run.id]
        else:
            known = self.cut.get(run.creator, 0)
            if run.first != known + 1:
                raise GapError(f"{run} after {known}")
            self.cut[run.creator] = run.last
            self.clock = max(self.clock, run.clock)
        self._green_cut[run.creator] = run.last
        position = self.line + 1
        self._append(run)
        return position

    def _append(self, run: Run) -> None:
        self.line += len(run.actions)
        together = b"".join(run.actions)
        self.digest = chained(self.digest, run, together)
        self._size += len(together)
        self._greens.append(run)
        self._ends.append(self.line)
        self._hashes.append(self.digest)
        self._sizes.append(self._size)

    def in_red_order(self) -> list[Run]:
        """The reds, as they would turn green (OR-2)."""
        return sorted(self.reds.values(), key=red_key)

    # The green ones by position

    def after(self, position: int) -> Iterator[tuple[int, Run]]:
        """Green runs behind a position, each with the position of its first action."""
        place = bisect_right(self._ends, position)
        for end, run in zip(self._ends[place:], self._greens[place:], strict=True):
            yield end - len(run.actions) + 1, run

    def between(self, position: int, line: int, most: int) -> Sequence[tuple[int, Run]]:
        """Green runs behind a position, up to a line, and no more than so many."""
        low = bisect_right(self._ends, position)
        high = min(bisect_right(self._ends, line), low + most)
        return [
            (end - len(run.actions) + 1, run)
            for end, run in zip(self._ends[low:high], self._greens[low:high], strict=True)
        ]

    def bytes_behind(self, position: int) -> int:
        """Bytes of the green actions behind a position, as far as whole runs go."""
        place = bisect_right(self._ends, position)
        return self._size - (self._sizes[place - 1] if place else self._start_size)

    def digest_at(self, line: int) -> bytes | None:
        """The chain hash at a line; None where that is not known (any more), or not between runs."""
        if line == self._start[0]:
            return self._start[1]
        place = bisect_left(self._ends, line)
        found = place < len(self._ends) and self._ends[place] == line
        return self._hashes[place] if found else None

    def written(self) -> Painted:
        """To be written down, together with the green runs after the start."""
        start, digest = self._start
        return Painted(start, digest, list(self._start_cut.items()), self.clock, list(self.reds.values()))

    @classmethod
    def begun(cls, painted: Painted) -> "Colours":
        """As they were at the start: what is behind it has to be marked again."""
        colours = cls()
        colours._start = colours.line, colours.digest = painted.start, painted.digest
        colours._start_cut = dict(painted.cut)
        colours.cut, colours._green_cut = dict(painted.cut), dict(painted.cut)
        colours.clock = painted.clock
        return colours

    def keep_reds(self, former: "Colours") -> list[Run]:
        """Go on with the reds that were known before; returns those that are green by now."""
        self.arrivals, self.clock = former.arrivals, max(self.clock, former.clock)
        overtaken: list[Run] = []
        for run in former.reds.values():
            if self.is_green(run.id):
                overtaken.append(run)
            else:
                self.cut[run.creator] = run.last
                self.reds[run.id] = run
                self.arrived[run.id] = former.arrived[run.id]
        return overtaken

    def trim(self, line: int) -> None:
        """Forget the actions themselves up to a line, as far as whole runs go."""
        place = bisect_right(self._ends, line)
        if place:
            self._start = self._ends[place - 1], self._hashes[place - 1]
            self._start_size = self._sizes[place - 1]
            for run in self._greens[:place]:
                self._start_cut[run.creator] = run.last
            del self._greens[:place], self._ends[:place], self._hashes[:place], self._sizes[:place]


def chained(digest: bytes, run: Run, together: bytes) -> bytes:
    """The chain hash with one more run, whose actions are these bytes."""
    chain = blake2b(digest, digest_size=16)
    chain.update(f"{run.creator} {run.first} {len(run.actions)}".encode())
    chain.update(pack(f"<{len(run.actions)}I", *map(len, run.actions)))
    chain.update(together)
    return chain.digest()
