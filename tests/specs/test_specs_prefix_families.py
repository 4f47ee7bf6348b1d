"""Families with rows of their own: what the beginning of a run can break there, planted into sound runs."""

from collections.abc import Callable
from functools import cache

import msgspec
import pytest
from tests.specs.test_specs_prefix import watched

from semcast.core.ids import MemberId
from semcast.history import History
from semcast.history.events import Event
from semcast.sim.swarm import examine, scenario_of
from semcast.specs import Status, check
from semcast.specs.prefix import GroupWatch

Plant = Callable[[list[Event]], list[Event]]
STRANGER = MemberId("stranger")


@cache
def run_of(stack: str) -> History:
    """A sound run of a family, with the rows in which calls are told apart."""
    finding = examine(scenario_of(stack, 2))
    assert finding.clean, finding.broken
    return finding.outcome.history


def again(kind: str, **fields: object) -> Plant:
    """A row of this kind comes again, at once; perhaps changed."""

    def plant(rows: list[Event]) -> list[Event]:
        place = next(place for place, row in enumerate(rows) if row.kind.value == kind)
        other = msgspec.structs.replace(rows[place], **fields)
        return [*rows[: place + 1], other, *rows[place + 1 :]]

    return plant


def another_green(rows: list[Event]) -> list[Event]:
    """One server has another action at a position."""
    place = next(
        place for place, row in enumerate(rows) if row.kind.value == "colour" and row.level == "green"
    )
    rows[place] = msgspec.structs.replace(rows[place], sender=STRANGER)
    return rows


PLANTED = [
    ("calls", "call_replies", again("call-said")),
    ("calls", "call_replies", again("call-heard")),
    ("calls", "call_replies", again("call-said", seq=999_999)),
    ("lightweight", "lw_view_agreement", again("lw-view", members=(STRANGER,))),
    ("lightweight", "lw_view_agreement", again("lw-view")),
    ("lightweight", "lw_order", again("lw-deliver")),
    ("isis", "domain_groups", again("dom-given")),
    ("isis", "domain_groups", again("dom-view")),
    ("isis", "domain_groups", again("dom-view", members=(STRANGER,))),
    ("replication", "repl_total_order", another_green),
]


@pytest.mark.parametrize(("stack", "name", "plant"), PLANTED)
def test_what_is_planted_is_told(stack: str, name: str, plant: Plant) -> None:
    """By the watcher, and by the checker of the whole run."""
    history = run_of(stack)
    assert name in GroupWatch(history.info.only).judged
    broken = History(history.info, renumbered(plant(list(history.events))))
    assert name in {alarm.property for alarm in watched(broken, 1)}
    [verdict] = check(broken, [name])
    assert verdict.status is Status.VIOLATED


def renumbered(rows: list[Event]) -> list[Event]:
    """Rows of one process count from 0."""
    counts: dict[MemberId, int] = {}
    found = []
    for row in rows:
        found.append(msgspec.structs.replace(row, index=counts.setdefault(row.process, 0)))
        counts[row.process] += 1
    return found


@pytest.mark.parametrize("stack", ["calls", "lightweight", "isis", "replication"])
def test_sound_runs_raise_no_alarm(stack: str) -> None:
    for seed in range(3):
        history = examine(scenario_of(stack, seed)).outcome.history
        assert not watched(history, seed), seed
