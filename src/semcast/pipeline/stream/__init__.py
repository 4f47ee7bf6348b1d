"""A group's log as a stream in Spark, and a stream in Spark published into a group.

`register(spark)`, then `spark.readStream.format("semcast")`, `spark.read`, and `df.writeStream` the same way.
How to, and what is promised: docs/streaming.md.
"""

from pyspark.sql import DataFrame, SparkSession

from semcast.pipeline.stream.datasource import SemcastDataSource

__all__ = ["SemcastDataSource", "register", "without_heartbeats"]


def register(spark: SparkSession | None = None) -> None:
    """Make the format `semcast` known to a session; without one, to the session of this process."""
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise RuntimeError("there is no Spark session: give one, register(spark)")
    session.dataSource.register(SemcastDataSource)
    _make_active(session)


def _make_active(session: SparkSession) -> None:
    """Of what Python offers, Spark finds a sink only in the session that is active in the thread.

    A thread that did not make the session has none.
    """
    jvm = getattr(session, "_jvm", None)  # a client of Spark Connect has none
    if jvm is not None:
        SparkSession._get_j_spark_session_class(jvm).setActiveSession(session._jsparkSession)


def without_heartbeats(frame: DataFrame, where: str = "true") -> DataFrame:
    """The rows with messages, for use after `withWatermark("at", ...)`.

    Spark moves a filter before the watermark unless it is about the column of the watermark, too; then rows
    that tell the time would be gone before they could move it. So would they with another filter after this
    one.

    Args:
        frame: with a watermark.
        where: which of the messages, in SQL.
    """
    return frame.where(f"(payload is not null and ({where})) or at is null")
