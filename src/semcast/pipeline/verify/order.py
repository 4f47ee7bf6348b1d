"""Order: FIFO deliveries, and the numbers of multicasts, which must grow.

Rows lie in files in about the order they happened in. The stretches in which a stream, the multicasts or
deliveries of one sender at one process, goes forwards are known (`folds.py`); a stream whose stretches go
forwards too is in order. Only others are sorted.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.verify.violations import name_of, violations

_STREAM = ("run", "process", "kind", "sender")


def disordered(stretches: DataFrame) -> DataFrame:
    """The streams whose stretches, sorted, do not go forwards: (who, sent, author).

    `stretches` is (who, sent, author, begin, end, first, last).
    """
    along = Window.partitionBy("who", "sent", "author").orderBy("begin")
    back = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.lag("last").over(along) > fn.col("first"))
    marked = stretches.select("who", "sent", "author", back.alias("back"))
    return marked.where("back").select("who", "sent", "author").distinct()


def behind(events: DataFrame, streams: DataFrame) -> DataFrame:
    """Of these streams the rows that start below the highest message before them, which is `highest`."""
    rows = events.join(fn.broadcast(streams), list(_STREAM), "left_semi")
    before = Window.partitionBy(*_STREAM).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    return (
        rows.select(*_STREAM, "index", "seq", "last", fn.max("last").over(before).alias("highest"))
        .where("seq <= highest")
        .select(*_STREAM, "index", "seq", "last", "highest")
    )


def fifo_violations(behind: DataFrame) -> DataFrame:
    """Deliveries that come after one of a later message of the same sender."""
    found = behind.where((fn.col("kind") == Kind.DELIVER.value) & (fn.col("seq") < fn.col("highest"))).select(
        "run",
        "process",
        "sender",
        fn.col("seq").alias("first"),
        fn.least(fn.col("last"), fn.col("highest") - 1).alias("last"),
        "highest",
        "index",
    )
    after = fn.concat(
        fn.lit("delivered after ("), name_of("sender"), fn.lit(","), fn.col("highest"), fn.lit(")")
    )
    return violations(found, "fifo_delivery", after, index=fn.col("index"))
