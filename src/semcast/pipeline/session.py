"""One way to get a Spark session: local with nothing to set up, or on the cluster that is named.

Everything that a local session writes lives in a scratch folder that goes when the process ends. It says
nothing on stderr, unless the variable `SEMCAST_SPARK_LOG` names a level (`warn`, `info`).

What the user set wins over what is set here: `conf`, `spark-submit --conf`, `PYSPARK_SUBMIT_ARGS`, and the
`spark-defaults.conf` of a cluster. A session that somebody else made is taken as it is.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from semcast.pipeline.addresses import CONNECT, STANDALONE, reach_master, reach_server
from semcast.pipeline.executors import is_connect, look_for, probe, ship
from semcast.pipeline.failures import ClusterError, failures, told
from semcast.pipeline.scratch import launch_folder, log_level, scratch_folder, spark_home

ROWS_PER_PARTITION = 3_000_000
SMALL_ROWS = 200_000
"""Of so few rows planning, compiling and scheduling cost more than the work on them."""

_QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=240m"
"""Java compiles quickly rather than well, and has room for what it loaded and compiled: without that it
collects garbage while it starts, and compiles the same methods again and again."""

_SMALL_PAGES = {"spark.buffer.pageSize": "1m"}
"""Every sort and hash table begins with a page: of 64 MiB, as in a large heap, also for a few rows."""

_JVM_NAMES = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.classic.SparkSession",
)
"""Classes that PySpark asks the JVM for by name whenever it uses them, which searches all jars."""

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
_AT_ONCE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    _CONSTRAINTS: "false",
}
"""Settings for few rows: plans are made once and in a hurry, told in few words and not compiled, and
everything is one task."""

_USERS = "semcast.settings.of.the.user"
"""A setting of sessions made here: the names of those that the user gave, which nothing overrides."""

_PROGRESS = "spark.ui.showConsoleProgress"

_LONGEST_SOCKET_FOLDER = 60
"""Names of sockets end at 107 bytes, and Spark adds some 45."""

_MOST_SLOTS = 4096


def spark_session(
    app: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    rows_hint: int | None = None,
    shuffle_partitions: int | None = None,
    quickly: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """The session of this process, made if there is none.

    Args:
        app: what the cluster shows.
        master: any Spark master, or a Spark Connect server (`sc://host:port`); by default that of
            `spark-submit` if it started us, else `SPARK_REMOTE`, else all local cores.
        conf: settings of the user.
        rows_hint: how many rows will be shuffled, about.
        shuffle_partitions: the number of partitions after a shuffle, instead of one chosen by `rows_hint`.
        quickly: a local Java compiles quickly rather than well, and takes little memory: for jobs in which
            Python does the work, as for few rows.
        say: told when the cluster keeps us waiting, and for what.

    Raises:
        ClusterError: there is no such cluster, or its executors cannot run the package.
        NoJavaError: there is no Java that the driver can run on.
    """
    given = dict(conf or {})
    if master is None and not _submitted():
        master = os.environ.get("SPARK_REMOTE", "local[*]")
    settings = _settings(master, rows_hint, shuffle_partitions)
    if master is not None and master.startswith(CONNECT):
        return _connected(app, master, settings, given, say)
    active = SparkSession.getActiveSession()
    if active is not None and active.conf.get(_USERS, None) is None:
        return active  # a notebook's, or a program's that has its own
    if master is not None and master.startswith(STANDALONE):
        reach_master(master)
    before = SparkContext._active_spark_context
    few = rows_hint is not None and rows_hint <= SMALL_ROWS
    try:
        spark = _classic(app, master, settings, given, small=few or quickly)
    except failures() as error:
        raise ClusterError(f"{master}: {told(error)}") from error
    if before is None and not in_one_process(spark):
        ship(spark, scratch_folder())
        probe(spark, say)
    return spark


def partitions_for(rows: int | None) -> int:
    """How many partitions a shuffle of so many rows should have."""
    cores = os.cpu_count() or 1
    if rows is None:
        return 2 * cores
    return max(2, -(-rows // ROWS_PER_PARTITION))


def in_one_process(spark: SparkSession) -> bool:
    """Whether executor and driver are this process: none is lost without the others, all have one disk."""
    if is_connect(spark):
        return False  # whatever the server's master is: the driver is there, and not here
    master = spark.conf.get("spark.master", None) or ""
    return master == "local" or master.startswith("local[")


def slots(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as executors are there yet."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    # A range is cut into as many partitions.
    return spark.range(_MOST_SLOTS).select(fn.spark_partition_id()).distinct().count()


def seen_by_executors(spark: SparkSession, files: Sequence[Path]) -> None:
    """Make sure that executors have these files under the same path.

    Raises:
        ClusterError: one has not, or another file; says which.
    """
    if not in_one_process(spark):
        look_for(spark, {str(file): file.stat().st_size for file in files}, tasks=2 * slots(spark))


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
    users = (spark.conf.get(_USERS, None) or "").split(",")
    before = {name: spark.conf.get(name, None) for name in settings if name not in users}
    for name in before:
        spark.conf.set(name, settings[name])
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _classic(
    app: str, master: str | None, settings: Mapping[str, str], given: Mapping[str, str], *, small: bool
) -> SparkSession:
    if _submitted():
        return _built(app, master, settings, given)
    local = master is not None and master.startswith("local")
    scratch = launch_folder()
    at_start = _local_settings(scratch, _QUICKLY if small else "") if local else {}
    if local and small:
        at_start |= _SMALL_PAGES
    with _environment(_variables(scratch, master or "", given)):
        spark = _built(app, master, settings, given, at_start)
    if not local:
        spark.sparkContext.setLogLevel(log_level().upper())
    for name in _JVM_NAMES:
        setattr(spark._jvm, name, getattr(spark._jvm, name))
    return spark


def _built(
    app: str,
    master: str | None,
    settings: Mapping[str, str],
    given: Mapping[str, str],
    at_start: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session of the JVM that is there, or of one that is started with `at_start`."""
    launch = SparkConf(loadDefaults=False)
    for name, value in {**(at_start or {}), **given}.items():
        launch.set(name, value)
    SparkContext._ensure_initialized(conf=launch)
    # Spark's shell, which is how the JVM is started, sets the progress bar itself.
    elsewhere = {name for name, _ in SparkConf().getAll()} - {*(at_start or ()), _PROGRESS}
    users = elsewhere | set(given)
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    chosen = {**(at_start or {}), **settings}
    for name, value in {**{name: chosen[name] for name in chosen if name not in users}, **given}.items():
        builder = builder.config(name, value)
    return builder.config(_USERS, ",".join(sorted(users))).getOrCreate()


