"""A small market, made up: prices of some instruments, a few of them traded much more than the rest."""

from collections.abc import Iterator
from random import Random

INSTRUMENTS = 24


def quotes(seed: int = 1) -> Iterator[tuple[str, float]]:
    """Instrument and price, for ever."""
    rng = Random(seed)
    names = [f"STK{number:02}" for number in range(INSTRUMENTS)]
    weights = [1 / (place + 1) for place in range(INSTRUMENTS)]
    prices = {name: round(rng.uniform(20, 200), 2) for name in names}
    while True:
        [name] = rng.choices(names, weights)
        prices[name] = max(1.0, round(prices[name] + rng.gauss(0, 0.2), 2))
        yield name, prices[name]
