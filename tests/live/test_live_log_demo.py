"""`semcast demo logger`: everybody has everything in the end, and what was recorded says so."""

import json
import subprocess
import sys


def test_subscribers_that_are_killed_away_or_late_have_everything() -> None:
    words = ["demo", "logger", "--seconds", "0.5", "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "semcast", *words], capture_output=True, text=True, check=False, timeout=150
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["late"] < found["sent"], "the log is compacted"
    for promise in ("gossip_delivery", "gossip_agreement", "gossip_durable", "at_least_once"):
        assert found["verdicts"][promise] == "holds", ran.stderr
