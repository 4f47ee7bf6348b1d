"""Swarms: many drawn scenarios, each checked against everything its stack promises."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import msgspec

from semcast.history import GONE, Kind
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.scenario import Scenario, draw
from semcast.sim.simulate import Outcome, simulate
from semcast.sim.vsync_scenario import Variant, draw_vsync
from semcast.specs import Status, Verdict, check


class Finding(msgspec.Struct):
    """What one seed showed."""

    scenario: Scenario
    outcome: Outcome
    broken: list[str]
    """What did not hold, in words; empty for a clean run."""

    @property
    def clean(self) -> bool:
        """Whether everything held."""
        return not self.broken


def examine(scenario: Scenario, mutant: Mutant | None = None) -> Finding:
    """Run one scenario and check it."""
    outcome = simulate(scenario, mutant)
    broken = [str(verdict) for verdict in violated(check(outcome.history))]
    if not outcome.settled:
        broken.append("liveness: the healed group did not come to rest")
    if scenario.stack != "vsync" or not excused(outcome):
        broken += _stuck(outcome)
        broken += _apart(outcome) if scenario.stack in ("ring", "vsync") else []
    return Finding(scenario, outcome, broken)


def excused(outcome: Outcome) -> bool:
    """Whether a majority of the last view crashed: then the others wait for ever, and rightly so."""
    views = [event for event in outcome.history.events if event.kind is Kind.VIEW]
    crashed = {event.process for event in outcome.history.events if event.kind in GONE}
    last = max(views, key=lambda event: event.view or 0, default=None)
    members = outcome.history.info.only.members if last is None or last.members is None else last.members
    return 2 * len([member for member in members if member not in crashed]) <= len(members)


def _stuck(outcome: Outcome) -> list[str]:
    if not outcome.stuck:
        return []
    return [f"liveness: {', '.join(map(str, outcome.stuck))} cannot send for ever"]


def _apart(outcome: Outcome) -> list[str]:
    """A healed group that finds itself ends in one view of all who are there."""
    members = set(outcome.views)
    odd = [who for who, view in outcome.views.items() if view is None or set(view.members) != members]
    return [f"liveness: {', '.join(map(str, odd))} did not find all others again"] if odd else []


def violated(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say that something is broken."""
    return [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]


class Report(msgspec.Struct):
    """A finding without its history: small enough to come from another process."""

    seed: int
    scenario: str
    broken: list[str]


def scenario_of(stack: str, seed: int, variant: Variant | None = None) -> Scenario:
    """What a seed stands for; only virtual synchrony comes in variants."""
    if stack == "ring":
        return draw_ring(seed)
    return draw_vsync(seed, variant) if stack == "vsync" else draw(seed, stack)


def report(seed: int, stack: str, mutant: str | None, variant: Variant | None = None) -> Report:
    """Examine one seed."""
    scenario = scenario_of(stack, seed, variant)
    try:
        broken = examine(scenario, None if mutant is None else MUTANTS[stack][mutant]).broken
    except Exception as error:  # whatever a broken protocol raises is a finding
        broken = [f"raised {type(error).__name__}: {error}"]
    return Report(seed, repr(scenario), broken)


def patrol(
    stack: str, seeds: range, mutant: str | None = None, variant: Variant | None = None, jobs: int = 1
) -> Iterator[Report]:
    """Examine every seed, on several processes; reports come in the order of the seeds."""
    if jobs <= 1 or len(seeds) == 1:
        for seed in seeds:
            yield report(seed, stack, mutant, variant)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(report, seeds, repeat(stack), repeat(mutant), repeat(variant), chunksize=4)


def first_catch(mutant: str, stack: str, seeds: range, variant: Variant | None = None) -> Report | None:
    """The first seed that shows a mutant to be broken."""
    for seed in seeds:
        found = report(seed, stack, mutant, variant)
        if found.broken:
            return found
    return None


def hunt(
    stack: str, seeds: range, mutants: list[str], variant: Variant | None = None, jobs: int = 1
) -> Iterator[tuple[str, Report | None]]:
    """For each mutant the first seed that catches it."""
    if jobs <= 1:
        for mutant in mutants:
            yield mutant, first_catch(mutant, stack, seeds, variant)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = pool.map(first_catch, mutants, repeat(stack), repeat(seeds), repeat(variant))
        yield from zip(mutants, found, strict=True)
