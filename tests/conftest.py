"""What all tests share: which folders are not tests, and where a test must not be skipped."""

import os
from collections.abc import Generator

import pytest

collect_ignore = ["toy"]  # a family of stacks: who needs it imports it

EVERYTHING = "SEMCAST_TEST_EVERYTHING"
"""Set where all tools are installed: there a test that is skipped for want of one fails."""
TOOLS = ("no browser", "iproute2, nftables")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip for want of a tool is a failure where the tools are promised."""
    report = yield
    if report.skipped and EVERYTHING in os.environ and any(tool in str(report.longrepr) for tool in TOOLS):
        report.outcome = "failed"
        report.longrepr = f"{EVERYTHING} is set, but {report.longrepr}"
    return report
