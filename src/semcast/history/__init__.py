"""Recorded runs: the event schema, the recorder, journals of live processes, Parquet files in and out."""

from semcast.history.crc import crc32, crc32_combine
from semcast.history.events import Event, GroupInfo, History, HistoryError, RunInfo
from semcast.history.files import (
    converted,
    read_histories,
    read_history,
    read_journal,
    require_pyarrow,
    write_history,
)
from semcast.history.journal import record_crash
from semcast.history.recorder import Recorder
from semcast.history.schema import GONE, KINDS, SCHEMA_VERSION, Kind, add_kind

__all__ = [
    "GONE",
    "KINDS",
    "SCHEMA_VERSION",
    "Event",
    "GroupInfo",
    "History",
    "HistoryError",
    "Kind",
    "Recorder",
    "RunInfo",
    "add_kind",
    "converted",
    "crc32",
    "crc32_combine",
    "read_histories",
    "read_history",
    "read_journal",
    "record_crash",
    "require_pyarrow",
    "write_history",
]
