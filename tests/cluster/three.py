"""The three commands on small inputs, one after the other in one process, with whatever master."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from tests.pipeline import histories

SPEC = """
experiment = "f3"
title = "small"
[fixed]
messages = 200
[grid]
n = [5, 10, 20]
seed = [1, 2]
"""
WAITING = "no executor has answered yet"
"""What a command says beside a busy machine's executors, which take long to start."""

COMMANDS = """
import json, sys
from semcast.cli.main import main
for command in json.loads(sys.argv[1]):
    print(json.dumps(main(command)), file=sys.stderr)
"""


def profile_verify_and_sweep(master: str, folder: Path) -> None:
    """Run them; exit codes and output are as they should be, and nothing is left behind."""
    scratch, recorded, out = (folder / name for name in ("tmp", "recorded", "out"))
    scratch.mkdir()
    recorded.mkdir()
    histories.write([histories.small(seed) for seed in range(4)], recorded)
    (folder / "trace.csv").write_text("ts,key\n" + "".join(f"{at},k{at % 7}\n" for at in range(1000)))
    (folder / "small.toml").write_text(SPEC)
    commands = [
        ["profile", str(folder / "trace.csv"), "--out", str(out / "a profile")],
        ["verify", str(recorded), "--allow-missing", "--property", "integrity", "--out", str(out / "verify")],
        ["sweep", str(folder / "small.toml"), "--out", str(out / "sweep")],
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            COMMANDS,
            json.dumps([[*one, "--master", master, "--json"] for one in commands]),
        ],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    said = [line for line in done.stderr.splitlines() if line and WAITING not in line]
    told = [line for line in said if line.startswith("1 of 1: small, 6 simulations in ")]
    assert len(told) == 1, done.stderr
    assert [line for line in said if line not in told] == ["0", "1", "0"], done.stderr
    assert pq.read_table(out / "a profile" / "items.parquet").num_rows == 7
    assert pq.read_table(out / "verify" / "violations").num_rows > 0
    assert pq.read_table(out / "sweep" / "small" / "table.parquet")["status"].to_pylist() == ["ok"] * 6
    assert [path for path in scratch.iterdir() if "hsperfdata" not in path.name] == []
