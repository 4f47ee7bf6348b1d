"""Who has set otherwise what must be alike, or finds the group full, is refused and told why."""

from typing import Any

import pytest
from tests.protocols.vsync.vsynclab import Lab, group

from semcast.core import Event
from semcast.core.events import Left, NotAdmitted
from semcast.core.heldback import HeldBack
from semcast.core.ids import SECOND
from semcast.protocols.vsync import Engine, Flush, Order
from semcast.sim.mutants.vsync_life import TermsIgnored

DIFFERENT: dict[str, dict[str, Any]] = {
    "order is total here and fifo there": {"order": Order.TOTAL},
    "flush is all here and coordinator there": {"flush": Flush.ALL},
    "uniform is True here and False there": {"uniform": True},
    "frame_bytes is 999 here and 1300 there": {"frame_bytes": 999},
    "buffer_messages is 65 here and 64 there": {"buffer_messages": 65},
    "window is 5000 here and 4096 there": {"window": 5000},
}


def causes(events: list[Event]) -> list[str]:
    return [event.cause for event in events if isinstance(event, Left)]


def refused(events: list[Event]) -> set[tuple[str, str]]:
    return {(event.member.name, event.cause) for event in events if isinstance(event, NotAdmitted)}


@pytest.mark.parametrize("there", DIFFERENT)
def test_who_has_other_settings_is_refused_by_the_group_and_told_which(there: str) -> None:
    lab = group()
    stranger = lab.add("d", minimum=0, **DIFFERENT[there])
    lab.run(SECOND)
    name, _, here, _, _, group_has, _ = there.split()
    seen_by_group = f"{name} is {group_has} here and {here} there"
    assert causes(stranger.events) == [f"refused: the settings of the group differ: {there}"]
    assert refused(lab.nodes["a"].events) == {("d", f"its settings differ: {seen_by_group}")}
    assert lab.nodes["a"].views == [["a", "b", "c"]]


def test_the_engine_matters_where_the_order_is_total() -> None:
    lab = group(engine=Engine.CONSENSUS)
    friend = lab.add("d", minimum=0, engine=Engine.TOKEN)
    lab.run(SECOND)
    assert friend.views == [["a", "b", "c", "d"]]
    lab = group(order=Order.TOTAL, engine=Engine.CONSENSUS)
    stranger = lab.add("d", minimum=0, order=Order.TOTAL, engine=Engine.TOKEN)
    lab.run(SECOND)
    assert "engine is token here and consensus there" in causes(stranger.events)[0]


def test_founders_with_other_settings_do_not_count() -> None:
    """Three are needed: two and two never found a group, and all hear why."""
    lab = Lab()
    for name, order in zip("abcd", (Order.FIFO, Order.FIFO, Order.TOTAL, Order.TOTAL), strict=True):
        lab.add(name, minimum=3, order=order)
    lab.run(3 * SECOND)
    assert set(lab.phases().values()) == {"joining"}
    assert {name for name, _ in refused(lab.nodes["a"].events)} == {"c", "d"}
    lab.add("e", minimum=3)
    lab.run(3 * SECOND)
    assert lab.nodes["a"].views == [["a", "b", "e"]]
    assert len(causes(lab.nodes["c"].events)) == 1


def test_a_group_that_ignores_the_terms_is_caught() -> None:
    lab = Lab(kind=TermsIgnored)
    for name in "abc":
        lab.add(name)
    lab.run(SECOND)
    stranger = lab.add("d", minimum=0, order=Order.TOTAL)
    lab.run(SECOND)
    assert stranger.views, "it is let in, and nobody understands the other"


def test_a_candidate_of_a_full_group_is_told_so() -> None:
    lab = group(buffer_messages=3)
    late = lab.add("d", minimum=0, buffer_messages=3)
    lab.run(SECOND)
    assert refused(late.events) == {("d", "the group is full: it has 3 members")}
    assert late.stack.held_back() == HeldBack(None, "the group is full: it has 3 members")
    assert refused(lab.nodes["a"].events) == {("d", "the group is full")}
    assert lab.nodes["a"].views == [["a", "b", "c"]]
    lab.nodes["c"].alive = False
    lab.run(2 * SECOND)
    assert late.views[-1] == ["a", "b", "d"], "it waited for that"


def test_a_member_of_a_full_group_that_starts_again_is_let_in() -> None:
    lab = group(buffer_messages=3)
    lab.nodes["c"].alive = False
    back = lab.add("c", 1, minimum=0, buffer_messages=3)
    lab.run(2 * SECOND)
    assert causes(back.events) == []
    assert back.views[-1] == ["a", "b", "c#1"]
