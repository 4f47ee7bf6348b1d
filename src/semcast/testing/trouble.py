"""Trouble that is drawn: what befalls a world in a while, and ends with it."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, get_args

from semcast.testing.errors import WorldError
from semcast.testing.world import World

Fault = Literal["partition", "loss", "delay", "slow", "pause", "crash"]
"""What may happen to a world."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
_PAUSES = (0.2, 4.0)
"""Seconds between one thing and the next, from and to."""


def trouble(world: World, seconds: float, faults: Sequence[Fault] = FAULTS) -> None:
    """Let time pass in which things go wrong, drawn from the seed of the world; then all is mended.

    Programs that crash are started again, sooner or later. Messages that wait when it ends may take a while
    to arrive.

    Args:
        world: that it happens to.
        seconds: how long it lasts.
        faults: what may happen.
    """
    unknown = [each for each in faults if each not in FAULTS]
    if unknown or not faults:
        raise WorldError(f"faults {', '.join(unknown) or 'none'}: choose from {', '.join(FAULTS)}")
    drawn = _Drawn(world)
    end = world.now + seconds
    while (left := end - world.now) > 0:
        world.sleep(min(left, drawn.rng.uniform(*_PAUSES)))
        if world.now < end:
            drawn.befall(drawn.rng.choice(list(faults)))
    drawn.mend()


class _Drawn:
    """What is wrong just now."""

    def __init__(self, world: World) -> None:
        self.rng = Random(world.rng.getrandbits(64))
        self._world = world
        self._mending: dict[str, Callable[[], object]] = {}

    def befall(self, fault: Fault) -> None:
        """Something happens, or what happened before is mended."""
        world, rng = self._world, self.rng
        host = rng.choice(world.hosts)
        key = fault if fault == "partition" else f"{fault} {host}"
        if key in self._mending:
            self._mending.pop(key)()
        elif fault == "partition":
            if len(world.hosts) > 1:
                world.partition(rng.sample(world.hosts, rng.randrange(1, len(world.hosts))))
                self._mending[key] = world.heal
        elif fault == "loss":
            world.lose(rng.choice((0.01, 0.1, 0.3)), host)
            self._mending[key] = lambda: world.lose(0.0, host)
        elif fault == "delay":
            world.delay(host, rng.choice((0.001, 0.02, 0.2)))
            self._mending[key] = lambda: world.delay(host, 0.0)
        elif fault == "slow":
            world.slow(host, rng.choice((0.001, 0.01, 0.1)))
            self._mending[key] = lambda: world.slow(host, 0.0)
        elif fault == "pause":
            world.pause(host)
            self._mending[key] = lambda: world.resume(host)
        elif any(process.host.name == host for process in world.processes):
            world.crash(host)
            self._mending[key] = lambda: world.restart(host)

    def mend(self) -> None:
        """All of it, in the order in which it happened."""
        while self._mending:
            self._mending.pop(next(iter(self._mending)))()
