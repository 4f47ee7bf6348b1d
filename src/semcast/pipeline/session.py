"""One way to get a Spark session: local with nothing to set up, or on the cluster that is named.

Everything that a local session writes lives in a scratch folder that goes when the process ends. It says
nothing on stderr, unless the variable `SEMCAST_SPARK_LOG` names a level (`warn`, `info`).
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from semcast.pipeline.java import find_java, java_home_for_spark

ROWS_PER_PARTITION = 3_000_000
SMALL_ROWS = 200_000
"""Of so few rows planning, compiling and scheduling cost more than the work on them."""

_QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java compiles quickly rather than well."""

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
_AT_ONCE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    _CONSTRAINTS: "false",
}
"""Settings for few rows: plans are made once and in a hurry, not compiled, and everything is one task."""

_LONGEST_SOCKET_FOLDER = 60
"""Names of sockets end at 107 bytes, and Spark adds some 45."""

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


def spark_session(
    app: str,
    *,
    master: str | None = None,
    rows_hint: int | None = None,
    shuffle_partitions: int | None = None,
) -> SparkSession:
    """The session of this process, made if there is none.

    Args:
        app: what the cluster shows.
        master: any Spark master; by default that of `spark-submit` if it started us, else all local cores.
        rows_hint: how many rows will be shuffled, about.
        shuffle_partitions: the number of partitions after a shuffle, instead of one chosen by `rows_hint`.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    settings = _settings(shuffle_partitions or partitions_for(rows_hint))
    local = master is not None and master.startswith("local")
    if local:
        small = rows_hint is not None and rows_hint <= SMALL_ROWS
        settings |= _local_settings(_scratch(), _QUICKLY if small else "")
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    if submitted:
        return builder.getOrCreate()
    with _environment(_variables(_scratch(), local=local)):
        spark = builder.getOrCreate()
    if not local:
        spark.sparkContext.setLogLevel(_log_level().upper())
    return spark


def partitions_for(rows: int | None) -> int:
    """How many partitions a shuffle of so many rows should have."""
    cores = os.cpu_count() or 1
    if rows is None:
        return 2 * cores
    return max(2, -(-rows // ROWS_PER_PARTITION))


def at_once(spark: SparkSession) -> AbstractContextManager[None]:
    """The settings for few rows, for a while."""
    return _set(spark, _AT_ONCE)


def unconstrained(spark: SparkSession) -> AbstractContextManager[None]:
    """For a while Spark infers nothing from what it knows of rows.

    Of checkpointed frames it knows things about columns that are gone, and then fails to plan their union.
    """
    return _set(spark, {_CONSTRAINTS: "false"})


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _settings(partitions: int) -> dict[str, str]:
    return {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.windowExec.buffer.in.memory.threshold": str(1 << 16),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # looks at the stack for every column
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _local_settings(scratch: Path, java: str) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": os.environ.get("SEMCAST_SPARK_MEMORY", f"{_memory_mib()}m"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} -Dderby.system.home={scratch}"
        f" {os.environ.get('SEMCAST_SPARK_JAVA', java)}",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.python.unix.domain.socket.enabled": str(len(str(scratch)) <= _LONGEST_SOCKET_FOLDER).lower(),
        "spark.python.unix.domain.socket.dir": str(scratch),
    }


def _variables(scratch: Path, *, local: bool) -> dict[str, str]:
    """What the launcher reads from the environment; a cluster keeps its own Spark home and settings."""
    variables = {"JAVA_HOME": str(scratch / "java"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if local:
        variables |= {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_CONF_DIR": str(scratch / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    return variables


@cache
def _scratch() -> Path:
    """The folder of this process: shuffled data, the Java wrapper, log settings. It outlives the session.

    The JVM stays up between two sessions of a process, and keeps its temporary folder.
    """
    java = find_java()
    folder = Path(tempfile.mkdtemp(prefix="semcast-spark-"))
    atexit.register(_clean_up, folder, os.getpid())
    java_home_for_spark(java, folder / "java")
    conf = folder / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(_LOG4J.format(level=_log_level()))
    return folder


def _clean_up(folder: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked child runs our exit handlers too
        return
    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _log_level() -> str:
    return os.environ.get("SEMCAST_SPARK_LOG", "off").lower()


def _memory_mib() -> int:
    """A third of the memory, and 8 GiB at most: a local session is driver and executor in one."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no control group, or one without a limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(1024, min(8192, memory // 3 >> 20))


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
