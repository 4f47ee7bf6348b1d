"""The short form for CI: executors in processes of their own, on this machine (`local-cluster`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
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
COMMANDS = """
import json, sys
from semcast.cli.main import main
for command in json.loads(sys.argv[1]):
    print(json.dumps(main([*command, "--master", "local-cluster[2,1,1024]", "--json"])), file=sys.stderr)
"""


def test_profile_verify_and_sweep(tmp_path: Path) -> None:
    scratch, recorded, out = (tmp_path / name for name in ("tmp", "recorded", "out"))
    scratch.mkdir()
    recorded.mkdir()
    histories.write([histories.small(seed) for seed in range(4)], recorded)
    (tmp_path / "trace.csv").write_text("ts,key\n" + "".join(f"{at},k{at % 7}\n" for at in range(1000)))
    (tmp_path / "small.toml").write_text(SPEC)
    before = set(Path(pyspark.__file__).parent.iterdir())
    commands = [
        ["profile", str(tmp_path / "trace.csv"), "--out", str(out / "a profile")],
        ["verify", str(recorded), "--allow-missing", "--property", "integrity", "--out", str(out / "verify")],
        ["sweep", str(tmp_path / "small.toml"), "--out", str(out / "sweep")],
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert [line for line in done.stderr.splitlines() if line] == ["0", "1", "0"], done.stderr
    assert pq.read_table(out / "a profile" / "items.parquet").num_rows == 7
    assert pq.read_table(out / "verify" / "violations").num_rows > 0
    assert pq.read_table(out / "sweep" / "small" / "table.parquet")["status"].to_pylist() == ["ok"] * 6
    assert set(Path(pyspark.__file__).parent.iterdir()) == before
    assert [path for path in scratch.iterdir() if "hsperfdata" not in path.name] == []
