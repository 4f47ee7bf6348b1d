"""LBRM, pbcast and rpbcast, with a logger, simulated."""

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.protocols.gossip import GossipSettings, Logger, Member, Protocol
from semcast.sim.absence import Absence
from semcast.sim.cluster import QUIET, member_names
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.gossip_scenario import INACTIVE, Strangers, draw_gossip, loggers_of
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory

Stacks = Callable[[Scenario, Mutant], StackFactory]


def settings_of(scenario: Scenario) -> GossipSettings:
    """What its members have set."""
    settings = scenario.settings
    if settings is None:
        protocol = Protocol(scenario.stack)
        return GossipSettings(protocol=protocol, loggers=loggers_of(scenario.size, protocol))
    assert isinstance(settings, GossipSettings)
    return settings


def stack_of(scenario: Scenario, mutant: Mutant) -> StackFactory:
    """Members and loggers, as a scenario has set them."""
    settings = settings_of(scenario)
    told = settings
    if isinstance(settings, Strangers) and not settings.named:
        told = msgspec.structs.replace(settings, loggers=(), durable=bool(settings.loggers))
    member, logger = mutant.stack or Member, mutant.logger
    assert issubclass(member, Member)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        kind: type[Member | Logger] = logger if me.name in settings.loggers else member
        return kind(me, _known(scenario, me, members), _placed(scenario, me, told), rng, out)

    return build


def _placed(scenario: Scenario, me: MemberId, told: GossipSettings) -> GossipSettings:
    """With the region of a member, where there are some."""
    settings = scenario.settings
    if not isinstance(settings, Strangers) or not settings.regions:
        return told
    names = [member.name for member in member_names(scenario.size, scenario.name_bytes)]
    number = next(place for place, name in enumerate(names) if me.name.startswith(name))
    return msgspec.structs.replace(told, region=f"r{number % settings.regions}")


def _known(scenario: Scenario, me: MemberId, members: Sequence[MemberId]) -> Sequence[MemberId]:
    """Whom a member knows to begin with: everybody, or some."""
    settings = scenario.settings
    if not isinstance(settings, Strangers):
        return members
    rng = Random(f"knowledge/{scenario.seed}/{me}")
    return [member for member in members if rng.random() < settings.known]


def _disk(scenario: Scenario) -> bool:
    return bool(settings_of(scenario).loggers)


def _limit(scenario: Scenario) -> int:
    """What is kept for others, what no logger has yet, what is held out of order, and what waits.

    Every restart is another stream.
    """
    settings = settings_of(scenario)
    streams = scenario.size * (1 + len(scenario.faults))
    waiting = settings.queue_messages + settings.reserve_messages
    return settings.gossip_messages + streams * (settings.window + settings.hold) + waiting


def _queue(scenario: Scenario) -> int:
    return settings_of(scenario).queue_messages


def _quiet(scenario: Scenario) -> Nanos:
    """Longer than it takes until anything is said again."""
    settings = settings_of(scenario)
    said = max(settings.resend, settings.report, settings.heartbeat_most, settings.presence)
    ends = settings.inactive + SECOND if settings.inactive == INACTIVE else 0
    return max(QUIET, 2 * said, ends)


def _goes(stack: Stack, now: Nanos) -> None:
    stack.disconnect(now)


def _returns(stack: Stack, now: Nanos) -> None:
    stack.reconnect(now)


def _drawn(protocol: Protocol) -> Callable[[int, Fixed | None], Scenario]:
    def draw(seed: int, _fixed: Fixed | None) -> Scenario:
        return draw_gossip(seed, protocol)

    return draw


def family_of(name: str, stack: Stacks, draw: Callable[[int, Fixed | None], Scenario]) -> Family:
    """A family of groups with loggers, or without."""
    return Family(
        name=name,
        stack=stack,
        draw=draw,
        mutants=MUTANTS.get(name, {}),
        limit=_limit,
        queue=_queue,
        announces=True,
        disk=_disk,
        largest=None,
        quiet=_quiet,
        absence=Absence(_goes, _returns),
    )


for _protocol in Protocol:
    FAMILIES.register(family_of(_protocol.value, stack_of, _drawn(_protocol)))