def _connected(
    app: str, address: str, settings: Mapping[str, str], given: Mapping[str, str], say: Callable[[str], None]
) -> SparkSession:
    """A session of a Spark Connect server, which has settings of its own for all that is not SQL."""
    reach_server(address)
    builder = SparkSession.builder.appName(app).remote(address)
    queries = {name: value for name, value in settings.items() if name.startswith("spark.sql.")}
    try:
        spark = builder.getOrCreate()
        for name, value in {**queries, **given, _USERS: ",".join(sorted(given))}.items():
            spark.conf.set(name, value)
        with tempfile.TemporaryDirectory(prefix="semcast-") as folder:
            ship(spark, Path(folder))
    except failures() as error:
        raise ClusterError(f"{address}: {told(error)}") from error
    probe(spark, say)
    return spark


def _settings(master: str | None, rows: int | None, partitions: int | None) -> dict[str, str]:
    settings = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.windowExec.buffer.in.memory.threshold": str(1 << 16),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # looks at the stack for every column
        "spark.ui.enabled": "false",
        _PROGRESS: "false",
    }
    here = master is not None and master.startswith("local")
    if here or rows is not None or partitions is not None:
        # The cores of another cluster than this machine are not ours to count: Spark's own number, then.
        settings["spark.sql.shuffle.partitions"] = str(partitions or partitions_for(rows))
    return settings


def _local_settings(scratch: Path, java: str) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": os.environ.get("SEMCAST_SPARK_MEMORY", f"{_memory_mib()}m"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} -Dderby.system.home={scratch}"
        f" {os.environ.get('SEMCAST_SPARK_JAVA', java)}",
        "spark.executor.extraJavaOptions": os.environ.get("SEMCAST_SPARK_JAVA", java),  # of `local-cluster`
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.python.unix.domain.socket.enabled": str(len(str(scratch)) <= _LONGEST_SOCKET_FOLDER).lower(),
        "spark.python.unix.domain.socket.dir": str(scratch),
    }


def _variables(scratch: Path, master: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the launcher reads from the environment; a cluster keeps its own Spark home and settings."""
    variables = {"JAVA_HOME": str(scratch / "java"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master.startswith("local"):
        home = spark_home(scratch) if master.startswith("local-cluster") else Path(pyspark.__file__).parent
        variables |= {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(scratch / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    elif not {"SPARK_HOME", "SPARK_CONF_DIR"} & set(os.environ):
        # Nobody has settings for this machine: ours, which are about the log.
        variables["SPARK_CONF_DIR"] = str(scratch / "conf")
    if "spark.pyspark.python" in given:
        variables["PYSPARK_PYTHON"] = given["spark.pyspark.python"]
    return variables


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
