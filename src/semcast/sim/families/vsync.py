"""Virtual synchrony, simulated."""

from collections.abc import Collection, Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.quorum import is_quorum
from semcast.history import GONE, History, Kind
from semcast.protocols.backoff import CAP
from semcast.protocols.semantic.backlog import EACH
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.hopeless import LAG
from semcast.sim import stacks
from semcast.sim.families.record import FAMILIES, Family
from semcast.sim.faults import ends_at
from semcast.sim.flow_scenario import AMPLE, LARGEST, draw_reserve
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory
from semcast.sim.vsync_scenario import Variant, draw_vsync
from semcast.sim.vsync_users import fitting, odd_settings


def _stack(scenario: Scenario, mutant: Mutant) -> StackFactory:
    kind = mutant.stack or VirtualSynchrony
    assert issubclass(kind, VirtualSynchrony)
    return stacks.vsync(scenario.vsync, kind, scenario.misfits, odd_settings(scenario))


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

    Then who lives waits for ever, and rightly so. Who left a view has seen to it that the others can go on;
    if all have left but those who crashed, these have what comes next, and if the last has left, the group is
    over, also for who was outside and about to come back.
    Who is named in the last view and never came there lives for it only if a quorum of its own view does:
    what it needs to go on may be gone with the others. Who left before it was in any view is as good as dead.
    """
    views = {event.process: event for event in history.events if event.kind is Kind.VIEW}  # the latest
    crashed = {event.process for event in history.events if event.kind is Kind.CRASH}
    gone = {event.process for event in history.events if event.kind in GONE}
    names = {process.name for process in history.processes if process not in gone}
    last = max(views.values(), key=lambda event: event.view or 0, default=None)
    if last is None:
        return _lost(history.info.only.members, gone, names)
    behind = {
        process
        for process, event in views.items()
        if event.view != last.view and _lost(event.members or (), crashed, names)
    }
    members = last.members or ()
    absent = [member for member in members if member.name not in names]
    over = absent == list(members) or any(member in crashed for member in absent)
    never = gone.difference(views)
    return (over and gone.issuperset(members)) or _lost(members, crashed | behind | never, names)


def _lost(members: Sequence[MemberId], dead: Collection[MemberId], names: Collection[str]) -> bool:
    """Whether no quorum of a view lives, and not all of the dead are back under their names."""
    alive = [rank for rank, member in enumerate(members) if member not in dead]
    return not is_quorum(len(members), alive) and any(member.name not in names for member in members)


def heals_within(scenario: Scenario) -> Nanos | None:
    """Everybody finds out who is there, and who is not; one change after another, a few at most.

    Who kept failing is held off before that, for as long as it has kept failing, and no longer than the cap.
    Where a policy puts out who lags, and a program reads too seldom for it, that happens again and again as
    long as there is something to read: nothing is promised then.
    """
    settings = scenario.vsync
    limits = [settings.expel_after] if settings.expel_after else []
    limits += [LAG * settings.detector.heartbeat] if settings.expel_when_full else []
    if any(2 * habit.pause >= limit for limit in limits for habit in scenario.habits.values()):
        return None
    held = min(CAP, max(map(ends_at, scenario.faults), default=0))
    return held + 4 * (settings.detector.timeout_max + settings.hello)


def _queue(scenario: Scenario) -> int:
    return scenario.vsync.stream().queue()


def _tighten(scenario: Scenario, rng: Random) -> Scenario:
    """A slot for each member, at least."""
    settings = msgspec.structs.replace(
        scenario.vsync,
        buffer_messages=rng.choice((scenario.size, scenario.vsync.buffer_messages)),
        queue_messages=rng.choice((1, 1, 4)),
        reserve_bytes=draw_reserve(rng),
    )
    ample = settings.reserve_bytes == AMPLE
    return fitting(msgspec.structs.replace(scenario, vsync=settings, ample=ample))


def _backlog(scenario: Scenario) -> int:
    """Queue and reserve, and what a change of view hands over at once: what was kept for others."""
    settings = scenario.vsync
    kept = scenario.size * settings.buffer_messages
    return _queue(scenario) + -(-settings.reserve_bytes // EACH) + kept * 3 // 2


def _queue_bytes(scenario: Scenario) -> int:
    return scenario.vsync.stream().queue_size()


def _narrow(scenario: Scenario, size: int) -> Scenario:
    settings = msgspec.structs.replace(scenario.vsync, queue_messages=1024, queue_bytes=size)
    return fitting(msgspec.structs.replace(scenario, vsync=settings))


def _backlog_bytes(scenario: Scenario) -> int:
    """Queue and reserve, what came last there, and what a change of view hands over at once."""
    settings = scenario.vsync
    kept = scenario.size * min(settings.buffer_bytes, settings.buffer_messages * LARGEST)
    return _queue_bytes(scenario) * 5 // 4 + settings.reserve_bytes + kept * 3 // 2 + 2 * LARGEST


def _disk(scenario: Scenario) -> bool:
    return scenario.disks


VSYNC = FAMILIES.register(
    Family(
        name="vsync",
        stack=_stack,
        draw=_draw,
        mutants=MUTANTS["vsync"],
        limit=_limit,
        queue=_queue,
        tighten=_tighten,
        backlog=_backlog,
        queue_bytes=_queue_bytes,
        narrow=_narrow,
        backlog_bytes=_backlog_bytes,
        order=_order,
        announces=True,
        transfers=_transfers,
        finds_members=True,
        expels_misfits=True,
        disk=_disk,
        heals_within=heals_within,
        excused=excused,
    )
)
