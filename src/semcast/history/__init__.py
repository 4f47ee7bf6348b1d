"""Recorded runs: the event schema, the recorder, Parquet files in and out."""

from semcast.history.events import Event, History, HistoryError, RunInfo
from semcast.history.reader import read_histories, read_history
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
    "read_histories",
    "read_history",
    "write_history",
]
