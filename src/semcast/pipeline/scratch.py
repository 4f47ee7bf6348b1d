"""The folder of this process for all that Spark writes: shuffled data, the Java wrapper, log settings.

It outlives the session: the JVM stays up between two sessions of a process, and keeps its temporary folder.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from semcast.pipeline.java import find_java, java_home_for_spark
from semcast.pipeline.staging import guarded

_LOG4J = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


@cache
def scratch_folder() -> Path:
    """Made by the first call, removed when the process ends, however it ends."""
    folder = Path(tempfile.mkdtemp(prefix="semcast-spark-"))
    atexit.register(_clean_up, folder, os.getpid(), guarded(folder))
    return folder


@cache
def launch_folder() -> Path:
    """The same with what a JVM is started with: a Java home, and log settings."""
    java = find_java()
    folder = scratch_folder()
    java_home_for_spark(java, folder / "java")
    conf = folder / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(_LOG4J.format(level=log_level()))
    return folder


def spark_home(folder: Path) -> Path:
    """A Spark home in the folder, of links: `local-cluster` leaves the files of its workers in its home."""
    home = folder / "home"
    if not home.exists():
        home.mkdir()
        for path in Path(pyspark.__file__).parent.iterdir():
            (home / path.name).symlink_to(path)
    return home


def log_level() -> str:
    """What the JVM logs."""
    return os.environ.get("SEMCAST_SPARK_LOG", "off").lower()


def _clean_up(folder: Path, owner: int, guard: "subprocess.Popen[bytes]") -> None:
    if os.getpid() != owner:  # a forked child runs our exit handlers too
        return
    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    if guard.stdin is not None:
        guard.stdin.close()  # nobody waits for it: a child that was forked may hold the pipe, too
