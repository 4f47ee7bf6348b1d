"""Order: FIFO deliveries, and the numbers of multicasts, which must grow.

Rows lie in files in about the order they happened in. A fold over each batch, where it lies, finds the pieces
in which a stream goes forwards; a stream whose pieces go forwards too is in order. Only others are sorted.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.verify.violations import name_of, violations

_PIECES = "stream long, begin long, end long, floor long, last long"
_ARROW = pa.schema([(name, pa.int64()) for name in ("stream", "begin", "end", "floor", "last")])
_STREAM = ("run", "process", "kind", "sender")


def steps(events: DataFrame) -> DataFrame:
    """Multicasts and deliveries as (stream, index, floor, last).

    They are in order if each floor reaches the last before. The same message may be delivered twice in a row
    (which integrity forbids), but not be multicast twice. A stream is a hash: two that share one only look
    out of order.
    """
    floor = fn.when(fn.col("kind") == Kind.MULTICAST.value, fn.col("seq") - 1).otherwise(fn.col("seq"))
    return events.select(_stream().alias("stream"), "index", floor.alias("floor"), "last")


def pieces(steps: DataFrame) -> DataFrame:
    """Maximal pieces of batches in which a stream goes forwards: their first and last row."""
    return steps.mapInArrow(_fold, _PIECES).select("stream", "begin", "end", "floor", "last")


def disordered(pieces: DataFrame) -> DataFrame:
    """The streams whose pieces, sorted, do not go forwards."""
    along = Window.partitionBy("stream").orderBy("begin")
    back = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.lag("last").over(along) > fn.col("floor"))
    return pieces.select("stream", back.alias("back")).where("back").select("stream").distinct()


def behind(events: DataFrame, streams: DataFrame) -> DataFrame:
    """Of these streams the rows that start below the highest message before them, which is `highest`."""
    rows = events.withColumn("stream", _stream()).join(fn.broadcast(streams), "stream", "left_semi")
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


def _stream() -> Column:
    return fn.xxhash64(*_STREAM)


def _fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays(
                _pieces(*(column.to_numpy() for column in batch.columns)), schema=_ARROW
            )


def _pieces(
    stream: npt.NDArray[np.int64],
    index: npt.NDArray[np.int64],
    floor: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
) -> list[pa.Array]:
    order = np.argsort(stream, kind="stable")
    stream, index, floor, last = stream[order], index[order], floor[order], last[order]
    goes_on = (stream[1:] == stream[:-1]) & (index[1:] > index[:-1]) & (floor[1:] >= last[:-1])
    begins = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    ends = np.concatenate((begins[1:] - 1, [len(stream) - 1]))
    columns = (stream[begins], index[begins], index[ends], floor[begins], last[ends])
    return [pa.array(column) for column in columns]
