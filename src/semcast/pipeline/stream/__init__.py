"""A group's log as a stream in Spark, and a stream in Spark published into a group.

`register(spark)`, then `spark.readStream.format("semcast")`, `spark.read`, and `df.writeStream` the same way.
How to, and what is promised: docs/streaming.md.
"""

from pyspark.sql import SparkSession

from semcast.pipeline.stream.datasource import SemcastDataSource

__all__ = ["SemcastDataSource", "register"]


def register(spark: SparkSession | None = None) -> None:
    """Make the format `semcast` known to a session; without one, to the session of this process."""
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise RuntimeError("there is no Spark session: give one, register(spark)")
    session.dataSource.register(SemcastDataSource)
