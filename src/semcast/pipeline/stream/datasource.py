"""The format `semcast`: what Spark asks for readers and writers."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from semcast.group.errors import ConfigurationError
from semcast.pipeline.stream.options import sink_options, source_options, where
from semcast.pipeline.stream.rows import ddl
from semcast.pipeline.stream.sink import LogBatchWriter, LogStreamWriter, check_columns
from semcast.pipeline.stream.source import LogBatchReader, LogStreamReader


class SemcastDataSource(DataSource):
    """The log of a group."""

    @classmethod
    def name(cls) -> str:
        """Of the format."""
        return "semcast"

    def schema(self) -> str:
        """One row for each message of the log."""
        return ddl(keys=source_options(self.options).keys)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: ARG002, N802
        """For `spark.readStream`."""
        return LogStreamReader(where(self.options, "source"), source_options(self.options))

    def reader(self, schema: StructType) -> LogBatchReader:  # noqa: ARG002
        """For `spark.read`."""
        return LogBatchReader(where(self.options, "source"), source_options(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:  # noqa: ARG002, N802
        """For `df.writeStream`."""
        options = sink_options(self.options)
        check_columns(schema, options)
        return LogStreamWriter(where(self.options, "stream"), options)

    def writer(self, schema: StructType, overwrite: bool) -> LogBatchWriter:
        """For `df.write`."""
        if overwrite:
            raise ConfigurationError("a log is never overwritten: write with mode append")
        options = sink_options(self.options)
        check_columns(schema, options)
        return LogBatchWriter(where(self.options, "table"), options)
