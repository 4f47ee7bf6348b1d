"""Causal domains, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.quorum import is_quorum
from semcast.core.stack import Stack
from semcast.history import Event, History
from semcast.history.schema import CAUSAL
from semcast.protocols.isis import ISIS as PROTOCOL
from semcast.protocols.isis import IsisSettings
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.hosted_calls import CallBook
from semcast.sim.isis_programs import DomainProcess, IsisPlan
from semcast.sim.isis_scenario import IsisVariant, draw_isis
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory
from semcast.specs.domains.kinds import LEFT, VIEW, text_of


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    plan = scenario.settings or _plain(scenario)
    kind = mutant.stack or DomainProcess
    assert isinstance(plan, IsisPlan)
    assert issubclass(kind, DomainProcess)
    book = None
    if plan.calls:
        name = f"isis-{scenario.seed}"
        book = CallBook(name, scenario.seed, mutant.calls, plan.calls, CAUSAL)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        number = next(place for place, member in enumerate(members) if member.name == me.name)
        process = kind(me, plan, number, rng, out)
        process.book = book
        return process

    return build


def _beside(stacks: Sequence[Stack]) -> list[History]:
    """What programs did about calls, if they called."""
    processes = [_process(stack) for stack in stacks]
    book = next((process.book for process in processes if process.book is not None), None)
    return [] if book is None else [book.close([each.me for each in processes if each.phase() != "left"])]


def _process(stack: Stack) -> DomainProcess:
    assert isinstance(stack, DomainProcess)
    return stack


def _plain(scenario: Scenario) -> IsisPlan:
    """Two groups of all."""
    everybody = tuple(range(scenario.size))
    return IsisPlan(settings=IsisSettings(notes=True), groups=(("a", everybody), ("b", everybody)))


def _draw(seed: int, fixed: Fixed | None) -> Scenario:
    assert fixed is None or isinstance(fixed, IsisVariant)
    return draw_isis(seed, fixed)


def excused(history: History) -> bool:
    """Whether a group has lost its majority: who wants to be in it, or to send there, waits rightly."""
    latest: dict[str, Event] = {}
    gone: dict[str, set[MemberId]] = {}
    for event in history.events:
        if event.kind is VIEW:
            group = text_of(event).group
            if group not in latest or (event.view or 0) > (latest[group].view or 0):
                latest[group] = event
        elif event.kind is LEFT:
            gone.setdefault(text_of(event).group, set()).add(event.process)
    for group, event in latest.items():
        members, away = event.members or (), gone.get(group, set()).union(history.gone)
        if not is_quorum(len(members), [rank for rank, each in enumerate(members) if each not in away]):
            return True
    return False


def _limit(_scenario: Scenario) -> int | None:
    return None


ISIS = FAMILIES.register(
    Family(
        name=PROTOCOL.name,
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["isis"],
        limit=_limit,
        excused=excused,
        beside=_beside,
    )
)
