"""Where the tools are promised, a test that lacks one fails; elsewhere it is skipped."""

import pytest
from tests.lacking import EVERYTHING, lacking


def test_a_tool_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EVERYTHING, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no lathe"):
        lacking("no lathe")
    monkeypatch.setenv(EVERYTHING, "1")
    with pytest.raises(pytest.fail.Exception, match="no lathe; and SEMCAST_TEST_EVERYTHING is set"):
        lacking("no lathe")
