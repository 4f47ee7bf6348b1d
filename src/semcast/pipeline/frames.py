"""Small tables between Spark and the driver."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.session import in_one_process

TEXT = pa.string()
WHOLE = pa.int64()
REAL = pa.float64()
FLAG = pa.bool_()
MEMBER = pa.struct([("name", TEXT), ("incarnation", WHOLE)])


def small_frame(
    spark: SparkSession, columns: Mapping[str, pa.DataType], rows: Iterable[tuple[object, ...]]
) -> DataFrame:
    """A table of the driver's, by Arrow: a list of tuples would start Python workers to convert it."""
    listed = list(rows)
    schema = pa.schema(list(columns.items()))
    arrays = [pa.array([row[n] for row in listed], kind) for n, kind in enumerate(columns.values())]
    # The types are given: a Spark Connect client cannot tell those of an empty table.
    return spark.createDataFrame(pa.table(arrays, schema=schema), schema=from_arrow_schema(schema))


def brought(frame: DataFrame) -> DataFrame:
    """Worked out now and held by the driver, if it is small: what builds on it is planned quickly."""
    return frame.sparkSession.createDataFrame(frame.toArrow(), schema=frame.schema)


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows. Spark looks through the whole plan at every union, so each is of two halves."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return united(frames[:half]).union(united(frames[half:]))


def keep(frame: DataFrame, kept: ExitStack) -> DataFrame:
    """Have Spark keep what it works out, until `kept` is closed."""
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame


def settled(frame: DataFrame) -> DataFrame:
    """Worked out now, and once: what builds on it starts from its rows, not from how they came about.

    Where an executor may be lost, another one has a copy of what it holds.
    """
    if in_one_process(frame.sparkSession):
        return frame.localCheckpoint()
    return frame.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK_2)
