"""Reading histories: a broken file is refused, naming the file and the row (counted from 0)."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.core.ids import MemberId
from semcast.history.columns import SCHEMA
from semcast.history.decoding import Columns, decode
from semcast.history.events import Event, History, HistoryError, RunInfo
from semcast.history.journal import SUFFIX
from semcast.history.replay import JournalContents, read_journal
from semcast.history.schema import Kind
from semcast.history.versions import completed, described, refusing_damage
from semcast.history.wellformed import problem

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
    histories = read_files(files_in(path))
    if not histories:
        raise HistoryError(f"{path}: no journal here has a readable header")
    return histories


def read_files(files: Iterable[Path]) -> list[History]:
    """Read every run in some files."""
    runs: dict[str, _Run] = {}
    nameless: Nameless = {}
    for file in files:
        if file.suffix == SUFFIX:
            journal = read_journal(file)
            if journal.info is None:
                nameless.setdefault(file.parent, []).append(journal.process)
                continue
            run = _run_of(runs, journal.info, file)
            run.take_journal(file, journal)
        else:
            info, table = _load(file)
            run = _run_of(runs, info, file)
            run.rows.extend(_rows(file, info, table))
        run.folders.add(file.parent)
    return [run.history(beside(nameless, run.folders)) for run in runs.values()]


Nameless = dict[Path, list[MemberId]]
"""Whose journals have no header, by folder: each may belong to any run of which files lie beside it."""


def beside(nameless: Nameless, folders: Iterable[Path]) -> list[MemberId]:
    """Those whose journals lie in these folders."""
    return [process for folder in folders for process in nameless.get(folder, ())]


class _Run:
    """What was found of a run so far."""

    def __init__(self, info: RunInfo, first: Path) -> None:
        self.info = info
        self.first = first
        self.folders: set[Path] = set()
        self.rows: list[_Row] = []
        self._journals: set[Seat] = set()
        self._cut_off: set[MemberId] = set()

    def take_journal(self, file: Path, journal: JournalContents) -> None:
        assert journal.info is not None
        group = journal.info.only.name
        self._journals.add((group, journal.process))
        if journal.unknown is not None:
            self._cut_off.add(journal.process)
        for row, event in enumerate(journal.events):
            fault = foreign(journal.info, event.group, event.process)
            if fault is not None:
                _refuse(file, row, fault)
            self.rows.append((event, file, row))

    def history(self, nameless: Sequence[MemberId]) -> History:
        """All of it; a journal without a header may belong to any run."""
        if not self.rows:
            raise HistoryError(f"{self.first}: run {self.info.run} has no events")
        info = self.info
        if self._journals or nameless:
            views = [event for event, _, _ in self.rows if event.kind is Kind.VIEW]
            seen = {(event.group, member) for event in views for member in event.members or ()}
            there = {(event.group, event.process) for event, _, _ in self.rows} | self._journals
            info = cut_off_at(info, {*self._cut_off, *nameless}, seen, there)
        return _history(info, self.rows)


def _run_of(runs: dict[str, _Run], info: RunInfo, file: Path) -> _Run:
    run = runs.setdefault(info.run, _Run(info, file))
    united = run.info.united(info)
    if united is None:
        raise HistoryError(f"{file}: describes run {info.run} differently than {run.first}")
    run.info = united
    return run


Seat = tuple[str, MemberId]
"""A group and a process there."""


def cut_off_at(info: RunInfo, unknown: Iterable[MemberId], seen: set[Seat], there: set[Seat]) -> RunInfo:
    """The run with those named of whom not all is known.

    Where processes write journals, a member that has none did something nobody knows.

    Args:
        info: the run.
        unknown: whose journals have no end, or no header.
        seen: who is in views.
        there: of whom there are journals or rows.
    """
    listed = {(group.name, member) for group in info.groups for member in group.members}
    silent = {member for _, member in (listed | seen) - there}
    return msgspec.structs.replace(info, cut_off=tuple(sorted({*info.cut_off, *unknown, *silent})))


def files_in(path: Path) -> list[Path]:
    """A file, or the files of histories in a folder and in all below it that are not hidden."""
    if not path.exists():
        raise HistoryError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    found = (file for file in path.rglob("*") if file.suffix in (".parquet", SUFFIX) and file.is_file())
    files = sorted(
        file for file in found if not any(part[0] in "._" for part in file.relative_to(path).parts[:-1])
    )
    if not files:
        raise HistoryError(f"{path}: no *.parquet or *{SUFFIX} files in this folder")
    return files


def _load(file: Path) -> tuple[RunInfo, pa.Table]:
    with refusing_damage(file), pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        info = described(file, parquet)
        there = [name for name in SCHEMA.names if name in parquet.schema_arrow.names]
        return info, completed(parquet.read(columns=there))


def _rows(file: Path, info: RunInfo, table: pa.Table) -> Iterator[_Row]:
    columns = [_column(file, table, field) for field in SCHEMA]
    for row, values in enumerate(map(Columns, *columns)):
        try:
            event = decode(values)
            fault = problem(event) or _of_another_run(info, values.run)
            fault = fault or foreign(info, event.group, event.process)
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


def _of_another_run(info: RunInfo, run: str) -> str | None:
    return None if run == info.run else f"belongs to run {run}, and the file to run {info.run}"


def foreign(info: RunInfo, name: str, process: MemberId) -> str | None:
    """Whether a row is of a group or a process that the run does not have."""
    group = info.group(name)
    if group is None:
        known = ", ".join(group.name for group in info.groups)
        return f"unknown group {name}: the run has {known}"
    if group.members and not _known(process, group.members):
        return f"unknown process {process}: the members are {', '.join(map(str, group.members))}"
    return None


def _known(process: MemberId, members: tuple[MemberId, ...]) -> bool:
    """Whether it is a member, or a restart of one."""
    return process in members or any(
        member.name == process.name and member.incarnation < process.incarnation for member in members
    )


def _history(info: RunInfo, rows: list[_Row]) -> History:
    rows_of: dict[Seat, list[_Row]] = {}
    for row in rows:
        rows_of.setdefault((row[0].group, row[0].process), []).append(row)
    for theirs in rows_of.values():
        theirs.sort(key=_index)
        _check_numbering(theirs)
    return History(info, (event for theirs in rows_of.values() for event, _, _ in theirs))


def _index(row: _Row) -> int:
    return row[0].index


def _check_numbering(rows: list[_Row]) -> None:
    """Of one process in one group: events count from 0, its messages grow."""
    latest = 0
    for expected, (event, file, row) in enumerate(rows):
        if event.index != expected:
            _refuse(file, row, f"index {event.index} of {event.process} where {expected} should follow")
        if event.kind is Kind.MULTICAST:
            if event.seq <= latest:
                _refuse(file, row, f"multicast of ({event.sender},{event.seq}) after {latest}")
            latest = event.last
