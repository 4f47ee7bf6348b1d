"""Spark jobs by a name: to cancel them, and to see how far they are.

With a driver in this process they are a job group. A Spark Connect client has tags, and does not see tasks.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from semcast.pipeline.executors import is_connect
from semcast.pipeline.session import slots


@contextmanager
def tagged(spark: SparkSession, name: str) -> Iterator[None]:
    """The jobs that this thread starts meanwhile have this name."""
    if is_connect(spark):
        spark.addTag(name)
        try:
            yield
        finally:
            spark.removeTag(name)
    else:
        spark.sparkContext.setJobGroup(name, "semcast sweep", interruptOnCancel=True)
        yield


def cancel(spark: SparkSession, name: str) -> None:
    """Give up the jobs of this name."""
    if is_connect(spark):
        spark.interruptTag(name)
    else:
        spark.sparkContext.cancelJobGroup(name)


def tasks_done(spark: SparkSession, name: str) -> int:
    """How many tasks of the jobs of this name are done, as far as can be seen from here."""
    if is_connect(spark):
        return 0
    tracker = spark.sparkContext.statusTracker()
    done = 0
    for job in tracker.getJobIdsForGroup(name):
        info = tracker.getJobInfo(job)
        stages = [] if info is None else [tracker.getStageInfo(stage) for stage in info.stageIds]
        done += sum(stage.numCompletedTasks for stage in stages if stage is not None)
    return done


def slots_now(spark: SparkSession, before: int) -> int:
    """How many tasks run at a time by now. A Spark Connect server is not asked again: that takes a job."""
    return before if is_connect(spark) else slots(spark)
