"""Extended virtual synchrony on Spark says what the checkers in memory say, on sound and broken histories."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.test_pipeline_cut_off import cut_short
from tests.pipeline.test_pipeline_verify import (
    crash,
    differences,
    drop_delivery,
    forget_crash,
    in_memory,
    invent_delivery,
    lose_half,
    named,
    on_spark,
    places,
    recut,
    renumbered,
    repeat_delivery,
    run_in_circles,
    said,
    scatter,
    swap_deliveries,
    write,
)
from tests.specs.test_specs_evs_brute_force import history as small_history

from semcast.core import Enumeration, MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.evs import IN_MEMORY
from semcast.sim.mutants import MUTANTS
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.simulate import simulate
from semcast.specs import EVS, Status

pytestmark = pytest.mark.xdist_group("spark")

NAMES = list(EVS)
A, B, C = MemberId("a"), MemberId("b"), MemberId("c")


# --- histories ------------------------------------------------------------------------------------


def small(seeds: range) -> list[History]:
    """Four members who do almost what a ring would do."""
    found = (named(small_history(seed), f"small-{seed}") for seed in seeds)
    return [history for history in found if history.events and growing(history)]


def growing(history: History) -> bool:
    """Whether a recorder can have written it: the numbers of a sender grow."""
    sent = [event for event in history.events if event.kind is Kind.MULTICAST]
    return all(one.process != other.process or one.last < other.seq for one, other in pairwise(sent))


# Seeds whose swarm caught the mutant by a specification of EVS.
CAUGHT = {
    "safe-after-one-rotation": 4,
    "no-transitional-configuration": 4,
    "obligation-set-forgotten": 40,
    "delivered-after-a-hole": 4,
    "discarded-before-a-hole": 11,
    "purge-across-configurations": 8,
    "aru-raised-too-early": 1,
    "holes-not-agreed": 27,
    "old-token-accepted": 0,
    "conf-id-reused": 9,
    "purge-without-replacement": 6,
}


def simulated() -> Iterator[History]:
    """Sound rings, and every mutant."""
    for seed in (1, 2, 3):
        yield simulate(draw_ring(seed)).history
    for name, mutant in MUTANTS["ring"].items():
        yield named(simulate(draw_ring(CAUGHT.get(name, 2)), mutant).history, name)


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
    info = RunInfo("deep", "g", "ring", None, members, None, uniform=False, quiesced=True)
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
    info = RunInfo("before", "g", "ring", None, (A, B), None, uniform=False, quiesced=True)
    return renumbered(info, events)


def nowhere() -> History:
    """Nobody recorded a configuration."""
    info = RunInfo("nowhere", "g", "ring", None, (A,), None, uniform=False, quiesced=True)
    return History(info, [Event(A, 0, 0, Kind.MULTICAST, "g", A, 1, 1)])


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """For a few rows compiling a plan takes longer than running it."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, old or "")


# --- agreement ------------------------------------------------------------------------------------


def test_it_agrees_with_the_checkers_in_memory(interpreted: SparkSession, tmp_path: Path) -> None:
    """Also on runs that are cut otherwise and lie in several files, their rows in any order."""
    real = list(simulated())
    few = small(range(40))
    cut = [cut_short(history, number) for number, history in enumerate([real[0], *few[:12]])]
    extra = [deep(), before_any_configuration(), nowhere()]
    whole = [*real, *planted(real[0]), *few, *extra, *(history for history in cut if history.events)]
    folder = write(whole, tmp_path / "runs")
    random = Random(7)
    again = [
        recut(named(history, f"{history.info.run}-again"), random)
        for history in (real[1], real[-1], *few[::9])
    ]
    for history in again:
        scatter(history, folder, random)
    expected = in_memory([*whole, *again], NAMES)
    # Rows that are not numbered in order, which 1.2 forbids, are refused before anything is judged.
    for name in set(NAMES) - {"evs_1_2_local_order"}:
        assert {status for (_, of), (status, _) in expected.items() if of == name} >= {"holds", "violated"}
    caught = [name for name in CAUGHT if any(expected[name, of][0] == "violated" for of in NAMES)]
    assert len(caught) > len(CAUGHT) / 2, "not all of them: seeds are those of the protocol as it was"
    report = on_spark(interpreted, folder, names=NAMES)
    assert differences(said(report), expected) == []
    assert all(len(v.sample) > 0 for v in report.verdicts if v.status is Status.VIOLATED)


def test_runs_that_are_too_long_for_memory_are_not_judged(interpreted: SparkSession, tmp_path: Path) -> None:
    folder = write([named(deep(), "long"), before_any_configuration()], tmp_path)
    report = verify(interpreted, survey([folder]), Options(IN_MEMORY, memory_rows=10))
    told = {(v.run, v.property): v for v in report.verdicts}
    assert {told["long", name].status for name in IN_MEMORY} == {Status.UNKNOWN}
    assert told["before", "evs_1_1_precedence"].status is Status.HOLDS
    assert (
        told["long", IN_MEMORY[0]].detail
        == "the run has 69 rows, and more than 10 are not judged in memory; use `semcast check`"
    )
