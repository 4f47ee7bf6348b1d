"""Members that call each other, over the ring or virtual synchrony, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.history import GONE, History, Kind
from semcast.history.schema import TOTAL
from semcast.protocols.ring import Ring
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim.calling import Calling, CallsSettings
from semcast.sim.calls_scenario import draw_calls
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.families.vsync import excused
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _settings(scenario: Scenario) -> CallsSettings:
    settings = scenario.settings or CallsSettings()
    assert isinstance(settings, CallsSettings)
    return settings


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings = _settings(scenario)
    kind = mutant.stack or Calling
    assert issubclass(kind, Calling)

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        if settings.synchrony:
            return VirtualSynchrony(me, scenario.vsync, rng, out)
        return Ring(me, scenario.ring, rng, out)

    def build(me: MemberId, _members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        return kind(me, settings, below, rng, out, machine=mutant.calls)

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_calls(seed)


def _limit(_scenario: Scenario) -> int | None:
    return None


def _order(scenario: Scenario) -> str:
    return scenario.vsync.order.value if _settings(scenario).synchrony else TOTAL


def _excused(history: History) -> bool:
    """Virtual synchrony may wait for ever for a majority; the ring has no need of one."""
    views = [event for event in history.events if event.kind is Kind.VIEW]
    return all(event.sender is None for event in views) and (excused(history) or _founded_anew(history))


def _founded_anew(history: History) -> bool:
    """Whether a majority forgot at once, without disks, and who remembers was out of reach.

    The group has two first views then, and no promise holds between those who are in the one and who knows
    of the other: who was out of reach waits for a majority that is no more.
    """
    firsts = [event for event in history.events if event.kind is Kind.VIEW and event.view == 1]
    if not firsts:
        return False
    gone = {event.process for event in history.events if event.kind in GONE}
    old, new = (set(pick(firsts, key=lambda event: event.at).members or ()) for pick in (min, max))
    forgot = {member.name for member in old & gone} & {member.name for member in new}
    return old.isdisjoint(new) and 2 * len(forgot) > len(old)


CALLS = FAMILIES.register(
    Family(
        name="calls",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["calls"],
        limit=_limit,
        order=_order,
        finds_members=True,
        excused=_excused,
    )
)
