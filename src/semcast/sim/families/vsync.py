"""Virtual synchrony, simulated."""

from semcast.core.quorum import is_quorum
from semcast.history import GONE, History, Kind
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory
from semcast.sim.vsync_scenario import Variant, draw_vsync


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or VirtualSynchrony
    assert issubclass(kind, VirtualSynchrony)
    return stacks.vsync(scenario.vsync, kind)


def _draw(seed: int, fixed: Fixed | None) -> Scenario:
    assert fixed is None or isinstance(fixed, Variant)
    return draw_vsync(seed, fixed)


def _limit(_scenario: Scenario) -> int | None:
    return None


def _order(scenario: Scenario) -> str:
    return scenario.vsync.order.value


def _transfers(scenario: Scenario) -> bool:
    return scenario.vsync.state


def excused(history: History) -> bool:
    """Whether no quorum of the last view lives, and not all of the others are back under their names.

    Then who lives waits for ever, and rightly so.
    """
    views = [event for event in history.events if event.kind is Kind.VIEW]
    gone = {event.process for event in history.events if event.kind in GONE}
    last = max(views, key=lambda event: event.view or 0, default=None)
    members = history.info.only.members if last is None or last.members is None else last.members
    alive = [rank for rank, member in enumerate(members) if member not in gone]
    names = {process.name for process in history.processes if process not in gone}
    return not is_quorum(len(members), alive) and any(member.name not in names for member in members)


VSYNC = FAMILIES.register(
    Family(
        name="vsync",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["vsync"],
        limit=_limit,
        order=_order,
        announces=True,
        transfers=_transfers,
        finds_members=True,
        excused=excused,
    )
)
