"""The ring, simulated."""

from semcast.core.ids import Nanos
from semcast.protocols.ring import Ring
from semcast.protocols.ring.backoff import CAP
from semcast.protocols.ring.forming import stretched
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory

ATTEMPTS = 5
"""To form a ring that may fail after a network has healed: what was sent before still arrives."""


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or Ring
    assert issubclass(kind, Ring)
    return stacks.ring(scenario.ring, kind, scenario.misfits)


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_ring(seed)


def _limit(scenario: Scenario) -> int | None:
    return scenario.ring.bound()


def _healing(scenario: Scenario) -> Nanos | None:
    """The cap of the back-off, and what it takes to form a ring if some attempts fail.

    Who has yet to take what a change of configuration left it keeps out of the next one: a slow application
    may take as long as it likes.
    """
    if scenario.app_delays:
        return None
    attempt = stretched(2 * scenario.ring.token_loss, scenario.size) + scenario.ring.commit
    return CAP + ATTEMPTS * attempt


def _views(scenario: Scenario) -> int:
    """Each fault, and each late member, is a reason for a few: it comes, it goes, and attempts fail."""
    return 6 + 3 * (len(scenario.faults) + len(scenario.late))


RING = FAMILIES.register(
    Family(
        name="ring",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["ring"],
        limit=_limit,
        healing=_healing,
        views=_views,
        announces=True,
        finds_members=True,
    )
)
