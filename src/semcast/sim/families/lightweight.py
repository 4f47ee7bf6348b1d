"""Daemons of lightweight groups over the ring, with their clients, simulated."""

from collections.abc import Sequence
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.history import History
from semcast.protocols.lightweight import LIGHTWEIGHT as PROTOCOL
from semcast.protocols.lightweight import LightweightSettings
from semcast.protocols.ring import Ring
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.hosted_calls import CallBook
from semcast.sim.hosted_clients import Do
from semcast.sim.lightweight_clients import Daemon, daemon_of
from semcast.sim.lightweight_scenario import draw_lightweight
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings, ring = scenario.settings or LightweightSettings(notes=True), scenario.ring
    assert isinstance(settings, LightweightSettings)

    book = CallBook(f"lightweight-{scenario.seed}", scenario.seed, mutant.calls) if _calls(scenario) else None

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, ring, rng, out)

    def build(me: MemberId, _members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        return Daemon(
            me,
            settings,
            below,
            rng,
            out,
            machine=mutant.daemon,
            works=bool(scenario.traffic),
            host=mutant.host,
            book=book,
        )

    return build


def _calls(scenario: Scenario) -> bool:
    return any(isinstance(fault, Do) and fault.what == "call" for fault in scenario.faults)


def _beside(stacks: Sequence[Stack]) -> list[History]:
    """What programs did about calls, if they called."""
    daemons = [daemon_of(stacks, place) for place in range(len(stacks))]
    book = next((daemon.book for daemon in daemons if daemon.book is not None), None)
    return [] if book is None else [book.close([each.me for each in daemons if each.phase() != "left"])]


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_lightweight(seed)


def _limit(_scenario: Scenario) -> int | None:
    return None


LIGHTWEIGHT = FAMILIES.register(
    Family(
        name=PROTOCOL.name,
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["lightweight"],
        limit=_limit,
        finds_members=True,
        beside=_beside,
    )
)
