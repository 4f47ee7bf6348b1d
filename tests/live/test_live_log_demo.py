"""`semcast demo logger`: everybody has everything in the end, and what was recorded says so."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest


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


def test_processes_of_a_demo_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Also a subscriber that still waits for a logger: nobody is left who could start one."""
    group = f"orphans {uuid.uuid4().hex}"
    order = {"role": "read", "group": group, "name": "desk", "start": "all"}
    order |= {"file": str(tmp_path / "desk.json"), "settings": {}}  # type: ignore[dict-item]
    with subprocess.Popen(
        [sys.executable, "-m", "semcast.demo.logged", json.dumps(order)], stdin=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        with pytest.raises(subprocess.TimeoutExpired):
            reader.wait(1)
        reader.stdin.close()
        assert reader.wait(30) == 0
    words = ["logger", str(tmp_path / "log"), "--group", group, "--json", "--until-closed"]
    with subprocess.Popen(
        [sys.executable, "-m", "semcast", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as logger:
        assert logger.stdin is not None
        assert logger.stdout is not None
        assert json.loads(logger.stdout.readline())["event"] == "logging"
        logger.stdin.close()
        assert logger.wait(30) == 0
