"""Reading histories: a broken file is refused, naming the file and the row (counted from 0)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.core.ids import MemberId
from semcast.history.decoding import Columns, decode
from semcast.history.events import Event, History, HistoryError, RunInfo
from semcast.history.journal import SUFFIX, Journal, read_journal
from semcast.history.schema import RUN_KEY, SCHEMA, SCHEMA_VERSION, VERSION_KEY, Kind
from semcast.history.wellformed import problem
from semcast.history.writer import write_history

_Row = tuple[Event, Path, int]
"""An event and where it was found."""


def read_history(path: Path) -> History:
    """Read one run: a file, or a folder of files."""
    histories = read_histories(path)
    if len(histories) > 1:
        names = ", ".join(history.info.run for history in histories)
        raise HistoryError(f"{path}: holds {len(histories)} runs ({names}) where one was expected")
    return histories[0]


def read_histories(path: Path) -> list[History]:
    """Read every run in a file or in a folder, in the order of their first files.

    A run may be spread over several files, and its rows may lie in any order. Journals of live processes
    are read as far as they are sound.
    """
    infos: dict[str, tuple[RunInfo, Path]] = {}
    rows: dict[str, list[_Row]] = {}
    journals: list[Journal] = []
    for file in _files(path):
        if file.suffix == SUFFIX:
            journal = read_journal(file)
            journals.append(journal)
            if journal.info is None:
                continue
            info, found = journal.info, _journal_rows(file, journal)
        else:
            info, table = _load(file)
            found = _rows(file, info, table)
        known, first = infos.setdefault(info.run, (info, file))
        if info != known:
            raise HistoryError(f"{file}: describes run {info.run} differently than {first}")
        rows.setdefault(info.run, []).extend(found)
    if not infos:
        raise HistoryError(f"{path}: no journal here has a readable header")
    return [
        _history(_with_cut_off(info, rows[run], journals), first, rows[run])
        for run, (info, first) in infos.items()
    ]


def converted(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The same histories for who reads Parquet only: journals are written to a folder as Parquet files."""
    found: list[Path] = []
    for number, path in enumerate(paths):
        journals = path.suffix == SUFFIX or (path.is_dir() and any(path.glob(f"*{SUFFIX}")))
        if not journals:
            found.append(path)
            continue
        for run, history in enumerate(read_histories(path)):
            found.append(folder / f"{number}-{run}.parquet")
            write_history(history, found[-1])
    return found


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise HistoryError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in (".parquet", SUFFIX))
    if not files:
        raise HistoryError(f"{path}: no *.parquet or *{SUFFIX} files in this folder")
    return files


def _with_cut_off(info: RunInfo, rows: list[_Row], journals: list[Journal]) -> RunInfo:
    """The run with those named of whom not all is known.

    A journal without a header may belong to any run. Where processes write journals, a member that has
    none did something nobody knows.
    """
    theirs = [journal for journal in journals if journal.info is None or journal.info.run == info.run]
    if not theirs:
        return info
    cut_off = {journal.process for journal in theirs if journal.unknown is not None}
    seen = {member for event, _, _ in rows if event.kind is Kind.VIEW for member in event.members or ()}
    silent = (
        {*info.members, *seen}
        - {journal.process for journal in theirs}
        - {event.process for event, _, _ in rows}
    )
    return msgspec.structs.replace(info, cut_off=tuple(sorted({*info.cut_off, *cut_off, *silent})))


def _journal_rows(file: Path, journal: Journal) -> Iterator[_Row]:
    assert journal.info is not None
    for row, event in enumerate(journal.events):
        fault = problem(event) or _foreign(journal.info, journal.info.run, event)
        if fault is not None:
            _refuse(file, row, fault)
        yield event, file, row


def _load(file: Path) -> tuple[RunInfo, pa.Table]:
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            info = _info(file, parquet.schema_arrow.metadata or {})
            _check_columns(file, parquet.schema_arrow)
            return info, parquet.read(columns=SCHEMA.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise HistoryError(f"{file}: not a Parquet file, or damaged or cut off: {error}") from error


def _info(file: Path, metadata: dict[bytes, bytes]) -> RunInfo:
    version = metadata.get(VERSION_KEY)
    if version is None or RUN_KEY not in metadata:
        raise HistoryError(f"{file}: a Parquet file, but not a recorded history (no run in its metadata)")
    if version != str(SCHEMA_VERSION).encode():
        found = version.decode(errors="replace")
        raise HistoryError(f"{file}: schema version {found}; this program reads version {SCHEMA_VERSION}")
    try:
        return msgspec.json.decode(metadata[RUN_KEY], type=RunInfo)
    except msgspec.DecodeError as error:
        raise HistoryError(f"{file}: unreadable description of the run: {error}") from error


def _check_columns(file: Path, found: pa.Schema) -> None:
    missing = [name for name in SCHEMA.names if found.get_field_index(name) < 0]
    if missing:
        raise HistoryError(f"{file}: missing columns: {', '.join(missing)}")
    for field in SCHEMA:
        actual = found.field(field.name).type
        if not actual.equals(field.type):
            raise HistoryError(f"{file}: column {field.name} is {actual}, not {field.type}")


def _rows(file: Path, info: RunInfo, table: pa.Table) -> Iterator[_Row]:
    columns = [_column(file, table, field) for field in SCHEMA]
    for row, values in enumerate(map(Columns, *columns)):
        try:
            event = decode(values)
            fault = problem(event) or _foreign(info, values.run, event)
        except ValueError as error:
            fault = str(error)
        if fault is not None:
            _refuse(file, row, fault)
        yield event, file, row


def _column(file: Path, table: pa.Table, field: pa.Field) -> list[object]:
    column = table.column(field.name)
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError as error:
        raise HistoryError(f"{file}: column {field.name} is damaged: {error}") from error
    if not field.nullable and column.null_count:
        _refuse(file, values.index(None), f"no {field.name}")
    return values


def _refuse(file: Path, row: int, fault: str) -> NoReturn:
    raise HistoryError(f"{file}: row {row}: {fault}")


def _foreign(info: RunInfo, run: str, event: Event) -> str | None:
    """Whether the row belongs to something else than the run that the file describes."""
    if run != info.run:
        return f"belongs to run {run}, and the file to run {info.run}"
    if info.members and not _known(event.process, info.members):
        return f"unknown process {event.process}: the members are {', '.join(map(str, info.members))}"
    return None


def _known(process: MemberId, members: tuple[MemberId, ...]) -> bool:
    """Whether it is a member, or a restart of one."""
    return process in members or any(
        member.name == process.name and member.incarnation < process.incarnation for member in members
    )


def _history(info: RunInfo, first: Path, rows: list[_Row]) -> History:
    if not rows:
        raise HistoryError(f"{first}: run {info.run} has no events")
    rows_of: dict[MemberId, list[_Row]] = {}
    for row in rows:
        rows_of.setdefault(row[0].process, []).append(row)
    for theirs in rows_of.values():
        theirs.sort(key=_index)
        _check_numbering(theirs)
    return History(info, (event for theirs in rows_of.values() for event, _, _ in theirs))


def _index(row: _Row) -> int:
    return row[0].index


def _check_numbering(rows: list[_Row]) -> None:
    """Of one process: events count from 0, its messages grow."""
    latest = 0
    for expected, (event, file, row) in enumerate(rows):
        if event.index != expected:
            _refuse(file, row, f"index {event.index} of {event.process} where {expected} should follow")
        if event.kind is Kind.MULTICAST:
            if event.seq <= latest:
                _refuse(file, row, f"multicast of ({event.sender},{event.seq}) after {latest}")
            latest = event.last
