"""Gossip and loggers in runs that memory does not hold: Spark says what the checkers in memory say."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import (
    assert_nothing_holds_of_the_silent_group,
    differences,
    in_memory,
    said,
    statuses,
)
from tests.pipeline.histories import (
    drop_delivery,
    lose_half,
    named,
    places,
    renumbered,
    repeat_delivery,
    two_groups,
    write,
)
from tests.specs.test_specs_gossip import L, P, Q, Script, sound

from semcast.core import Item, MemberId
from semcast.history import Event, History, RunInfo
from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.forms import Form
from semcast.pipeline.verify.forms import named as of_form
from semcast.pipeline.verify.gossip import rows as gossip_rows
from semcast.pipeline.verify.gossip.judge import JUDGED
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import GOSSIP, GOSSIP_BATCHES, GOSSIP_LOGS
from semcast.specs.gossip import kinds

NAMES = [*GOSSIP, *GOSSIP_LOGS]
CAUGHT = {
    "ack-from-gossip-phase": 2,
    "joiner-from-zero": 2,
    "acknowledge-on-receipt": 6,
    "spill-forgets": 0,
    "slow-member-blocks": 1,
    "at-most-once-from-logger": 25,
    "compact-before-logged": 5,
    "compact-across-operation": 4,
    "receipt-lost-with-segment": 5,
    "recollected-message-readded": 5,
}
"""Mutants of rpbcast, and a seed with which a checker saw each, in the protocol as it was."""


def simulated() -> Iterator[History]:
    """Of every protocol, and of mutants."""
    for stack, seed in (("rpbcast", 0), ("rpbcast", 4), ("lbrm", 3), ("pbcast", 2)):
        yield named(simulate(scenario_of(stack, seed)).history, f"{stack}-{seed}")
    for name, seed in CAUGHT.items():
        yield named(simulate(scenario_of("rpbcast", seed), MUTANTS["rpbcast"][name]).history, name)


def forget_receipts(events: list[Event], _random: Random) -> None:
    for place in reversed(places(events, kinds.LOST)[1:]):
        del events[place]


def forget_log(events: list[Event], random: Random) -> None:
    for place in random.sample(places(events, kinds.LOG), len(places(events, kinds.LOG)) // 3):
        events[place] = msgspec.structs.replace(events[place], kind=kinds.COLLECT, level="obsolete")


def collect_early(events: list[Event], random: Random) -> None:
    for place in random.sample(places(events, kinds.COLLECT), len(places(events, kinds.COLLECT)) // 3):
        events[place] = msgspec.structs.replace(events[place], at=events[place].at // 2, level="stable")


def misplace(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, kinds.PLACED)[:-1])
    events[place] = msgspec.structs.replace(events[place], order=(events[place].order or 0) + 1)


def expire_at_once(events: list[Event], _random: Random) -> None:
    """What replaces something leaves the log before it."""
    for place in reversed(places(events, kinds.LOG)[1::2]):
        gone = msgspec.structs.replace(events[place], kind=kinds.COLLECT, level="expired")
        events.insert(place + 1, gone)


EDITS: tuple[Callable[[list[Event], Random], None], ...] = (
    drop_delivery,
    repeat_delivery,
    lose_half,
    forget_receipts,
    forget_log,
    collect_early,
    misplace,
    expire_at_once,
)


def planted(history: History) -> Iterator[History]:
    for number, edit in enumerate(EDITS):
        events = list(history.events)
        edit(events, Random(number))
        yield renumbered(msgspec.structs.replace(history.info, run=f"planted-{edit.__name__}"), events)


def by_hand() -> Iterator[History]:
    """Something acknowledged comes again; a lost disk; no logger; a message in no log; views that differ."""
    again = MemberId(P.name, 1)
    script = Script().opened().start(P).start(Q).about(P, "multicast", 1, 2).about(L, "log", 1, 2)
    script.about(Q, "deliver", 1, 2).about(P, "deliver", 1).acknowledged(P, 1).row(P, "crash")
    script.row(again, "start", sender=P, seq=0, level="at-least-once").about(again, "deliver", 1, 2)
    view = {"view": 1, "sender": P}
    begins = Script().opened().start(P).about(P, "multicast", 1).about(L, "log", 1)
    other = MemberId("m")
    rules = (
        Script()
        .opened()
        .opened(other, identity=1)
        .start(P)
        .row(Q, "begin", level="all", annotation=Item("x"))
    )
    rules.start(Q).row(L, "admit", members=(Q,), order=0)
    rules.row(P, "multicast", sender=P, seq=1, count=1, annotation=Item("y")).about(L, "log", 1)
    rules.about(Q, "deliver", 1).about(P, "letgo", 1).row(P, "blocked", level="logger")
    rules.row(L, "closed", sender=P, seq=1).row(other, "closed", sender=P, seq=2)
    forgets = sound().opened(other, identity=1).row(L, "forgot", members=(other,))
    forgets.row(L, "closed", sender=P, seq=1).row(other, "closed", sender=P, seq=2)
    forgets.about(other, "log", 1).about(P, "multicast", 9).about(other, "log", 9)
    ends = Script().opened(retention="live+inactive").start(P).row(L, "admit", members=(Q,), order=1).start(Q)
    ends.row(Q, "crash")
    later = MemberId(Q.name, 1)
    through = Script().opened().start(P).row(Q, "explicit").start(Q).about(P, "multicast", 1, 2)
    through.about(L, "log", 1, 2).about(P, "deliver", 1, 2).about(Q, "deliver", 1, 2)
    through.row(Q, "through", sender=P, seq=1).row(Q, "assured", sender=P, seq=1).row(Q, "crash")
    through.row(later, "explicit").start(later, 1)
    for run, rows in (
        ("ends", [*ends.rows]),
        ("ended", ends.row(L, "dismissed", members=(Q,)).rows),
        ("not-again", [*through.rows]),
        ("again-in-part", through.about(later, "deliver", 2).rows),
        ("sponsored", _sponsored(0).rows),
        ("sponsored-late", _sponsored(1).rows),
        ("rules", rules.rows),
        ("forgets", forgets.rows),
        ("again", script.rows),
        ("again-once", [_at_most_once(row, again) for row in script.rows]),
        ("disk-lost", [*script.rows, *Script().opened(MemberId(L.name, 1), identity=1).rows]),
        ("no-logger", [row for row in script.rows if row.process != L]),
        ("views", Script().row(P, "view", **view, members=(P, Q)).row(Q, "view", **view, members=(Q,)).rows),
        ("begins", begins.row(Q, "begin", level="all").start(Q, 1).rows),
        ("unlogged", sound().about(P, "multicast", 4, 5).about(L, "log", 4).rows),
    ):
        for quiesced in (True, False):
            members = (
                P,
                Q,
                *([L] if run != "no-logger" else []),
                *([other] if run in ("rules", "forgets") else []),
            )
            name = f"{run}-{'over' if quiesced else 'cut'}"
            info = RunInfo.one(name, "g", "rpbcast", 1, members, None, uniform=False, quiesced=quiesced)
            yield History(info, rows)


def _sponsored(start: int) -> Script:
    """A member that another took in, which crashed; what it is owed was collected then."""
    script = Script().opened().row(P, "joined", level="alone", order=2, seq=1).start(P)
    script.row(P, "vouched", sender=P, seq=0, members=(Q,), order=2)
    script.row(Q, "joined", level="sponsors", members=(P,), order=2, seq=1).start(Q, start)
    script.about(P, "multicast", 1).about(P, "deliver", 1).about(L, "log", 1).row(P, "crash")
    return script.about(L, "collect", 1, level="stable").about(Q, "lost", 1, level="expired")


def _at_most_once(row: Event, process: MemberId) -> Event:
    changed = row.process == process and row.kind is kinds.START
    return msgspec.structs.replace(row, level="at-most-once") if changed else row


def test_gossip_is_judged_as_in_memory(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gossip_rows, "_RANGE", 3)  # streams are short
    histories = [*simulated(), *by_hand()]
    histories += [*planted(next(each for each in histories if each.info.run == "rpbcast-4"))]
    expected = in_memory(histories, NAMES)
    for name in NAMES:
        assert statuses(expected, name) >= {"holds", "violated"}
    recorded = survey([write([*histories, two_groups()], tmp_path)])
    options = Options(NAMES, allow_missing=True, memory_rows=0)
    verdicts = verify(interpreted, recorded, options).verdicts
    assert_nothing_holds_of_the_silent_group(verdicts, NAMES)
    told = said(verdict for verdict in verdicts if not verdict.run.startswith("two-groups"))
    assert differences(told, expected) == []


def test_every_property_of_gossip_has_a_form() -> None:
    """A form that does not know a name would find nothing wrong with it."""
    assert set(of_form(Form.GOSSIP)) == {*NAMES, *GOSSIP_BATCHES} == JUDGED
