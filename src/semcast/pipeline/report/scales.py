"""Axes: where a value goes, and which values are written beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high` in values, from `start` to `end` in pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value goes."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        at = math.log(max(value, self.low)) if self.log else value
        return self.start + (self.end - self.start) * (at - low) / (high - low)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values in a range, about so many.

    >>> ticks(0, 100)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> ticks(0.1, 0.45)
    [0.1, 0.2, 0.3, 0.4]
    """
    step = _step((high - low) / about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def swept(values: Sequence[float], scale: Scale, apart: float = 36.0) -> list[float]:
    """The values of a parameter, if they are few and none too close to the next; else round ones."""
    unique = sorted(set(values))
    places = [scale(value) for value in unique]
    if len(unique) <= 12 and all(right - left >= apart for left, right in pairwise(places)):
        return unique
    return ticks(min(unique), max(unique), 6)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 of every power of ten in a range, or the powers alone where those are many.

    >>> log_ticks(1, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 3 else (1,)
    found = [float(step * 10.0**power) for power in powers for step in steps]
    return [value for value in found if low <= value <= high]


def widened(values: Sequence[float], *, zero: bool) -> tuple[float, float]:
    """A range that holds the values, and is never empty.

    >>> widened([3, 100], zero=True)
    (0.0, 100.0)
    >>> widened([], zero=False)
    (0.0, 1.0)
    """
    if not values:
        return 0.0, 1.0
    low, high = float(min(values)), float(max(values))
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if low == high:
        return (low, low + 1.0) if low >= 0 else (low, low + abs(low))
    return low, high


def rounded_up(high: float, about: int = 5) -> float:
    """The end of an axis from 0 that has a tick there.

    >>> rounded_up(1942.8), rounded_up(100.0)
    (2000.0, 100.0)
    """
    step = _step(high / about)
    return round(math.ceil(high / step - 1e-9) * step, 12)


def shown(value: float, digits: int = 4) -> str:
    """A number as people write it.

    >>> shown(11696), shown(99.97072), shown(0.0107), shown(-0.0)
    ('11,696', '99.97', '0.0107', '0')
    """
    if not math.isfinite(value):
        return f"{value}".replace("inf", "∞").replace("nan", "-")
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(places, 9)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def percent(value: float) -> str:
    """A share.

    >>> percent(0.4188), percent(0.5)
    ('41.9 %', '50 %')
    """
    return f"{shown(100 * value, 3)} %"


def signed(share: float) -> str:
    """A share more or less.

    >>> signed(-0.0931), signed(0.0)
    ('-9.3 %', '+0.0 %')
    """
    return f"{100 * share:+.1f} %".replace("-0.0 %", "+0.0 %")


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * (1 - 1e-9))
