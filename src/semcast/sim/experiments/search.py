"""Searching for thresholds."""

from collections.abc import Callable


def lowest(fits: Callable[[float], bool], low: float, high: float, finest: float) -> float:
    """The lowest value up to `high` that fits, to within `finest`, where every higher one fits too.

    >>> lowest(lambda value: value >= 3, 0, 8, 0.5)
    3.0
    """
    if fits(low):
        return low
    while high - low > finest:
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
