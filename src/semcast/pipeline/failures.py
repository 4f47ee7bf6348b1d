"""What Spark raises when a job or a cluster fails, told in one sentence."""

import re
from functools import cache

from pyspark.errors import PySparkException

from semcast.pipeline.paths import local_path

_FILE = re.compile(r"file:/\S+?(?=[,.:]?(?:\s|$))")
_OURS = re.compile(r"\b(?:UnequalPassesError|UnreadableError|HistoryError): (.*)")
_MODULE = re.compile(r"No module named '([^']+)'")
_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_PYTHON = (
    "set PYSPARK_PYTHON to a Python that has semcast[pipeline] installed, under this path on every worker"
)
_LOST = ("ExecutorLostFailure", "Checkpoint block rdd_", "FetchFailed")
_NO_MASTER = ("All masters are unresponsive", "stopped SparkContext", "SparkContext was shut down")


class ClusterError(Exception):
    """A cluster that cannot be used, or failed on the way: what happened and what to do."""


@cache
def failures() -> tuple[type[Exception], ...]:
    """What Spark raises when a job fails; py4j is missing where only Spark Connect is installed."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415
    except ImportError:
        return (PySparkException,)
    return (PySparkException, Py4JError)


def told(error: Exception) -> str:
    """What happened, in one sentence: the known ways of a cluster to fail by what to do about them."""
    text = str(error)
    module, program = _MODULE.search(text), _PROGRAM.search(text)
    if module is not None:
        return f"the executors' Python has no module {module[1]!r}: {_PYTHON}"
    if program is not None:
        return f"the workers have no program {program[1]!r}: {_PYTHON}"
    if "PYTHON_VERSION_MISMATCH" in text:
        return f"the executors' Python has another version than the driver's: {_PYTHON}"
    if any(sign in text for sign in _LOST):
        return "an executor was lost, and what it had worked out with it: run the command again"
    if any(sign in text for sign in _NO_MASTER):
        return "the Spark master does not answer, or ended the application: is its address right?"
    return reason(error)


def reason(error: Exception) -> str:
    """What Spark said last, and which file it was about, without the stack."""
    said = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    ours = [found[1] for line in said if (found := _OURS.search(line))]
    if ours:
        return ours[-1]
    causes = [line.removeprefix("Caused by: ") for line in said if line.startswith("Caused by: ")]
    file = next((found[0] for line in said if (found := _FILE.search(line))), None)
    last = causes[-1] if causes else said[0] if said else type(error).__name__
    return last if file is None or file in last else f"{local_path(file)}: {last}"
