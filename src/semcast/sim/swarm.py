"""Swarms: many drawn scenarios, each checked against everything its stack promises."""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.extensions import load_families
from semcast.history import Kind
from semcast.sim.bursts import draw_bursts
from semcast.sim.cluster import member_names
from semcast.sim.families import FAMILIES
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.simulate import Outcome, simulate
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
    family = FAMILIES.of(scenario.stack)
    if not family.excused(outcome.history):
        broken += _stuck(outcome)
        broken += _apart(outcome, scenario) if family.finds_members else []
        broken += _slow(outcome, family.healing(scenario))
        broken += _restless(outcome, family.views(scenario))
    return Finding(scenario, outcome, broken)


def _stuck(outcome: Outcome) -> list[str]:
    if not outcome.stuck:
        return []
    return [f"liveness: {', '.join(map(str, outcome.stuck))} cannot send for ever"]


def _apart(outcome: Outcome, scenario: Scenario) -> list[str]:
    """A healed group that finds itself ends in one view of all who are there and have set the same."""
    names = member_names(scenario.size, scenario.name_bytes)
    misfits = {names[number].name for number in scenario.misfits}
    members = {who for who in outcome.views if who.name not in misfits}
    found = {who: view for who, view in outcome.views.items() if who in members}
    odd = [who for who, view in found.items() if view is None or set(view.members) != members]
    return [f"liveness: {', '.join(map(str, odd))} did not find all others again"] if odd else []


def _slow(outcome: Outcome, bound: Nanos | None) -> list[str]:
    """It does so within a time."""
    if bound is None or outcome.regrouped_after <= bound:
        return []
    took, most = outcome.regrouped_after // MILLISECOND, bound // MILLISECOND
    return [f"healing: it took {took} ms until everybody was in its last view; {most} at most"]


def _restless(outcome: Outcome, most: int | None) -> list[str]:
    """And without more views than there were reasons."""
    counts = Counter(event.process for event in outcome.history.events if event.kind is Kind.VIEW)
    restless = {} if most is None else {who: count for who, count in counts.items() if count > most}
    return [f"churn: {who} saw {count} views; {most} at most" for who, count in restless.items()]


def violated(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say that something is broken."""
    return [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]


class Report(msgspec.Struct):
    """A finding without its history: small enough to come from another process."""

    seed: int
    scenario: str
    broken: list[str]


def scenario_of(stack: str, seed: int, fixed: Fixed | None = None) -> Scenario:
    """What a seed stands for, with something of it fixed where the family offers that.

    Inputs and messages come in bursts, as they do live: that is drawn apart, for all stacks alike.
    """
    drawn = FAMILIES.of(stack).draw(seed, fixed)
    return msgspec.structs.replace(drawn, bursts=draw_bursts(Random(f"bursts/{stack}/{seed}")))


def report(seed: int, stack: str, mutant: str | None, fixed: Fixed | None = None) -> Report:
    """Examine one seed. This may be another process, which knows only what it loads."""
    load_families()
    scenario = scenario_of(stack, seed, fixed)
    try:
        broken = examine(scenario, None if mutant is None else FAMILIES.of(stack).mutants[mutant]).broken
    except Exception as error:  # whatever a broken protocol raises is a finding
        broken = [f"raised {type(error).__name__}: {error}"]
    return Report(seed, repr(scenario), broken)


def patrol(
    stack: str, seeds: range, mutant: str | None = None, fixed: Fixed | None = None, jobs: int = 1
) -> Iterator[Report]:
    """Examine every seed, on several processes; reports come in the order of the seeds."""
    if jobs <= 1 or len(seeds) == 1:
        for seed in seeds:
            yield report(seed, stack, mutant, fixed)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(report, seeds, repeat(stack), repeat(mutant), repeat(fixed), chunksize=4)


def first_catch(mutant: str, stack: str, seeds: range, fixed: Fixed | None = None) -> Report | None:
    """The first seed that shows a mutant to be broken."""
    for seed in seeds:
        found = report(seed, stack, mutant, fixed)
        if found.broken:
            return found
    return None


def hunt(
    stack: str, seeds: range, mutants: list[str], fixed: Fixed | None = None, jobs: int = 1
) -> Iterator[tuple[str, Report | None]]:
    """For each mutant the first seed that catches it."""
    if jobs <= 1:
        for mutant in mutants:
            yield mutant, first_catch(mutant, stack, seeds, fixed)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = pool.map(first_catch, mutants, repeat(stack), repeat(seeds), repeat(fixed))
        yield from zip(mutants, found, strict=True)
