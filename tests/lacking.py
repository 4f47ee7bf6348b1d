"""Programs that some tests need and not every machine has."""

import os
from typing import NoReturn

import pytest

EVERYTHING = "SEMCAST_TEST_EVERYTHING"
"""Set where the tools were installed, as in CI: there nothing is skipped for want of one."""


def lacking(what: str) -> NoReturn:
    """Skip this test, and say why; or fail, where the tools are promised."""
    if os.environ.get(EVERYTHING):
        pytest.fail(f"{what}; and {EVERYTHING} is set")
    pytest.skip(what)
