"""Outcomes of a sweep at a URI: written and read by Spark, wave by wave.

The same as `store.Store`, but that `table.parquet` is a folder, as Spark writes it.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.paths import literal
from semcast.pipeline.sweep.spec import Spec
from semcast.pipeline.sweep.store import best_of, table_of
from semcast.pipeline.sweep.worker import OUTCOMES, CellOutcome, as_batch
from semcast.pipeline.writing import write_table

_MISSING = "PATH_NOT_FOUND"
_WRITTEN = "written"


class StoreElsewhere:
    """The outcomes of one spec."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self._uri = uri
        self._waves = f"{uri}/waves"

    def append(self, outcomes: Sequence[CellOutcome]) -> None:
        """Add a wave."""
        self._write(pa.Table.from_batches([as_batch(outcomes)], OUTCOMES), "append")

    def outcomes(self) -> dict[str, CellOutcome]:
        """What was recorded, by cell; of several the good one, else the latest."""
        try:
            rows = self._spark.read.schema(from_arrow_schema(OUTCOMES)).parquet(literal(self._waves))
        except AnalysisException as error:
            if error.getCondition() == _MISSING:
                return {}
            raise
        when = rows.select(*OUTCOMES.names, rows["_metadata.file_modification_time"].alias(_WRITTEN))
        table = when.toArrow().sort_by(_WRITTEN).select(OUTCOMES.names)
        return best_of(CellOutcome(**row) for row in table.to_pylist())

    def clear(self) -> None:
        """Forget everything."""
        self._write(OUTCOMES.empty_table(), "overwrite")

    def write_table(self, spec: Spec, outcomes: Mapping[str, CellOutcome]) -> str:
        """Write the table of the cells that have an outcome; OutputError if it is not there then."""
        table = table_of(spec, outcomes)
        path = f"{self._uri}/table.parquet"
        write_table(self._spark.createDataFrame(table, schema=from_arrow_schema(table.schema)), path)
        return path

    def _write(self, table: pa.Table, mode: str) -> None:
        frame = self._spark.createDataFrame(table, schema=from_arrow_schema(table.schema))
        frame.coalesce(1).write.mode(mode).parquet(self._waves)
