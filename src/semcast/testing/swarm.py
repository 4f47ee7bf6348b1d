"""`@swarm`: one test, many seeds. A seed that fails says how to see it again."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

from semcast.testing.errors import WorldError
from semcast.testing.world import World

SEED = "SEMCAST_TEST_SEED"
"""The variable that names the only seed to run."""
Test = Callable[..., None]


def swarm(
    seeds: int | Iterable[int] = 100, *, hosts: int | Iterable[str] = 3, **conditions: float
) -> Callable[[Test], Test]:
    """Run a test once for each seed, in a new world each time; the test takes that `world`.

    ```python
    @semcast.testing.swarm(seeds=100)
    def test_all_agree(world: World) -> None: ...
    ```

    Args:
        seeds: which, or how many, from 0 on. `SEMCAST_TEST_SEED=17` runs seed 17 alone.
        hosts: as for `World`.
        conditions: of the network, as for `World`: latency, jitter, loss, duplication.
    """
    wanted = range(seeds) if isinstance(seeds, int) else tuple(seeds)
    names = hosts if isinstance(hosts, int) else tuple(hosts)
    if not wanted:
        raise WorldError("a swarm without seeds")

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        if "world" not in signature.parameters:
            raise WorldError(f"{test.__name__} takes no `world`: a swarm gives it one for each seed")
        if inspect.iscoroutinefunction(test):
            raise WorldError(f"{test.__name__} is async: a script of a world is a plain function")

        @functools.wraps(test)
        def each(*arguments: Any, **named: Any) -> None:
            for seed in _chosen(wanted):
                with World(seed, names, **conditions) as world:
                    try:
                        test(*arguments, world=world, **named)
                    except BaseException as error:
                        error.add_note(f"seed {seed} failed; run it alone: {SEED}={seed} {_command(test)}")
                        raise

        rest = [each for name, each in signature.parameters.items() if name != "world"]
        each.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return each

    return decorate


def _chosen(seeds: Iterable[int]) -> Iterable[int]:
    alone = os.environ.get(SEED)
    if alone is None:
        return seeds
    if not alone.isdecimal():
        raise WorldError(f"{SEED}={alone!r}: the number of a seed is wanted")
    return (int(alone),)


def _command(test: Test) -> str:
    file = inspect.getsourcefile(test) or "FILE"
    return f"pytest {os.path.relpath(file)}::{test.__qualname__}"
