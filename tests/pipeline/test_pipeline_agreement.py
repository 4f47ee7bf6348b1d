"""Spark says what the checkers in memory say, on sound and broken histories of every kind.

Many are judged in one job, as if they were too large for memory (`judged`).
"""

from tests.pipeline.agreement import (
    NAMES,
    PLAIN,
    Judged,
    assert_nothing_holds_of_the_silent_group,
    contradictions,
    in_memory,
    statuses,
)
from tests.pipeline.histories import deep_chain, without_b
from tests.pipeline.rings import CAUGHT

from semcast.history import History
from semcast.pipeline.verify import FORMS
from semcast.pipeline.verify.forms import PROPERTIES as RECORDS
from semcast.pipeline.verify.forms import Form, named
from semcast.pipeline.verify.positions import TOTAL_ORDER
from semcast.specs import CERTIFICATES, EVS, IN_MEMORY, PROPERTIES, VSYNC, Status

VIEWS = named(Form.VIEWS)
CERTIFIED = [*named(Form.RING), *named(Form.CAUSAL)]
RARE = ("evs_1_1_precedence", "evs_2_3_cut_after", "evs_2_4_cut_before")
"""No history here that carries certificates breaks these."""


def test_reliable_multicast(judged: Judged, plain: list[History]) -> None:
    expected = in_memory(plain, PLAIN)
    assert len(plain) >= 200
    for name in PLAIN:
        assert statuses(expected, name) >= {"holds", "violated"}
    assert judged.unlike(expected) == []


def test_all_events_count(judged: Judged, everything: list[History]) -> None:
    assert judged.events == sum(len(history.events) for history in everything)


def test_deep_chains_of_undelivered_replacements(judged: Judged) -> None:
    assert judged.unlike(in_memory([deep_chain()], PLAIN)) == []
    verdict = judged.verdicts["deep", "semantic_agreement"]
    assert verdict.detail == "c: (a,300) has neither this nor a replacement"
    assert verdict.sample[0].event == "a[299] at 0 ns: multicast"


def test_recordings_that_are_cut_off(judged: Judged, cut_off: list[History]) -> None:
    expected = in_memory(cut_off, PLAIN)
    assert statuses(expected, "integrity") == {"holds", "violated", "unknown"}
    assert judged.unlike(expected) == []


def test_extended_virtual_synchrony(judged: Judged, rings: list[History]) -> None:
    expected = in_memory(rings, list(EVS))
    # Rows that are not numbered in order, which 1.2 forbids, are refused before anything is judged.
    for name in EVS.keys() - {"evs_1_2_local_order"}:
        assert statuses(expected, name) >= {"holds", "violated"}
    caught = [name for name in CAUGHT if any(expected[name, of][0] == "violated" for of in EVS)]
    assert len(caught) > len(CAUGHT) / 2, "not all of them: seeds are those of the protocol as it was"
    assert judged.unlike({key: told for key, told in expected.items() if key[1] in FORMS}) == []
    assert contradictions(judged.said, expected) == []
    assert all(verdict.sample for verdict in judged.verdicts.values() if verdict.status is Status.VIOLATED)


def test_every_property_has_one_record() -> None:
    assert {*PROPERTIES, *IN_MEMORY} == set(RECORDS)


def test_views_agree_with_the_checkers_in_memory_case_by_case(judged: Judged, views: list[History]) -> None:
    expected = in_memory(views, VIEWS)
    for name in VIEWS:
        assert statuses(expected, name) >= {"holds", "violated"}
    assert judged.unlike(expected) == []


def test_orders_never_contradict_the_checkers_in_memory(
    judged: Judged, views: list[History], rings: list[History]
) -> None:
    names = [*CERTIFICATES, *VSYNC, *EVS]
    expected = in_memory(views, names) | in_memory(rings, names)
    assert contradictions(judged.said, expected) == []
    found = {key: judged.said[key] for key in expected}
    for name in named(Form.RING, Form.CAUSAL, Form.POSITIONS):
        assert statuses(found, name) >= ({"holds"} if name in RARE else {"holds", "violated"})


def test_what_carries_certificates_is_always_told(
    judged: Judged, views: list[History], rings: list[History]
) -> None:
    expected = in_memory([*rings, *views], CERTIFIED)
    certified = [run for (run, name), told in expected.items() if name in CERTIFICATES and told[0] == "holds"]
    assert len(certified) > 20
    for run in certified:
        names = named(Form.RING) if expected[run, "ring_certificate"][0] == "holds" else named(Form.CAUSAL)
        assert {n: judged.said[run, n][0] for n in names} == {n: expected[run, n][0] for n in names}


def test_total_order_without_positions_cannot_be_told(judged: Judged, views: list[History]) -> None:
    unplaced = [history for history in views if all(event.order is None for event in history.events)]
    told = [judged.verdicts[history.info.run, name] for history in unplaced for name in TOTAL_ORDER]
    assert any("delivered messages without a position" in verdict.detail for verdict in told)
    assert not any(verdict.count for verdict in told)


def test_a_process_of_which_nothing_was_recorded(judged: Judged) -> None:
    assert judged.unlike(in_memory([without_b()], PLAIN)) == []


def test_nothing_holds_of_a_group_without_rows(judged: Judged) -> None:
    assert_nothing_holds_of_the_silent_group(judged.verdicts.values(), NAMES)
