"""Recorded runs: the event schema, the recorder, journals of live processes, Parquet files in and out."""

from semcast.history.events import Event, History, HistoryError, RunInfo
from semcast.history.journal import record_crash
from semcast.history.reader import converted, read_histories, read_history
from semcast.history.recorder import Recorder
from semcast.history.schema import SCHEMA, SCHEMA_VERSION, Kind
from semcast.history.writer import write_history

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "Event",
    "History",
    "HistoryError",
    "Kind",
    "Recorder",
    "RunInfo",
    "converted",
    "read_histories",
    "read_history",
    "record_crash",
    "write_history",
]
