"""Spark Connect: the driver is a server, and commands are clients of it that have no context of their own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.standalone import DEADLINE, HOME
from tests.cluster.three import profile_verify_and_sweep
from tests.pipeline import histories
from tests.pipeline.killing import QUICKLY

from semcast.pipeline.addresses import reach_server
from semcast.pipeline.failures import ClusterError
from semcast.pipeline.java import find_java, java_home_for_spark

LARGE = """
import sys
from pathlib import Path
from semcast.pipeline.session import spark_session
from semcast.pipeline.verify import Options, survey, verify
spark = spark_session("large", master=sys.argv[1])
names = ["integrity", "fifo_delivery", "semantic_agreement"]
options = Options(names, small_rows=0, memory_rows=0, allow_missing=True)
for verdict in verify(spark, survey([Path(sys.argv[2])]), options).verdicts:
    print(verdict.run, verdict.property, verdict.status.value, verdict.count)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with two cores, on this machine."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICKLY,
        "spark.local.dir": str(folder),
    }
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    env = os.environ | {
        "JAVA_HOME": str(java_home_for_spark(find_java(), folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait(port, process, folder / "log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"no Spark Connect server: {log.read_text(errors='replace')[-2000:]}")


def test_profile_verify_and_sweep(server: str, tmp_path: Path) -> None:
    profile_verify_and_sweep(server, tmp_path)


def test_what_is_too_large_for_the_driver_is_verified_there(server: str, tmp_path: Path) -> None:
    """The server's verdicts are those of a session in one process."""
    histories.write([histories.small(seed) for seed in range(4)], tmp_path)
    found = []
    for master in (server, "local[2]"):
        command = [sys.executable, "-c", LARGE, master, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        found.append(sorted(done.stdout.splitlines()))
    assert len(found[0]) == 12
    assert found[0] == found[1]


def test_no_server_there_is_said_in_a_sentence() -> None:
    with pytest.raises(ClusterError, match=r"^sc://127\.0\.0\.1:9: no Spark Connect server answers there$"):
        reach_server("sc://127.0.0.1:9")
