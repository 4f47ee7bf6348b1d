"""What a process did after its recording was cut off is unknown: held against nobody, and for nobody."""

from random import Random

import msgspec
import pytest
from tests.specs.test_specs_by_hand import run
from tests.specs.test_specs_evs_by_hand import ring

from semcast.core import MemberId
from semcast.history import History
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import EVS, Status, check

RESTS_ON_WHAT_REPLACES_WHAT = {
    "evs_3_self_delivery",
    "evs_4_failure_atomicity",
    "evs_5_causal",
    "evs_6_3_agreed",
    "evs_7_1_safe",
    "pair_transitional",
    "pair_transitional_then_regular",
    "evs_purge_within_configuration",
}


def cut(history: History, *names: str) -> History:
    cut_off = tuple(map(MemberId, names))
    return History(msgspec.structs.replace(history.info, cut_off=cut_off), history.events)


def statuses(history: History) -> dict[str, Status]:
    return {verdict.property: verdict.status for verdict in check(history)}


def violated(history: History) -> set[str]:
    return {name for name, status in statuses(history).items() if status is Status.VIOLATED}


def unknown(history: History) -> set[str]:
    return {name for name, status in statuses(history).items() if status is Status.UNKNOWN}


def test_who_is_cut_off_owes_nothing_more() -> None:
    history = run("m1-2 a1-2", "a1", "a1-2")
    assert violated(history) == {"semantic_agreement"}
    assert violated(cut(history, "b")) == set()
    assert "semantic_agreement" not in unknown(cut(history, "b"))


def test_what_it_did_before_still_counts() -> None:
    assert violated(cut(run("m1-2 a1-2", "a2 a1 a1", "a1-2"), "b")) == {"integrity", "fifo_delivery"}


def test_its_lost_messages_are_not_out_of_thin_air() -> None:
    history = run("m1-2 a1-2", "a1-4", "a1-4")
    assert "integrity" in violated(history)
    verdicts = {verdict.property: verdict for verdict in check(cut(history, "a"))}
    assert verdicts["integrity"].status is Status.UNKNOWN
    assert verdicts["integrity"].detail == "the recording of a is cut off before it sent 4"
    assert violated(cut(history, "a")) == set()
    # Others are judged as before, and so is what it skipped before it was cut off.
    assert "integrity" in violated(cut(history, "c"))
    assert "integrity" in violated(cut(run("m1 m3 a1", "a1-3", "a1-3"), "a"))


def test_something_twice_is_a_violation_all_the_same() -> None:
    assert violated(cut(run("m1 a1", "a1-2 a2", "a1-2"), "a")) == {"integrity"}


def test_a_lost_message_may_have_replaced_anything() -> None:
    history = cut(run("m1:x a1", "a1 a2", "a2"), "a")
    assert violated(history) == set()
    assert {"semantic_agreement", "semantic_fifo_completeness"} <= unknown(history)


@pytest.mark.parametrize("stack", ["ring", "s-rm", "s-srm"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sound_run_stays_sound_wherever_it_is_cut(stack: str, seed: int) -> None:
    history = simulate(scenario_of(stack, seed)).history
    random = Random(seed)
    for _ in range(4):
        lost = random.sample(history.processes, random.randint(1, 2))
        events = [
            event
            for process in history.processes
            for event in history.of(process)[: random.randint(0, 400) if process in lost else None]
        ]
        info = msgspec.structs.replace(history.info, cut_off=tuple(lost))
        assert violated(History(info, events)) == set()


CONFIGURATION = """
    p: V1=pq m1 p1 {p}
    q: V1=pq p1 {q}
"""


def test_a_configuration_with_lost_messages() -> None:
    history = ring(CONFIGURATION.format(p="", q="p2-3"))
    assert "evs_1_3_sent_before_in_same_configuration" in violated(history)
    history = cut(history, "p")
    assert violated(history) == set()
    assert unknown(history) & EVS.keys() == {
        "evs_1_3_sent_before_in_same_configuration",
        *RESTS_ON_WHAT_REPLACES_WHAT,
    }


def test_a_receipt_may_name_a_lost_message() -> None:
    history = ring(CONFIGURATION.format(p="m2:x p2", q="-p2<p3 p3"))
    assert "evs_purge_within_configuration" in violated(history)
    assert violated(cut(history, "p")) == set()


def test_lost_messages_of_a_stranger_are_a_violation_all_the_same() -> None:
    history = cut(ring("p: V1=p m1 p1\nq: V2=q/q p2"), "p")
    assert violated(history) == {"evs_1_3_sent_before_in_same_configuration"}


def test_who_is_cut_off_may_still_be_in_the_configuration() -> None:
    history = ring("p: V1=p T=p V2=pq\nq: V2=pq/p q1 crash")
    assert "evs_2_1_installed_by_all" in violated(history)
    history = ring("p: V1=p T=p V2=pq\nq: V1=q/q")
    assert violated(history) == {"evs_2_1_installed_by_all"}
    assert violated(cut(history, "q")) == set()


@pytest.mark.parametrize("end", ["crash", ""])
def test_a_safe_message_and_who_is_gone(end: str) -> None:
    """Who crashed or is cut off is excused, unless it had moved on before."""
    names = [] if end else ["q"]
    assert violated(cut(ring(f"p: V1=pq !1 p1\nq: V1=pq {end}"), *names)) <= {"evs_2_1_installed_by_all"}
    moved = cut(ring(f"p: V1=pq !1 p1\nq: V1=pq T=q V2=q {end}"), *names)
    assert "evs_7_1_safe" in violated(moved)
