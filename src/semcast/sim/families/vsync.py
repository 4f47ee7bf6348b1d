"""Virtual synchrony, simulated."""

from semcast.core.ids import Nanos
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


def _queue(scenario: Scenario) -> int:
    return scenario.vsync.queue_messages or scenario.vsync.buffer_messages


def _order(scenario: Scenario) -> str:
    return scenario.vsync.order.value


def _transfers(scenario: Scenario) -> bool:
    return scenario.vsync.state


def excused(history: History) -> bool:
    """Whether a majority of the last view crashed: then the others wait for ever, and rightly so."""
    views = [event for event in history.events if event.kind is Kind.VIEW]
    crashed = {event.process for event in history.events if event.kind in GONE}
    last = max(views, key=lambda event: event.view or 0, default=None)
    members = history.info.only.members if last is None or last.members is None else last.members
    return 2 * len([member for member in members if member not in crashed]) <= len(members)


def _heals_within(scenario: Scenario) -> Nanos:
    """Everybody finds out who is there, and who is not; one change after another, a few at most."""
    settings = scenario.vsync
    return 4 * (settings.detector.timeout_max + settings.hello)


VSYNC = FAMILIES.register(
    Family(
        name="vsync",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["vsync"],
        limit=_limit,
        queue=_queue,
        order=_order,
        announces=True,
        transfers=_transfers,
        finds_members=True,
        heals_within=_heals_within,
        excused=excused,
    )
)
