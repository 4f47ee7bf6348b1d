"""What is judged in memory of small runs has forms for large ones, which say the same where they can tell."""

import pytest
from tests.pipeline.agreement import Judged, contradictions, in_memory, statuses

from semcast.history import History
from semcast.pipeline.verify import FORMS
from semcast.pipeline.verify.large import FORMS_OF_LARGE_RUNS
from semcast.pipeline.verify.large.positions import TOTAL_ORDER
from semcast.pipeline.verify.large.views import VIEWS
from semcast.specs import EVS, PROPERTIES, VSYNC

pytestmark = pytest.mark.xdist_group("spark")

CUTS = ("evs_2_3_cut_after", "evs_2_4_cut_before")
"""Of these a broken line tells nothing."""


def test_every_property_has_a_form() -> None:
    assert set(PROPERTIES) == {*FORMS, *FORMS_OF_LARGE_RUNS}
    assert set(FORMS).isdisjoint(FORMS_OF_LARGE_RUNS)


def test_views_agree_with_the_checkers_in_memory_case_by_case(judged: Judged, views: list[History]) -> None:
    expected = in_memory(views, VIEWS)
    for name in VIEWS:
        assert statuses(expected, name) >= {"holds", "violated"}
    assert judged.unlike(expected) == []


def test_orders_never_contradict_the_checkers_in_memory(
    judged: Judged, views: list[History], rings: list[History]
) -> None:
    expected = in_memory(views, list(VSYNC)) | in_memory(rings, list(EVS))
    assert contradictions(judged.said, expected) == []
    found = {key: judged.said[key] for key in expected}
    for name in FORMS_OF_LARGE_RUNS:
        assert statuses(found, name) >= ({"holds"} if name in CUTS else {"holds", "violated"})


def test_total_order_without_positions_cannot_be_told(judged: Judged, views: list[History]) -> None:
    unplaced = [history for history in views if all(event.order is None for event in history.events)]
    told = [judged.verdicts[history.info.run, name] for history in unplaced for name in TOTAL_ORDER]
    assert any("delivered messages without a position" in verdict.detail for verdict in told)
    assert not any(verdict.count for verdict in told)
