"""Obsolescence distance, and traffic that has it.

(Pereira 2002, sections 5.1.1 and 5.3.1; Pereira 2000, sections 4.2, 4.3 and 5.2.)

D is the distance from a message back to the latest message that it makes obsolete, and 0 where there is
none. A buffer that holds the last N messages finds that one with probability R_N = P(1 <= D <= N).

The second paper writes f_{r,d} with 1/r where the first, followed here, writes r.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Protocol

Key = Hashable | None
"""The item that a message overwrites; None where it neither replaces nor is replaced."""


class Distance(Protocol):
    """The distribution of D."""

    def pmf(self, x: int) -> float:
        """P(D = x), where x = 0 stands for "makes nothing obsolete"."""

    def purge_ratio(self, n: int) -> float:
        """R_N: the share of messages that make another one obsolete, `n` back at most."""


@dataclass(frozen=True, slots=True)
class Frd:
    """f_{r,d} (5.3.1): a share `r` of messages overwrites one of `d` items, all equally likely.

    >>> round(Frd(r=0.5, d=5).purge_ratio(20), 4)
    0.4392
    """

    r: float
    d: int

    def __post_init__(self) -> None:
        if not 0 <= self.r <= 1:
            raise ValueError(f"r is a share between 0 and 1, not {self.r}")
        if self.d < 1:
            raise ValueError(f"d counts items: at least 1, not {self.d}")

    def pmf(self, x: int) -> float:
        """P(D = x)."""
        if x == 0:
            return 1 - self.r
        return self.r * _geometric(self.r / self.d, x)

    def purge_ratio(self, n: int) -> float:
        """R_N, which approaches r."""
        return self.r * _within(self.r / self.d, n)

    def keys(self, rng: Random) -> Iterator[Key]:
        """Traffic with this distance, without end."""
        draw, r, d = rng.random, self.r, self.d
        while True:
            yield int(draw() * d) if draw() < r else None


@dataclass(frozen=True, slots=True)
class StockClass:
    """A number of items, equally likely, that together take a share of all updates."""

    items: int
    share: float


TRADING = (StockClass(25, 0.5), StockClass(100, 0.4), StockClass(750, 0.1))
"""Pereira 2000, table 1: few stocks take most operations."""


@dataclass(frozen=True, slots=True)
class Stock:
    """Classes of items (Pereira 2000, section 5.2): every message overwrites an item of some class.

    >>> [round(Stock().purge_ratio(n), 2) for n in (10, 20, 30)]
    [0.11, 0.2, 0.27]
    """

    classes: tuple[StockClass, ...] = TRADING

    def __post_init__(self) -> None:
        if any(entry.items < 1 for entry in self.classes):
            raise ValueError("every class holds at least 1 item")
        if not all(0 <= entry.share <= 1 for entry in self.classes):
            raise ValueError("every class takes a share between 0 and 1")
        total = sum(entry.share for entry in self.classes)
        if not math.isclose(total, 1, abs_tol=1e-9):
            raise ValueError(f"the shares of the classes must sum to 1, not {total:g}")

    def pmf(self, x: int) -> float:
        """P(D = x); every item comes again, so P(D = 0) = 0."""
        if x == 0:
            return 0.0
        return sum(entry.share * _geometric(entry.share / entry.items, x) for entry in self.classes)

    def purge_ratio(self, n: int) -> float:
        """R_N, which approaches 1."""
        return sum(entry.share * _within(entry.share / entry.items, n) for entry in self.classes)

    def keys(self, rng: Random) -> Iterator[Key]:
        """Traffic with this distance, without end."""
        draw = rng.random
        bounds = list(accumulate(entry.share for entry in self.classes))[:-1]
        sizes = [entry.items for entry in self.classes]
        starts = [0, *accumulate(sizes)]
        while True:
            drawn = bisect_right(bounds, draw())
            yield starts[drawn] + int(draw() * sizes[drawn])


class Empirical:
    """What was counted in a trace: how many messages have which distance.

    >>> Empirical({0: 3, 1: 1}).purge_ratio(10)
    0.25
    """

    __slots__ = ("_counts", "_distances", "_messages", "_within")

    def __init__(self, histogram: Mapping[int, int]) -> None:
        if any(x < 0 or count < 0 for x, count in histogram.items()):
            raise ValueError("distances and counts are not negative")
        self._counts = dict(histogram)
        self._messages = sum(histogram.values())
        if self._messages == 0:
            raise ValueError("a histogram without messages says nothing")
        self._distances = sorted(x for x in histogram if x > 0)
        self._within = [0, *accumulate(histogram[x] for x in self._distances)]

    @classmethod
    def of_keys(cls, keys: Iterable[Key]) -> "Empirical":
        """From the items of consecutive messages; None where a message overwrites nothing."""
        return cls(distances(keys))

    def pmf(self, x: int) -> float:
        """The share of messages with distance `x`."""
        return self._counts.get(x, 0) / self._messages

    def purge_ratio(self, n: int) -> float:
        """R_N: the share of messages with a distance from 1 to `n`."""
        return self._within[bisect_right(self._distances, n)] / self._messages


def distances(keys: Iterable[Key]) -> dict[int, int]:
    """The histogram of D over consecutive messages, given the item of each (None: overwrites nothing).

    >>> distances(["a", None, "a", "b", "a"])
    {0: 3, 2: 2}
    """
    counts = {0: 0}
    latest: dict[Hashable, int] = {}
    for position, key in enumerate(keys):
        distance = 0
        if key is not None:
            distance = position - latest.get(key, position)
            latest[key] = position
        counts[distance] = counts.get(distance, 0) + 1
    return counts


def _geometric(p: float, x: int) -> float:
    """The probability that the first success of many trials is the `x`-th."""
    return float((1 - p) ** (x - 1) * p)


def _within(p: float, n: int) -> float:
    """The probability of a success among `n` trials."""
    return float(1 - (1 - p) ** n)
