"""Clocks and chance for programs, while a world runs: what they read is virtual, and drawn from the seed.

The library gets these through its `Machine`. A program that calls `time.monotonic()`, `random.random()` or
`uuid.uuid4()` gets them through these stand-ins, which are there only while virtual time passes.
"""

import gc
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import NoReturn

from semcast.core.ids import SECOND, Nanos
from semcast.testing.errors import WorldError

EPOCH: Nanos = 1_767_225_600 * SECOND
"""The time of day at which every world begins: 1 January 2026, 0:00 UTC."""


class StandIns:
    """Of one world.

    Args:
        rng: draws what programs draw.
        now: virtual time.
    """

    def __init__(self, rng: Random, now: Callable[[], Nanos]) -> None:
        self._random = Random(rng.getrandbits(64)).getstate()
        self._bytes = Random(rng.getrandbits(64)).randbytes
        self._now = now

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """They are what programs see, until the block ends. Nothing is collected meanwhile, either.

        When garbage is collected depends on all that a process did before; what is collected may act.
        """
        replaced = [(place, name, getattr(place, name)) for place, name, _ in self._table()]
        collects, state = gc.isenabled(), random.getstate()
        gc.disable()
        random.setstate(self._random)
        for place, name, instead in self._table():
            setattr(place, name, instead)
        try:
            yield
        finally:
            for place, name, real in replaced:
                setattr(place, name, real)
            self._random = random.getstate()
            random.setstate(state)
            if collects:
                gc.enable()

    def _table(self) -> list[tuple[object, str, Callable[..., object]]]:
        now = self._now
        return [
            (time, "time", lambda: (EPOCH + now()) / SECOND),
            (time, "time_ns", lambda: EPOCH + now()),
            (time, "monotonic", lambda: now() / SECOND),
            (time, "monotonic_ns", now),
            (time, "perf_counter", lambda: now() / SECOND),
            (time, "perf_counter_ns", now),
            (time, "sleep", _sleep),
            (os, "urandom", self._bytes),
            (random, "_urandom", self._bytes),  # what `secrets` and `SystemRandom` draw from
        ]


def _sleep(_seconds: float) -> NoReturn:
    raise WorldError("time.sleep stops the whole world, and lets no virtual time pass: await asyncio.sleep")
