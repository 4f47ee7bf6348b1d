"""Forms for runs that memory does not hold: confirmations, servers that replicate, total order on a ring."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
from pyspark.sql import SparkSession
from tests.pipeline.agreement import Said, contradictions, differences, in_memory, said
from tests.pipeline.histories import named, renumbered, swap_deliveries, two_groups, write
from tests.specs import test_specs_confirmed as by_hand

from semcast.core import Item, MemberId
from semcast.history import Event, History, Kind
from semcast.pipeline.verify import Options, survey, verify, verify_here
from semcast.pipeline.verify.forms import Form
from semcast.pipeline.verify.forms import named as of_form
from semcast.sim.replication_scenario import draw_replication
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import Status, check
from semcast.specs.replication import kinds

SERVERS = of_form(Form.REPLICATION)
DISARRANGED = 12
ORDER = ("repl_fifo", "repl_integrity")
TOTAL_ORDER = ("total_order", "uniform_total_order")


def judged(spark: SparkSession, histories: list[History], names: tuple[str, ...], folder: Path) -> Said:
    """As if they were too large for memory."""
    recorded = survey([write(histories, folder)])
    return said(verify(spark, recorded, Options(names, allow_missing=True, memory_rows=0)).verdicts)


# --- servers that replicate -----------------------------------------------------------------------


def changed(**fields: object) -> Callable[[Event], Event]:
    return lambda event: msgspec.structs.replace(event, **fields)


def stranger(event: Event) -> Event:
    members = (*(event.members or ()), MemberId("stranger", 1))
    return msgspec.structs.replace(event, members=members, level=f"{event.level} 1")


def alone(event: Event) -> Event:
    return msgspec.structs.replace(event, members=(event.members or ())[:1])


def shifted(event: Event) -> Event:
    return msgspec.structs.replace(event, seq=event.seq + 1)


def further(event: Event) -> Event:
    return msgspec.structs.replace(event, order=(event.order or 0) + 1000)


def beyond(event: Event) -> Event:
    return msgspec.structs.replace(event, seq=event.seq + 1000)


FAULTS: list[tuple[str, Kind, Callable[[Event], Event]]] = [
    ("repl_total_order", kinds.COLOUR, shifted),
    ("repl_fifo", kinds.COLOUR, shifted),
    ("repl_integrity", kinds.COLOUR, further),
    ("repl_integrity", kinds.COLOUR, changed(seq=1)),
    ("repl_integrity", kinds.REQUEST, beyond),
    ("repl_integrity", kinds.DONE, further),
    ("repl_one_primary", kinds.INSTALL, changed(view=1)),
    ("repl_green_in_primary", kinds.PHASE, changed(level="non-prim")),
    ("repl_knowledge", kinds.DURABLE, changed(annotation=Item("another"))),
    ("repl_white", kinds.WHITE, further),
    ("repl_answered", kinds.REPLY, shifted),
    ("repl_weak", kinds.REPLY, further),
    ("repl_dirty", kinds.REPLY, further),
    ("repl_session", kinds.REPLY, changed(level="session", order=0)),
    ("repl_queued", kinds.REPLY, beyond),
    ("repl_linear", kinds.REQUEST, changed(at=1 << 50)),
    ("repl_causal", kinds.REQUEST, changed(annotation=Item("nobody#1:7"))),
    ("repl_exchange_once", kinds.AGAIN, changed(seq=1, count=100)),
    ("repl_join", kinds.INSTALL, stranger),
    ("repl_leave", kinds.GROUP, alone),
    ("repl_liveness", kinds.PHASE, changed(level="non-prim")),
    ("repl_liveness", kinds.REQUEST, beyond),
    ("repl_liveness", kinds.COLOUR, further),
    ("repl_state", Kind.APPLY, changed(digest="another")),
]
"""A property, and a row of this kind that breaks it, if it is changed like this."""


def broken(*histories: History) -> Iterator[History]:
    """For each fault a history with one row changed: the first in which that breaks something."""
    for number, fault in enumerate(FAULTS):
        found = next(filter(None, (_broken(history, *fault) for history in histories)))
        yield named(found, f"broken-{number}")


def _broken(history: History, name: str, kind: Kind, change: Callable[[Event], Event]) -> History | None:
    """With the last row changed that breaks the property."""
    for place in reversed(range(len(history.events))):
        if history.events[place].kind is kind:
            events = list(history.events)
            events[place] = change(events[place])
            found = renumbered(history.info, events)
            if check(found, [name])[0].status is Status.VIOLATED:
                return found
    return None


def disarranged(history: History, random: Random) -> History:
    """Some rows about the order are lost, come twice, change places or name something else."""
    events = list(history.events)
    for _ in range(random.randint(1, 3)):
        kind = random.choice(
            (kinds.COLOUR, kinds.COLOUR, kinds.COLOUR, kinds.SNAPSHOT, kinds.REQUEST, kinds.DONE)
        )
        found = [place for place, event in enumerate(events) if event.kind is kind]
        if found:
            _disarrange(events, random.choice(found), random)
    return renumbered(history.info, events)


def _disarrange(events: list[Event], place: int, random: Random) -> None:
    event = events[place]
    edits = random.choice(("lost", "twice", "later", "seq", "order"))
    if edits == "lost":
        del events[place]
    elif edits in ("twice", "later"):
        same = [at for at in range(place + 1, len(events)) if events[at].process == event.process]
        events.insert(random.choice(same or [place]), event)
        if edits == "later":
            del events[place]
    elif edits == "seq" and event.seq:
        events[place] = msgspec.structs.replace(event, seq=max(1, event.seq + random.choice((-3, -1, 1, 40))))
    elif event.order is not None:
        moved = max(1, event.order + random.choice((-3, -1, 1, 40)))
        events[place] = msgspec.structs.replace(event, order=moved)


def test_servers_are_judged_as_in_memory(interpreted: SparkSession, tmp_path: Path) -> None:
    """Also where servers crash, start again, and begin from a snapshot; and whatever the order of rows."""
    brief, sound, *more = [simulate(draw_replication(seed)).history for seed in (18, 0, 2, 14)]
    histories = [named(sound, "sound"), named(brief, "brief")]
    histories += [named(each, f"server-{number}") for number, each in enumerate(more)]
    histories += broken(brief, sound)
    for number in range(DISARRANGED):
        history = disarranged((sound, *more)[number % 3], Random(number))
        histories.append(named(history, f"disarranged-{number}"))
    expected = in_memory(histories, SERVERS)
    for number, (name, _, _) in enumerate(FAULTS):
        assert expected[f"broken-{number}", name][0] == "violated"
    for name in ORDER:
        assert {expected[f"disarranged-{n}", name][0] for n in range(DISARRANGED)} == {"holds", "violated"}
    assert {expected["sound", name][0] for name in SERVERS} == {"holds"}
    found = judged(interpreted, [*histories, two_groups()], SERVERS, tmp_path)
    of_groups = [key for key in found if key[0].startswith("two-groups")]
    assert {found.pop(key)[0] for key in of_groups} == {"unknown"}  # no server, and no row at all
    assert differences(found, expected) == []


# --- confirmations --------------------------------------------------------------------------------


def confirmations() -> Iterator[History]:
    """Written by hand, and of programs that ask."""
    for name, steps in vars(by_hand).items():
        if getattr(steps, "__annotations__", {}).keys() == {"recorder", "return"}:
            yield named(by_hand.history(steps), name)
            yield named(by_hand.history(steps, quiesced=False), f"{name}-not-over", quiesced=False)
    for stack in ("s-rm", "vsync"):
        scenario = scenario_of(stack, 202)
        assert scenario.bursts is not None
        bursts = msgspec.structs.replace(scenario.bursts, confirms=1, single=True, waits=True)
        found = simulate(msgspec.structs.replace(scenario, bursts=bursts)).history
        yield named(found, stack)
        events = [event for event in found.events if event.kind is not Kind.DELIVER or event.seq > 3]
        yield renumbered(msgspec.structs.replace(found.info, run=f"{stack}-lost"), events)


def test_confirmations_are_judged_as_in_memory(interpreted: SparkSession, tmp_path: Path) -> None:
    histories = [
        history
        for history in confirmations()
        if any(event.kind is Kind.CONFIRMED for event in history.events)
    ]
    expected = in_memory(histories, ["confirmed"])
    assert {status for status, _ in expected.values()} == {"holds", "violated", "unknown"}
    assert differences(judged(interpreted, histories, ("confirmed",), tmp_path), expected) == []


def test_what_was_confirmed_is_judged_without_being_asked_for(tmp_path: Path) -> None:
    history = named(by_hand.history(by_hand.never), "never")
    report = verify_here(survey([write([history], tmp_path)]), Options(allow_missing=True))
    told = {verdict.property: verdict.status for verdict in report.verdicts}
    assert told["confirmed"] is Status.VIOLATED


# --- total order on a ring ------------------------------------------------------------------------


def test_total_order_of_a_ring_follows_from_its_positions(interpreted: SparkSession, tmp_path: Path) -> None:
    sound = simulate(draw_ring(2)).history
    events = list(sound.events)
    swap_deliveries(events, Random(1))
    swapped = renumbered(msgspec.structs.replace(sound.info, run="swapped"), events)
    histories = [named(sound, "sound"), swapped]
    found = judged(interpreted, histories, TOTAL_ORDER, tmp_path)
    expected = in_memory(histories, TOTAL_ORDER)
    assert contradictions(found, expected) == []
    assert {found["sound", name][0] for name in TOTAL_ORDER} == {"holds"}
    assert {found["swapped", name] for name in TOTAL_ORDER} == {expected["swapped", n] for n in TOTAL_ORDER}
