"""The checkers of virtual synchrony against their sentences read literally, over random small histories."""

from itertools import product
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.specs.vsync_histories import numbered, random_history, sound_history, stopped, torn
from tests.specs.vsync_literal import Literal

from semcast.history import Event, History
from semcast.specs import VSYNC, Status, Verdict, check

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=120)
@given(seeds)
def test_the_checkers_say_what_the_sentences_say(seed: int) -> None:
    found = random_history(seed)
    literal = Literal(found)
    for name, verdict in zip(VSYNC, check(found, VSYNC), strict=True):
        assert (name, verdict.status, verdict.count) == (name, *literal.expected(name))
        assert bool(verdict.offending) == (verdict.status is Status.VIOLATED)


def test_the_histories_are_worth_comparing() -> None:
    """Each verdict comes up for each property, and often enough nothing is wrong at all."""
    seen: set[tuple[str, Status]] = set()
    sound = 0
    for seed in range(250):
        verdicts = check(random_history(seed), VSYNC)
        seen |= {(verdict.property, verdict.status) for verdict in verdicts}
        sound += not any(verdict.status is Status.VIOLATED for verdict in verdicts)
    assert set(product(VSYNC, (Status.HOLDS, Status.VIOLATED))) <= seen
    assert sound >= 20


def recut(history: History, random: Random) -> History:
    """The same history with its runs joined at random."""
    joined: list[Event] = []
    for event in history.events:
        before = joined[-1] if joined else None
        if before is not None and _joins(before, event) and random.random() < 0.7:
            joined[-1] = msgspec.structs.replace(before, count=before.count + 1)
        else:
            joined.append(event)
    return History(history.info, numbered(joined))


def _joins(before: Event, event: Event) -> bool:
    said = (event.process, event.kind, event.sender, event.view, event.by)
    plain = event.annotation is None and before.annotation is None and event.by is None
    same = said == (before.process, before.kind, before.sender, before.view, before.by)
    if before.order is None or event.order is None:
        placed = before.order is event.order
    else:
        placed = event.order == before.order + before.count
    return plain and same and placed and event.count == 1 and event.seq == before.last + 1


def meaning(verdict: Verdict) -> Verdict:
    """A verdict without what may differ: which rows the events were found in, and what is not known."""
    events = tuple(msgspec.structs.replace(event, index=0, at=0, size=0) for event in verdict.offending)
    detail = "" if verdict.status is Status.UNKNOWN else verdict.detail
    return msgspec.structs.replace(verdict, offending=events, detail=detail)


@settings(deadline=None, max_examples=100)
@given(seeds, seeds)
def test_no_verdict_depends_on_how_runs_were_cut(seed: int, cuts: int) -> None:
    singles = random_history(seed)
    if cuts % 2:  # only what has no annotation can be in one row
        rows = [msgspec.structs.replace(event, annotation=None, by=None) for event in singles.events]
        singles = History(singles.info, rows)
    runs = recut(singles, Random(cuts))
    assert [meaning(v) for v in check(runs, VSYNC)] == [meaning(v) for v in check(singles, VSYNC)]


@settings(deadline=None, max_examples=60)
@given(seeds, seeds)
def test_a_sound_run_stays_sound_wherever_it_is_cut(seed: int, cuts: int) -> None:
    """Also with everything promised that can be asked for."""
    whole, random = sound_history(seed), Random(cuts)
    early = stopped(whole, random.randint(1, max(event.at for event in whole.events)))
    for history in (whole, early, torn(whole, random), torn(early, random)):
        broken = [verdict for verdict in check(history) if verdict.status is Status.VIOLATED]
        assert [str(verdict) for verdict in broken] == []
