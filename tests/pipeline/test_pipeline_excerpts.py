"""Excerpts of runs that are too large to be read whole: what they show is true; what they miss is unknown.

Every other test has runs that are their own excerpt. Here excerpts are a few rows around a fault.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import (
    Said,
    assert_nothing_holds_of_the_silent_group,
    contradictions,
    in_memory,
    said,
)
from tests.pipeline.histories import named, places, renumbered, small, two_groups, write
from tests.pipeline.rings import CAUGHT, caught

from semcast.history import Event, History, Kind
from semcast.pipeline.verify import Options, job, survey, verify, verify_here
from semcast.pipeline.verify import excerpts as module
from semcast.pipeline.verify.forms import Form
from semcast.sim.mutants import MUTANTS
from semcast.sim.ring_scenario import draw_ring
from semcast.sim.simulate import simulate
from semcast.sim.vsync_scenario import draw_vsync
from semcast.specs import PROPERTIES, Status, check

RING = ("evs_6_1_order_respects_precedence", "evs_6_2_same_moment", "evs_5_causal", "evs_6_3_agreed")
CAUSAL = ("causal_delivery", "semantic_causal_completeness")
NAMES = ("ring_certificate", "vector_certificate", *RING, *CAUSAL, "evs_1_1_precedence", "evs_2_3_cut_after")
WHERE = ("early", "in-the-middle", "late")

Edit = Callable[[list[Event], int], None]


@pytest.fixture(scope="module")
def ring() -> History:
    """A sound ring with many rows."""
    return simulate(draw_ring(2)).history


@pytest.fixture(scope="module")
def causal() -> History:
    """A sound causal group with many rows."""
    return simulate(draw_vsync(8)).history


def swap(events: list[Event], place: int) -> None:
    """A process delivers two messages the other way round."""
    later = next(n for n in places(events, Kind.DELIVER) if n > place and same_process(events, n, place))
    events[place], events[later] = events[later], events[place]


def drop(events: list[Event], place: int) -> None:
    del events[place]


def forge(events: list[Event], place: int) -> None:
    """A position is recorded wrong; nothing else is."""
    ring = events[place].ring
    assert ring is not None
    wrong = msgspec.structs.replace(ring, packet=ring.packet + 1)
    events[place] = msgspec.structs.replace(events[place], ring=wrong)


def same_process(events: list[Event], one: int, other: int) -> bool:
    return events[one].process == events[other].process


def broken(history: History, edit: Edit, name: str) -> Iterator[History]:
    """The history with an edit early, in the middle and late that breaks a property."""
    deliveries = places(list(history.events), Kind.DELIVER)
    size = len(deliveries)
    for where, start in zip(WHERE, (0, size // 2, size * 9 // 10), strict=True):
        for place in deliveries[start:]:
            events = list(history.events)
            try:
                edit(events, place)
            except StopIteration:
                continue
            info = msgspec.structs.replace(history.info, run=f"{edit.__name__}-{name}-{where}")
            found = renumbered(info, events)
            if check(found, [name])[0].status is Status.VIOLATED:
                yield found
                break


def forged_early(history: History, run: str) -> History:
    """Ten wrong positions early at one process."""
    events = list(history.events)
    for place in [n for n in places(events, Kind.DELIVER) if same_process(events, n, 0)][:10]:
        forge(events, place)
    return renumbered(msgspec.structs.replace(history.info, run=run), events)


def mutants() -> list[History]:
    """Of the ring, and of causal groups."""
    of_views = (("vector-too-small", 7), ("stamp-lost-with-purged", 12))
    return [
        *map(caught, CAUGHT),
        *(named(simulate(draw_vsync(seed), MUTANTS["vsync"][name]).history, name) for name, seed in of_views),
    ]


@dataclass
class Excerpts:
    """All histories here, and what is said of them where none is its own excerpt."""

    of_ring: list[History]
    of_views: list[History]
    lacking: list[History]
    found: Said
    expected: Said


@pytest.fixture(scope="module")
def excerpts(
    session: SparkSession, ring: History, causal: History, tmp_path_factory: pytest.TempPathFactory
) -> Excerpts:
    """One job for all."""
    of_ring = list(broken(ring, swap, RING[0]))
    of_views = list(broken(causal, swap, CAUSAL[0]))
    lacking = list(broken(ring, drop, RING[3]))
    wrong = [forged_early(of_ring[-1], "hidden"), forged_early(ring, "forged")]
    sound = [named(ring, "sound-ring"), named(causal, "sound-causal")]
    histories = [*sound, *of_ring, *of_views, *lacking, *wrong, *mutants()]
    recorded = survey([write(histories, tmp_path_factory.mktemp("excerpts"))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ROWS", 120)
        patch.setattr(module, "AROUND", 8)
        assert min(len(history.events) for history in (*sound, *of_ring, *of_views, *lacking)) > 120
        report = verify(session, recorded, Options(NAMES, allow_missing=True, memory_rows=0))
    return Excerpts(of_ring, of_views, lacking, said(report.verdicts), in_memory(histories, NAMES))


def test_excerpts_never_contradict_the_whole_run(excerpts: Excerpts) -> None:
    """Also of mutants."""
    assert contradictions(excerpts.found, excerpts.expected) == []


def test_excerpts_show_what_is_broken_wherever_it_is(excerpts: Excerpts) -> None:
    found = excerpts.found
    assert [len(some) for some in (excerpts.of_ring, excerpts.of_views, excerpts.lacking)] == [3, 3, 3]
    assert {found["sound-ring", name] for name in RING} == {("holds", 0)}
    assert {found["sound-causal", name] for name in CAUSAL} == {("holds", 0)}
    for history in excerpts.of_ring:
        assert found[history.info.run, RING[0]][0] == "violated"
    for history in excerpts.of_views:
        assert found[history.info.run, CAUSAL[0]][0] == "violated"
    # What is lacking is judged from there to the end of its configuration: that may be too much to read.
    told = [found[history.info.run, RING[3]][0] for history in excerpts.lacking]
    assert "violated" in told
    assert set(told) <= {"violated", "unknown"}


def test_what_an_excerpt_does_not_show_is_unknown(excerpts: Excerpts) -> None:
    """Wrong positions early at one process, and a real fault far behind the excerpt around them."""
    found = excerpts.found
    for run in ("hidden", "forged"):
        assert found[run, "ring_certificate"][0] == "violated"
        assert {found[run, name][0] for name in RING} <= {"unknown", "violated"}
    assert {found["forged", name][0] for name in RING} == {"unknown"}


# --- nothing holds that nobody looked at ----------------------------------------------------------


def test_nothing_holds_of_a_group_without_rows(interpreted: SparkSession, tmp_path: Path) -> None:
    """Judged in memory; by the forms, see `test_pipeline_agreement.py`."""
    recorded = survey([write([two_groups()], tmp_path)])
    options = Options(list(PROPERTIES), allow_missing=True)
    for report in (verify(interpreted, recorded, options), verify_here(recorded, options)):
        assert_nothing_holds_of_the_silent_group(report.verdicts, list(PROPERTIES))


def test_what_no_form_looked_at_is_unknown(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(job._JUDGES, Form.CONTENTS)
    recorded = survey([write([small(5)], tmp_path)])
    report = verify(interpreted, recorded, Options(["integrity"], allow_missing=True))
    assert [(v.status, v.detail) for v in report.verdicts] == [(Status.UNKNOWN, "no form looked at it")]
