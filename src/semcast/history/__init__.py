"""Recorded runs: the event schema, the recorder, journals of live processes, Parquet files in and out."""

from semcast.history.convert import converted
from semcast.history.crc import crc32_combine
from semcast.history.events import Event, GroupInfo, History, HistoryError, RunInfo
from semcast.history.journal import record_crash
from semcast.history.reader import read_histories, read_history
from semcast.history.recorder import Recorder
from semcast.history.schema import GONE, KINDS, SCHEMA, SCHEMA_VERSION, Kind, add_kind
from semcast.history.writer import write_history

__all__ = [
    "GONE",
    "KINDS",
    "SCHEMA",
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
    "crc32_combine",
    "read_histories",
    "read_history",
    "record_crash",
    "write_history",
]
