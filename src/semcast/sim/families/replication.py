"""Replication servers over the ring, simulated."""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.history import History
from semcast.protocols.ring import Ring
from semcast.replication.family import REPLICATION as PROTOCOL
from semcast.replication.settings import ReplicationSettings
from semcast.replication.stack import Replication
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.replication_scenario import draw_replication
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory
from semcast.specs.replication.ledger import ledger_of
from semcast.specs.replication.rest import blocked, group_of


def settings_of(scenario: Scenario) -> ReplicationSettings:
    """What its servers have set."""
    settings = scenario.settings or ReplicationSettings(notes=True)
    assert isinstance(settings, ReplicationSettings)
    return settings


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    settings, ring = settings_of(scenario), scenario.ring

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, ring, rng, out)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        named = settings
        if not settings.names:
            named = ReplicationSettings(names=tuple(member.name for member in members), notes=True)
        elif me.name not in settings.names:
            named = msgspec.structs.replace(settings, names=())
        return Replication(
            me, named, below, rng, out, machine=mutant.machine, reading=mutant.reading, state=True
        )

    return build


def _draw(seed: int, _fixed: Fixed | None) -> Scenario:
    return draw_replication(seed)


def _limit(_scenario: Scenario) -> int | None:
    return None


def _disk(_scenario: Scenario) -> bool:
    return True


def _excused(history: History) -> bool:
    """A primary of which a disk is lost may never have a successor; who was given up is not let in again."""
    return bool(blocked(history)) or bool(ledger_of(history).forgotten)


def _outsiders(history: History) -> list[MemberId]:
    """A store that is new, and was not let in: that of a server that was removed, and started anew."""
    ledger = ledger_of(history)
    group = group_of(ledger)
    return [life.process for life in ledger.lives if not life.recovered_primary and life.server not in group]


REPLICATION = FAMILIES.register(
    Family(
        name=PROTOCOL.name,
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["replication"],
        limit=_limit,
        disk=_disk,
        transfers=_disk,
        goes_on=True,
        excused=_excused,
        outsiders=_outsiders,
    )
)
