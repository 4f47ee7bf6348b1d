"""Histories of rings, sound and broken, that the tests of `verify` share."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import msgspec
from tests.pipeline.histories import (
    crash,
    cut_short,
    drop_delivery,
    forget_crash,
    invent_delivery,
    lose_half,
    named,
    places,
    recut,
    renumbered,
    repeat_delivery,
    run_in_circles,
    swap_deliveries,
)
from tests.specs.test_specs_evs_brute_force import history as small_history
from tests.specs.test_specs_evs_by_hand import BROKEN, MERGED, ring

from semcast.core import Enumeration, MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.sim.mutants import MUTANTS
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.simulate import simulate

A, B, C = MemberId("a"), MemberId("b"), MemberId("c")


def rings() -> list[History]:
    """All kinds: simulated, with something planted, drawn, and cut off."""
    real, few = list(simulated()), small(range(40))
    cut = [cut_short(history, number) for number, history in enumerate([real[0], *few[:12]])]
    extra = [deep(), before_any_configuration(), nowhere(), *merged()]
    return [*real, *planted(real[0]), *few, *extra, *(history for history in cut if history.events)]


def otherwise_cut(random: Random) -> list[History]:
    """Some of them with their runs cut at random."""
    last = list(CAUGHT)[-1]
    chosen = [sound(2), caught(last), *small(range(40))[::9]]
    return [recut(named(history, f"{history.info.run}-again"), random) for history in chosen]


def small(seeds: range) -> list[History]:
    """Four members who do almost what a ring would do."""
    found = (named(small_history(seed), f"ring-{seed}") for seed in seeds)
    return [history for history in found if history.events and growing(history)]


def growing(history: History) -> bool:
    """Whether a recorder can have written it: the numbers of a sender grow."""
    sent = [event for event in history.events if event.kind is Kind.MULTICAST]
    return all(one.process != other.process or one.last < other.seq for one, other in pairwise(sent))


# Seeds whose swarm caught the mutant by a specification of EVS.
CAUGHT = {
    "safe-after-one-rotation": 15,
    "no-transitional-configuration": 15,
    "obligation-set-forgotten": 40,
    "delivered-after-a-hole": 4,
    "purge-across-configurations": 1,
    "aru-raised-too-early": 1,
    "old-token-accepted": 12,
    "conf-id-reused": 12,
    "purge-without-replacement": 6,
}


def simulated() -> Iterator[History]:
    """Sound rings, and every mutant that chance finds."""
    yield from map(sound, (1, 2, 3))
    yield from map(caught, CAUGHT)
    wrong = MUTANTS["ring"]["position-recorded-wrong"]
    yield named(simulate(draw_ring(0), wrong).history, "position-recorded-wrong")


def sound(seed: int) -> History:
    return named(simulate(draw_ring(seed)).history, f"sound-{seed}")


def caught(name: str) -> History:
    return named(simulate(draw_ring(CAUGHT[name]), MUTANTS["ring"][name]).history, name)


def drop_change(events: list[Event], random: Random) -> None:
    del events[random.choice([*places(events, Kind.VIEW), *places(events, Kind.TRANSITIONAL)])]


def send_elsewhere(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.MULTICAST))
    events[place] = msgspec.structs.replace(events[place], view=77)


def forget_member(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.VIEW))
    members = events[place].members or ()
    events[place] = msgspec.structs.replace(events[place], members=members[1:])


def deliver_much_later(events: list[Event], random: Random) -> None:
    """A delivery moves to the end of its process, in whatever configuration that is."""
    place = random.choice(places(events, Kind.DELIVER))
    late = events.pop(place)
    events.insert(max(n for n, event in enumerate(events) if event.process == late.process) + 1, late)


def deliver_again_later(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.DELIVER))
    last = max(n for n, event in enumerate(events) if event.process == events[place].process)
    events.insert(last + 1, events[place])


EDITS: list[Callable[[list[Event], Random], None]] = [
    drop_change,
    deliver_again_later,
    drop_delivery,
    send_elsewhere,
    repeat_delivery,
    forget_member,
    swap_deliveries,
    deliver_much_later,
    invent_delivery,
    crash,
    forget_crash,
    run_in_circles,
    lose_half,
]


def planted(history: History) -> Iterator[History]:
    for edit in EDITS:
        events = list(history.events)
        edit(events, Random(edit.__name__))
        yield renumbered(msgspec.structs.replace(history.info, run=edit.__name__), events)


def deep() -> History:
    """Each of 60 messages names the one before; b delivers only the last, c all but the last."""
    members = (A, B, C)
    rows = {who: [Event(who, 0, 0, Kind.VIEW, "g", A, view=1, members=members)] for who in members}
    for seq in range(1, 61):
        note = Enumeration((MessageId(A, seq - 1),) if seq > 1 else ())
        rows[A].append(Event(A, 0, 0, Kind.MULTICAST, "g", A, seq, 1, annotation=note, view=1, level="safe"))
    for who, first, count in ((A, 1, 60), (B, 60, 1), (C, 1, 59)):
        rows[who].append(Event(who, 0, 0, Kind.DELIVER, "g", A, first, count))
        rows[who].append(Event(who, 0, 0, Kind.VIEW, "g", A, view=2, members=members))
    info = RunInfo.one("deep-ring", "g", "ring", None, members, None, uniform=False, quiesced=True)
    return renumbered(info, [event for who in members for event in rows[who]])


def before_any_configuration() -> History:
    """a delivers, then crashes, and never was anywhere; b is alone."""
    events = [
        Event(A, 0, 0, Kind.DELIVER, "g", B, 1, 2),
        Event(A, 0, 0, Kind.CRASH, "g"),
        Event(A, 0, 0, Kind.DELIVER, "g", B, 2, 1),
        Event(B, 0, 0, Kind.VIEW, "g", B, view=1, members=(B,)),
        Event(B, 0, 0, Kind.MULTICAST, "g", B, 1, 2, view=1),
        Event(B, 0, 0, Kind.DELIVER, "g", B, 1, 2),
    ]
    info = RunInfo.one("before", "g", "ring", None, (A, B), None, uniform=False, quiesced=True)
    return renumbered(info, events)


def nowhere() -> History:
    """Nobody recorded a configuration."""
    info = RunInfo.one("nowhere", "g", "ring", None, (A,), None, uniform=False, quiesced=True)
    return History(info, [Event(A, 0, 0, Kind.MULTICAST, "g", A, 1, 1)])


def merged() -> list[History]:
    """Configurations that came and went unnoticed: said, and not said, and one with a message in it."""
    scripts = [MERGED, *(script for name, (script, *_) in BROKEN.items() if name.startswith("merged"))]
    return [named(ring(script), f"merged-{number}") for number, script in enumerate(scripts)]
