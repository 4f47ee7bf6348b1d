"""Swarms: many drawn scenarios, each checked against everything its stack promises."""

from collections.abc import Iterable, Iterator

import msgspec

from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Scenario, draw
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
    if outcome.stuck:
        broken.append(f"liveness: {', '.join(map(str, outcome.stuck))} cannot send for ever")
    return Finding(scenario, outcome, broken)


def violated(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say that something is broken."""
    return [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]


def swarm(stack: str, seeds: Iterable[int], mutant: Mutant | None = None) -> Iterator[Finding]:
    """Examine seed after seed."""
    for seed in seeds:
        yield examine(draw(seed, stack), mutant)
