"""Extended virtual synchrony on Spark says what the checkers in memory say, on sound and broken histories."""

import pytest
from tests.pipeline.agreement import Judged, contradictions, in_memory, statuses
from tests.pipeline.rings import CAUGHT

from semcast.history import History
from semcast.pipeline.verify import FORMS
from semcast.specs import EVS, Status

pytestmark = pytest.mark.xdist_group("spark")


def test_it_agrees_with_the_checkers_in_memory(judged: Judged, rings: list[History]) -> None:
    expected = in_memory(rings, list(EVS))
    # Rows that are not numbered in order, which 1.2 forbids, are refused before anything is judged.
    for name in EVS.keys() - {"evs_1_2_local_order"}:
        assert statuses(expected, name) >= {"holds", "violated"}
    caught = [name for name in CAUGHT if any(expected[name, of][0] == "violated" for of in EVS)]
    assert len(caught) > len(CAUGHT) / 2, "not all of them: seeds are those of the protocol as it was"
    assert judged.unlike({key: told for key, told in expected.items() if key[1] in FORMS}) == []
    assert contradictions(judged.said, expected) == []
    assert all(verdict.sample for verdict in judged.verdicts.values() if verdict.status is Status.VIOLATED)
