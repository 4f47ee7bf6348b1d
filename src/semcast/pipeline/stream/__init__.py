"""A group's log as a stream in Spark, and a stream in Spark published into a group.

`register(spark)`, then `spark.readStream.format("semcast")`, `spark.read`, and `df.writeStream` the same way.
How to, and what is promised: docs/streaming.md.
"""

import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semcast.pipeline.stream.datasource import SemcastDataSource

__all__ = ["SemcastDataSource", "register", "run_to_end", "without_heartbeats"]


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


def run_to_end(query: StreamingQuery) -> None:
    """Wait until a query has ended; on Ctrl-C it is stopped. Raises what made it fail.

    In `query.awaitTermination()` a signal finds PySpark in the middle of a question to Java, and it asks
    another one: instead of an end, errors are printed. Here another thread asks.
    """
    failed: list[Exception] = []
    over = threading.Event()

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception as error:  # it is raised where somebody waits for it
            failed.append(error)
        finally:
            over.set()

    threading.Thread(target=wait, daemon=True, name="query").start()
    try:
        over.wait()
    except KeyboardInterrupt:
        query.stop()  # the job of its batch was cancelled: that is no failure
        return
    if failed:
        raise failed[0]


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
