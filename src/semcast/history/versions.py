"""Files of this version and of version 1: what they say about their run, and which columns they have."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.core.ids import MemberId
from semcast.history.columns import SCHEMA, columns_of
from semcast.history.events import HistoryError, RunInfo
from semcast.history.schema import FIFO, RUN_KEY, SCHEMA_VERSION, VERSION_KEY

VERSIONS = (1, SCHEMA_VERSION)


class RunInfo1(msgspec.Struct, frozen=True):
    """A run of version 1, which has one group."""

    run: str
    group: str
    stack: str
    seed: int | None
    members: tuple[MemberId, ...]
    buffer_limit: int | None
    uniform: bool
    quiesced: bool
    note: str = ""
    cut_off: tuple[MemberId, ...] = ()
    order: str = FIFO

    def today(self) -> RunInfo:
        """The same in this version."""
        return RunInfo.one(**msgspec.structs.asdict(self))


def check_version(file: Path, version: object) -> None:
    """Refuse a file of a version that is not known here."""
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise HistoryError(f"{file}: schema version {version}; this program reads {known}")


@contextmanager
def refusing_damage(file: Path) -> Iterator[None]:
    """Whatever pyarrow raises of a Parquet file that is damaged, in one line that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        line = str(error).partition("\n")[0]
        raise HistoryError(f"{file}: not a Parquet file, or damaged or cut off: {line}") from error


def described(file: Path, parquet: pq.ParquetFile) -> RunInfo:
    """The run that a Parquet file is about, if its columns are those of a history."""
    metadata = parquet.metadata.metadata or {}
    if VERSION_KEY not in metadata or RUN_KEY not in metadata:
        raise HistoryError(f"{file}: a Parquet file, but not a recorded history (no run in its metadata)")
    said = metadata[VERSION_KEY].decode(errors="replace")
    version = int(said) if said.isdecimal() else said
    check_version(file, version)
    try:
        info = _run_info(metadata[RUN_KEY], old=version == 1)
    except msgspec.DecodeError as error:
        raise HistoryError(f"{file}: unreadable description of the run: {error}") from error
    _check_columns(file, parquet.schema_arrow, columns_of(1 if version == 1 else SCHEMA_VERSION))
    return info


def completed(table: pa.Table) -> pa.Table:
    """A table of any version with the columns of this one: what it lacks is null."""
    for field in SCHEMA:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(SCHEMA.names)


def _run_info(data: bytes, *, old: bool) -> RunInfo:
    if old:
        return msgspec.json.decode(data, type=RunInfo1).today()
    return msgspec.json.decode(data, type=RunInfo)


def _check_columns(file: Path, found: pa.Schema, needed: pa.Schema) -> None:
    missing = [name for name in needed.names if found.get_field_index(name) < 0]
    if missing:
        raise HistoryError(f"{file}: missing columns: {', '.join(missing)}")
    for field in needed:
        actual = found.field(field.name).type
        if not actual.equals(field.type):
            raise HistoryError(f"{file}: column {field.name} is {actual}, not {field.type}")
