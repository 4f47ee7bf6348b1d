"""Who leaves is not owed what comes before a reply, if it is never given that (causal domains, rule 14)."""

import pytest
from tests.calls.parting import cases

from semcast.history import History
from semcast.specs import Status, check


@pytest.mark.parametrize(("history", "sound"), list(cases()))
def test_who_leaves_is_not_owed_what_it_is_never_given(history: History, sound: bool) -> None:
    [verdict] = check(history, ["causal_reply"])
    assert verdict.status is (Status.HOLDS if sound else Status.VIOLATED), history.info.run
