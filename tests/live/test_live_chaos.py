"""Half a minute of `semcast chaos`: nothing is violated, nobody is stuck."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXCUSED = {
    "buffer_bound": "the run had no limit",
    "gossip_admitted": "clocks cannot be compared, or no logger says whom it admitted",
    "gossip_beginning": "clocks cannot be compared, or there is not one log",
    "gossip_collection": "the clocks of processes cannot be compared",
    "gossip_members": "the run was not over, or nobody knows who was there at its end",
    "evs_2_1_installed_by_all": "the run was not over",
    "repl_liveness": "the run was not over",
    "repl_queued": "the run was not over",
    "vs_state_transfer": "no state was recorded at the beginning of a view",
}
"""What a live recording cannot tell."""


@pytest.mark.parametrize("stack", ["ring", "vsync", "replication", "gossip"])
def test_half_a_minute_of_chaos(tmp_path: Path, stack: str) -> None:
    words = ["chaos", "--stack", stack, "--minutes", "0.4", "--members", "4", "--seed", "11", "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "semcast.cli.main", *words, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert ran.stdout, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["stuck"], found["died"]) == ([], []), ran.stderr
    findings = found["judgement"]["findings"]
    assert [each for each in findings if each["status"] == "violated"] == []
    unknown = {each["property"]: each["why"] for each in findings if each["status"] == "unknown"}
    assert unknown.items() <= EXCUSED.items()
    assert found["faults"]
    assert found["judgement"]["deliveries"] > 100
    assert ran.returncode == 0
