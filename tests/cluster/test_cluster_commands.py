"""The commands on a standalone cluster, as docs/cluster.md says: exit codes, sentences, output."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cluster.standalone import HOME, Cluster
from tests.pipeline.killing import QUICKLY

TRACE = "ts,key\n" + "".join(f"{at},item-{at % 7}\n" for at in range(1000))
SMALL_EXECUTORS = [
    "--conf",
    "spark.executor.memory=512m",
    "--conf",
    f"spark.executor.extraJavaOptions={QUICKLY}",
]


def run(*command: str, python: str | None = sys.executable, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    env |= {"TMPDIR": str(scratch)} | ({"PYSPARK_PYTHON": python} if python else {})
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    left = [path for path in scratch.iterdir() if "hsperfdata" not in path.name]
    assert left == [], done.stderr
    return done


@pytest.fixture(scope="module")
def trace(shared: Path) -> Path:
    path = shared / "small.csv"
    path.write_text(TRACE)
    return path


def test_a_python_without_the_package_is_asked_for_in_a_sentence(
    cluster: Cluster, trace: Path, disk: Path
) -> None:
    semcast = [sys.executable, "-m", "semcast"]
    done = run(
        *semcast, "profile", str(trace), "--master", cluster.url, *SMALL_EXECUTORS, python=None, folder=disk
    )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("semcast profile: the executors' Python ")
    assert "set PYSPARK_PYTHON to a Python that has semcast[pipeline] installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_master_there_is_said_in_a_sentence_at_once(trace: Path, disk: Path) -> None:
    command = [sys.executable, "-m", "semcast", "profile", str(trace), "--master", "spark://127.0.0.1:9"]
    done = run(*command, folder=disk)
    assert done.returncode == 3
    assert done.stderr == (
        "semcast profile: spark://127.0.0.1:9: no Spark master answers there: Connection refused\n"
    )


def test_a_cluster_without_a_free_worker_is_said_in_a_sentence(
    cluster: Cluster, trace: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker has as much memory as is asked for. Spark would wait for one for ever."""
    monkeypatch.setenv("SEMCAST_SPARK_WAIT", "10")
    asked = ["--master", cluster.url, "--conf", "spark.executor.memory=64g"]
    done = run(sys.executable, "-m", "semcast", "profile", str(trace), *asked, folder=disk)
    assert done.returncode == 3
    first, last = done.stderr.splitlines()
    assert first.startswith("semcast profile: no executor has answered yet, waiting for 10 s: ")
    assert last.startswith("semcast profile: no executor answered for 10 s: the cluster has no free worker")


def test_spark_submit_with_the_archive(cluster: Cluster, trace: Path, disk: Path) -> None:
    """The output is on the driver's disk, whatever executors see there."""
    archive, out = disk / "package" / "semcast.zip", disk / "submitted"
    assert (
        run(sys.executable, "-m", "semcast", "pipeline", "package", str(archive), folder=disk).returncode == 0
    )
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.url, *SMALL_EXECUTORS]
    program = ["--py-files", str(archive), str(archive.with_name("semcast_submit.py"))]
    done = run(
        *submit, *program, "profile", f"file://{trace}", "--out", f"file://{out}", "--json", folder=disk
    )
    assert done.returncode == 0, done.stderr
    stream = json.loads(done.stdout)["streams"][0]
    assert (stream["messages"], stream["made_obsolete"]) == (1000, 993)
    assert pq.read_table(out / "items.parquet").num_rows == 7
    assert (out / "profile.png").stat().st_size > 0
