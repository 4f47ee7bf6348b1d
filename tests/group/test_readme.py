"""The first program of the README does what the text beside it says."""

import re
import sys
from pathlib import Path

from tests.firstprogram import run_three


def test_started_three_times_all_print_the_same_prices_in_the_same_order(tmp_path: Path) -> None:
    printed = run_three(sys.executable, tmp_path)
    prices = [re.findall(r".* says .*", text) for text in printed]
    assert prices[0] == prices[1] == prices[2]
    assert len(prices[0]) == 3
    assert all(re.search(r"all of \['.*', '.*', '.*'\] have my", text) for text in printed)
