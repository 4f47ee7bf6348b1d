"""The demo, as a person runs it."""

import json
import subprocess
import sys


def test_the_demo_holds_and_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "semcast.cli.main", "demo", "--seconds", "3", "--json"],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert result["held"]
    assert result["semantic"]["purged"] > 0 == result["plain"]["purged"]
    assert "judged" in done.stderr
