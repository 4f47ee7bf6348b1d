"""A swarm of daemons and programs over connections that break; the checkers of what programs hear."""

import pytest
from tests.lightweight.test_lightweight_specs import A, B, Q, Script, cast, joined

from semcast.sim.mutants import MUTANTS as CALLS_MUTANTS
from semcast.sim.mutants.clients import MUTANTS
from semcast.sim.swarm import examine, scenario_of
from semcast.specs.calls.kinds import RETURNED
from semcast.specs.lightweight.kinds import HEARD

CAUGHT = {
    "purge-across-lightweight-views": ("lw_purged", 0),
    "purged-without-receipts": ("lw_purged", 0),
    "resumed-without-the-rest": ("lw_heard", 24),
    "resumed-from-the-last-taken": ("lw_heard", 0),
    "view-named-after-leave": ("lw_sending_view", 6285),
}


def test_the_swarm_finds_nothing() -> None:
    heard: set[str | None] = set()
    for seed in (0, 15, 24):
        finding = examine(scenario_of("lightweight", seed))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        heard.update(event.level for event in finding.outcome.history.events if event.kind is HEARD)
    assert heard >= {"deliver", "view", "transitional", "left", "purged"}


def test_a_slow_program_that_leaves_names_no_view() -> None:
    """It once did until it had read that it was out."""
    finding = examine(scenario_of("lightweight", 6285))
    assert finding.clean, finding.broken


@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_is_caught_by_name(mutant: str) -> None:
    name, seed = CAUGHT[mutant]
    finding = examine(scenario_of("lightweight", seed), MUTANTS[mutant])
    assert any(each.startswith(name) for each in finding.broken), finding.broken


def test_programs_that_call_each_other_are_judged_beside_their_daemons() -> None:
    outcomes: set[str | None] = set()
    for seed in (6, 30, 54):
        finding = examine(scenario_of("lightweight", seed))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        [calls] = finding.outcome.beside
        outcomes.update(event.level for event in calls.events if event.kind is RETURNED)
    assert outcomes == {"complete", "too few", "timeout", "left"}


@pytest.mark.parametrize(
    ("mutant", "seed", "name"),
    [
        ("expected-when-made", 6, "call_complete"),
        ("majority-of-those-left", 42, "call_complete"),
        ("replies-to-others-counted", 30, "call_replies"),
        ("answers-twice", 6, "call_replies"),
        ("chosen-by-each", 6, "call_one"),
    ],
)
def test_what_is_wrong_with_calls_shows_among_clients_too(mutant: str, seed: int, name: str) -> None:
    finding = examine(scenario_of("lightweight", seed), CALLS_MUTANTS["calls"][mutant])
    assert any(each.startswith(name) for each in finding.broken), finding.broken


# By hand


def told() -> Script:
    """B is told of a view and of three messages; the first two are about one item."""
    script = joined()
    for seq, items in ((2, ["x"]), (3, ["x"]), (4, [""])):
        script = cast(script, 3 + seq, seq, B)
        ask = next(row for row in script.rows if row.kind.value == "lw-ask" and row.seq == seq)
        place = script.rows.index(ask)
        text = {"groups": ["e"], "view": None, "items": items}
        script.rows[place] = Script().row(ask.process, "lw-ask", text, **_columns(ask)).rows[0]
    return script


def _columns(row: object) -> dict[str, object]:
    names = ("index", "at", "sender", "seq", "count", "level")
    return {name: getattr(row, name) for name in names}


def hear(script: Script, *what: str) -> Script:
    """B hears of a view, of messages by their number, or of what was purged."""
    for each in what:
        level, _, number = each.partition(" ")
        text: dict[str, object] = {"by": str(A), "groups": ["e"]}
        if level in ("view", "left"):
            text = {"group": "e", "id": [5, 0, "p", int(number or 0)]}
        columns = {"seq": int(number), "count": 1} if level in ("deliver", "purged") else {}
        script.row(Q, "lw-heard", text, sender=B, level=level, **columns)
    return script


def broken(*heard: str) -> set[str]:
    return hear(told(), *heard).broken() & {"lw_heard", "lw_purged"}


def test_what_programs_may_hear() -> None:
    assert broken("view 2", "deliver 2", "deliver 3", "deliver 4") == set()
    assert broken("view 2", "purged 2", "deliver 3", "deliver 4") == set()
    assert broken("view 2", "deliver 2") == set()  # the rest is on its way


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        (("view 2", "deliver 2", "deliver 2"), "lw_heard"),
        (("view 2", "deliver 3", "deliver 2"), "lw_heard"),
        (("view 3",), "lw_heard"),
        (("deliver 2",), "lw_heard"),  # the view is lost
        (("view 2", "deliver 2", "deliver 4"), "lw_purged"),  # nothing replaces 3
        (("view 2", "deliver 3", "deliver 4"), "lw_purged"),  # nobody told it of 2
    ],
)
def test_what_programs_never_hear(heard: tuple[str, ...], name: str) -> None:
    assert name in broken(*heard)


def test_nothing_is_replaced_across_a_view() -> None:
    script = cast(joined(), 5, 2, B)
    script.view(B, 3, A, B)
    script = cast(script, 6, 3, B, change=3)
    for place, row in enumerate(script.rows):
        if row.kind.value == "lw-ask" and row.seq > 1:
            text = {"groups": ["e"], "view": None, "items": ["x"]}
            script.rows[place] = Script().row(row.process, "lw-ask", text, **_columns(row)).rows[0]
    assert "lw_purged" in hear(script, "view 2", "purged 2", "view 3", "deliver 3").broken()
