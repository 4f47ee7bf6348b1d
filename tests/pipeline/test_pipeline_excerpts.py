"""Excerpts of runs that are too large to be read whole: what they show is true; what they miss is unknown.

Every other test has runs that are their own excerpt. Here excerpts are a few rows around a fault.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import Said, contradictions, in_memory, said
from tests.pipeline.histories import named, places, renumbered, small, write
from tests.pipeline.rings import CAUGHT

from semcast.history import Event, History, HistoryError, Kind
from semcast.pipeline.verify import Options, batches, certified, job, survey, verify, verify_here
from semcast.pipeline.verify.properties import Form
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


@pytest.fixture
def small_excerpts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run here is its own excerpt."""
    monkeypatch.setattr(certified, "MOST_ROWS", 120)
    monkeypatch.setattr(certified, "AROUND", 8)


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


def judged(spark: SparkSession, histories: list[History], folder: Path) -> Said:
    recorded = survey([write(histories, folder)])
    return said(verify(spark, recorded, Options(NAMES, allow_missing=True, memory_rows=0)).verdicts)


@pytest.mark.usefixtures("small_excerpts")
def test_excerpts_show_what_is_broken_wherever_it_is(
    interpreted: SparkSession, ring: History, causal: History, tmp_path: Path
) -> None:
    of_ring = list(broken(ring, swap, RING[0]))
    of_views = list(broken(causal, swap, CAUSAL[0]))
    lacking = list(broken(ring, drop, RING[3]))
    assert (len(of_ring), len(of_views), len(lacking)) == (3, 3, 3)
    sound = [named(ring, "sound-ring"), named(causal, "sound-causal")]
    histories = [*sound, *of_ring, *of_views, *lacking]
    assert min(len(history.events) for history in histories) > certified.MOST_ROWS
    found, expected = judged(interpreted, histories, tmp_path), in_memory(histories, NAMES)
    assert contradictions(found, expected) == []
    assert {found["sound-ring", name] for name in RING} == {("holds", 0)}
    assert {found["sound-causal", name] for name in CAUSAL} == {("holds", 0)}
    for history in of_ring:
        assert found[history.info.run, RING[0]][0] == "violated"
    for history in of_views:
        assert found[history.info.run, CAUSAL[0]][0] == "violated"
    # What is lacking is judged from there to the end of its configuration: that may be too much to read.
    told = [found[history.info.run, RING[3]][0] for history in lacking]
    assert "violated" in told
    assert set(told) <= {"violated", "unknown"}


@pytest.mark.usefixtures("small_excerpts")
def test_what_an_excerpt_does_not_show_is_unknown(
    interpreted: SparkSession, ring: History, tmp_path: Path
) -> None:
    """Wrong positions early at one process, and a real fault far behind the excerpt around them."""
    real = list(broken(ring, swap, RING[0]))
    events = list(real[-1].events)
    first = [n for n in places(events, Kind.DELIVER) if same_process(events, n, 0)][:10]
    for place in first:
        forge(events, place)
    hidden = renumbered(msgspec.structs.replace(ring.info, run="hidden"), events)
    wrong = list(ring.events)
    for place in first:
        forge(wrong, place)
    forged = renumbered(msgspec.structs.replace(ring.info, run="forged"), wrong)
    found = judged(interpreted, [hidden, forged], tmp_path)
    assert contradictions(found, in_memory([hidden, forged], NAMES)) == []
    for run in ("hidden", "forged"):
        assert found[run, "ring_certificate"][0] == "violated"
        assert {found[run, name][0] for name in RING} <= {"unknown", "violated"}
    assert {found["forged", name][0] for name in RING} == {"unknown"}


@pytest.mark.usefixtures("small_excerpts")
def test_excerpts_never_contradict_the_whole_run(interpreted: SparkSession, tmp_path: Path) -> None:
    """Of mutants of the ring and of causal groups."""
    histories = [
        named(simulate(draw_ring(seed), MUTANTS["ring"][name]).history, name) for name, seed in CAUGHT.items()
    ]
    histories += [
        named(simulate(draw_vsync(seed), MUTANTS["vsync"][name]).history, name)
        for name, seed in (("vector-too-small", 7), ("stamp-lost-with-purged", 12))
    ]
    found, expected = judged(interpreted, histories, tmp_path), in_memory(histories, NAMES)
    assert contradictions(found, expected) == []


# --- nothing holds that nobody looked at ----------------------------------------------------------


@pytest.fixture
def two_groups(tmp_path: Path) -> Path:
    """A run with two groups, of one of which nothing was recorded."""
    history = small(5)
    group = history.info.groups[0]
    groups = (group, msgspec.structs.replace(group, name="silent"))
    return write([History(msgspec.structs.replace(history.info, groups=groups), history.events)], tmp_path)


@pytest.mark.parametrize("memory_rows", [0, 500_000])
def test_nothing_holds_of_a_group_without_rows(
    interpreted: SparkSession, two_groups: Path, memory_rows: int
) -> None:
    options = Options(list(PROPERTIES), allow_missing=True, memory_rows=memory_rows)
    for report in (
        verify(interpreted, survey([two_groups]), options),
        verify_here(survey([two_groups]), options),
    ):
        told = [verdict for verdict in report.verdicts if verdict.run == "small-5[silent]"]
        assert len(told) == len(PROPERTIES)
        assert {verdict.status for verdict in told} == {Status.UNKNOWN}
        assert "nothing was recorded" in {verdict.detail for verdict in told}


def test_rows_that_vanish_between_two_passes_are_an_error(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = survey([write([small(5)], tmp_path)])
    monkeypatch.setattr(batches, "_row_group", lambda _file, _group, _known: iter(()))
    with pytest.raises(HistoryError, match=r"\d+ rows about messages were there at first, then 0"):
        verify(interpreted, recorded, Options(["fifo_delivery"], allow_missing=True))


def test_what_no_form_looked_at_is_unknown(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(job._JUDGES, Form.CONTENTS)
    recorded = survey([write([small(5)], tmp_path)])
    report = verify(interpreted, recorded, Options(["integrity"], allow_missing=True))
    assert [(v.status, v.detail) for v in report.verdicts] == [(Status.UNKNOWN, "no form looked at it")]
