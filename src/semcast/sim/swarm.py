"""Swarms: many drawn scenarios, each checked against everything its stack promises."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from random import Random

import msgspec

from semcast.extensions import load_families
from semcast.sim.bursts import draw_bursts, with_waiting
from semcast.sim.families import FAMILIES
from semcast.sim.flow_scenario import draw_bytes, with_large, with_programs
from semcast.sim.judges import judge
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.scheduler import EndlessRunError
from semcast.sim.simulate import RunOutcome, simulate
from semcast.specs import Status, Verdict, check


class Finding(msgspec.Struct):
    """What one seed showed."""

    scenario: Scenario
    outcome: RunOutcome
    broken: list[str]
    """What did not hold, in words; empty for a clean run."""

    @property
    def clean(self) -> bool:
        """Whether everything held."""
        return not self.broken


_PATIENCE, _LEAST = 10, 100_000
"""A mutant may take so many times the steps of the real thing, and so many at least; then it is caught."""


def examine(scenario: Scenario, mutant: Mutant | None = None, most: int = 0) -> Finding:
    """Run one scenario, in so many steps at most, and check it."""
    outcome = simulate(scenario, mutant, most)
    broken = [
        str(verdict) for history in (outcome.history, *outcome.beside) for verdict in violated(check(history))
    ]
    return Finding(scenario, outcome, broken + judge(scenario, outcome))


def violated(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say that something is broken."""
    return [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]


class SeedReport(msgspec.Struct):
    """A finding without its history: small enough to come from another process."""

    seed: int
    scenario: str
    broken: list[str]
    steps: int = 0
    """Of the simulator, where the run has ended."""


def scenario_of(stack: str, seed: int, fixed: Fixed | None = None) -> Scenario:
    """What a seed stands for, with something of it fixed where the family offers that.

    Inputs and messages come in bursts, as they do live, and programs do more than read: that is drawn apart,
    for all stacks alike.
    """
    family = FAMILIES.of(stack)
    drawn = family.draw(seed, fixed)
    bursts = draw_bursts(Random(f"bursts/{stack}/{seed}"))
    bursts = with_waiting(Random(f"waiting/{stack}/{seed}"), seed, bursts)
    drawn = msgspec.structs.replace(drawn, bursts=bursts)
    rng = Random(f"programs/{stack}/{seed}")
    if family.tighten is None or rng.random() < 0.6:
        return drawn
    drawn = with_programs(rng, family.tighten(drawn, rng))
    rng = Random(f"bytes/{stack}/{seed}")
    if family.narrow is None or rng.random() < 0.6:
        return drawn
    return family.narrow(with_large(rng, drawn), draw_bytes(rng))


def report(
    seed: int, stack: str, mutant: str | None, fixed: Fixed | None = None, most: int = 0
) -> SeedReport:
    """Examine one seed. This may be another process, which knows only what it loads."""
    load_families()
    scenario = scenario_of(stack, seed, fixed)
    chosen = None if mutant is None else FAMILIES.of(stack).mutants[mutant]
    try:
        found = examine(scenario, chosen, most)
    except EndlessRunError as error:
        return SeedReport(seed, repr(scenario), [str(error)])
    except Exception as error:  # whatever a broken protocol raises is a finding
        return SeedReport(seed, repr(scenario), [f"raised {type(error).__name__}: {error}"])
    return SeedReport(seed, repr(scenario), found.broken, found.outcome.steps)


def patrol(
    stack: str, seeds: range, mutant: str | None = None, fixed: Fixed | None = None, jobs: int = 1
) -> Iterator[SeedReport]:
    """Examine every seed, on several processes; reports come in the order of the seeds."""
    if jobs <= 1 or len(seeds) == 1:
        for seed in seeds:
            yield report(seed, stack, mutant, fixed)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(report, seeds, repeat(stack), repeat(mutant), repeat(fixed), chunksize=4)


def first_catch(
    mutant: str,
    stack: str,
    seeds: range,
    fixed: Fixed | None = None,
    steps: Mapping[int, int] | None = None,
) -> SeedReport | None:
    """The first seed that shows a mutant to be broken.

    Where it is known how many `steps` the real thing takes with a seed, a mutant that takes far more is
    broken: some would go on without end.
    """
    for seed in seeds:
        most = max(_PATIENCE * steps[seed], _LEAST) if steps is not None and seed in steps else 0
        found = report(seed, stack, mutant, fixed, most)
        if found.broken:
            return found
    return None


def hunt(
    stack: str,
    seeds: range,
    mutants: list[str],
    fixed: Fixed | None = None,
    jobs: int = 1,
    steps: Mapping[int, int] | None = None,
) -> Iterator[tuple[str, SeedReport | None]]:
    """For each mutant the first seed that catches it."""
    if jobs <= 1:
        for mutant in mutants:
            yield mutant, first_catch(mutant, stack, seeds, fixed, steps)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = pool.map(first_catch, mutants, repeat(stack), repeat(seeds), repeat(fixed), repeat(steps))
        yield from zip(mutants, found, strict=True)
