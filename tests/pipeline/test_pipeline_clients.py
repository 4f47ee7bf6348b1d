"""Lightweight groups and calls in runs that memory does not hold: Spark says what the checkers say."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.calls.parting import cases
from tests.lightweight.test_lightweight_specs import spoilt
from tests.pipeline.agreement import differences, in_memory, said, statuses
from tests.pipeline.histories import named, renumbered, write

from semcast.history import Event, History
from semcast.pipeline.verify import Options, calls, memory, survey, verify
from semcast.pipeline.verify.forms import Form
from semcast.pipeline.verify.forms import named as of_form
from semcast.pipeline.verify.lightweight import judge as lightweight
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import CALLS, LIGHTWEIGHT, Status
from semcast.specs.lightweight.kinds import ASK, DELIVER, HEARD, SESSION

SOUND = (("lightweight", 2), ("calls", 2), ("calls", 4))
CAUGHT = {
    ("lightweight", "join-at-request"): 2,
    ("lightweight", "operations-untagged"): 5,
    ("lightweight", "index-per-group"): 1,
    ("lightweight", "open-in-the-senders-view"): 1,
    ("lightweight", "private-to-the-next-session"): 1,
    ("lightweight", "flushed-before-the-last-send"): 5,
    ("lightweight", "settled-when-accepted"): 1,
    ("lightweight", "gone-forgotten"): 1,
    ("lightweight", "no-transitional-for-changed"): 1,
    ("lightweight", "purged-without-receipts"): 3,
    ("calls", "expected-when-made"): 0,
    ("calls", "answers-twice"): 0,
    ("calls", "chosen-by-each"): 0,
    ("calls", "replies-overtake"): 4,
}
"""Mutants, and a seed with which a checker saw each, in the protocol as it was."""

SPOILT = 9


def recorded() -> Iterator[History]:
    """Sound runs, those of mutants, and some in which rows were moved, lost, doubled or changed."""
    for stack, seed in SOUND:
        sound = simulate(scenario_of(stack, seed)).history
        yield named(sound, f"{stack}-{seed}")
        for number in range(SPOILT if seed == 2 else 0):
            changed = list(spoilt(sound, Random(number)).events)
            yield renumbered(named(sound, f"spoilt-{stack}-{number}").info, changed)
    programs = named(simulate(scenario_of("lightweight", 3)).history, "heard-twice")
    yield renumbered(programs.info, [*programs.events, _last_heard(programs)])
    going_on = named(programs, "goes-on")
    yield renumbered(going_on.info, [*going_on.events, *_after_the_end(going_on)])
    yield from (history for history, _ in cases())
    for (stack, name), seed in CAUGHT.items():
        yield named(simulate(scenario_of(stack, seed), MUTANTS[stack][name]).history, name)


def _last_heard(history: History) -> Event:
    return next(event for event in reversed(history.events) if event.kind is HEARD)


def _after_the_end(history: History) -> Iterator[Event]:
    """A session comes back, its client is given and asks for something; a program hears that it is out."""
    end = next(event for event in history.events if event.kind is SESSION and event.level != "came")
    assert end.sender is not None
    given = next(event for event in history.events if event.kind is DELIVER and event.process == end.process)
    asked = next(event for event in history.events if event.kind is ASK and event.process == end.process)
    yield msgspec.structs.replace(end, level="came")
    yield msgspec.structs.replace(given, members=(end.sender,))
    yield msgspec.structs.replace(asked, sender=end.sender)
    yield msgspec.structs.replace(_last_heard(history), level="out")
    yield _last_heard(history)


def of_stack(histories: list[History], stack: str) -> list[History]:
    return [history for history in histories if history.info.only.stack == stack]


def test_clients_and_calls_are_judged_as_in_memory(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lightweight, "_STRETCH", 64)  # runs are short
    monkeypatch.setattr(calls, "_RANGE", 8)
    histories = list(recorded())
    expected = in_memory(of_stack(histories, "lightweight"), list(LIGHTWEIGHT))
    expected |= in_memory(of_stack(histories, "calls"), list(CALLS))
    for name in (*LIGHTWEIGHT, *CALLS):
        assert statuses(expected, name) >= {"holds", "violated"}, name
    options = Options(allow_missing=True, memory_rows=0)
    verdicts = verify(interpreted, survey([write(histories, tmp_path)]), options).verdicts
    assert differences(said(verdicts), expected) == []
    assert all(verdict.sample for verdict in verdicts if verdict.status is Status.VIOLATED)


def test_every_property_of_clients_and_calls_has_a_form() -> None:
    """A form that does not know a name would find nothing wrong with it."""
    assert set(of_form(Form.LIGHTWEIGHT)) == set(LIGHTWEIGHT) == lightweight.JUDGED
    assert set(of_form(Form.CALLS)) == set(CALLS) == calls.JUDGED


def test_too_many_sessions_and_views_cannot_be_told(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of a run in which nothing was recorded of either, nothing holds."""
    monkeypatch.setattr(memory, "MOST", 3)
    histories = [named(simulate(scenario_of(stack, 2)).history, stack) for stack in ("lightweight", "calls")]
    names = ["lw_gone", "lw_open", "call_one", "causal_reply"]
    recording = survey([write(histories, tmp_path)])
    verdicts = verify(interpreted, recording, Options(names, allow_missing=True, memory_rows=0)).verdicts
    told = {(each.run, each.property): each.detail for each in verdicts if each.status is Status.UNKNOWN}
    assert told == {
        ("lightweight", "lw_gone"): "there are too many rows about sessions and views",
        ("lightweight", "lw_open"): "there are too many rows about sessions and views",
        ("lightweight", "call_one"): "nothing was recorded of calls",
        ("lightweight", "causal_reply"): "nothing was recorded of calls",
        ("calls", "lw_gone"): "no daemon was recorded",
        ("calls", "lw_open"): "no daemon was recorded",
        ("calls", "call_one"): "there are too many views for one task",
    }
