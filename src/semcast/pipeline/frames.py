"""Small tables between Spark and the driver."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
    arrays = [pa.array([row[n] for row in listed], kind) for n, kind in enumerate(columns.values())]
    return spark.createDataFrame(pa.table(arrays, names=list(columns)))


def brought(frame: DataFrame) -> DataFrame:
    """Worked out now and held by the driver, if it is small: what builds on it is planned quickly."""
    return frame.sparkSession.createDataFrame(frame.toArrow(), schema=frame.schema)


def keep(frame: DataFrame, kept: ExitStack) -> DataFrame:
    """Have Spark keep what it works out, until `kept` is closed."""
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame
