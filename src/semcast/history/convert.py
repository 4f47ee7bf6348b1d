"""Journals as Parquet files, for who reads only those: however large they are, little of them is held."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semcast.core.ids import MemberId
from semcast.history.columns import SCHEMA
from semcast.history.events import HistoryError, RunInfo
from semcast.history.journal import SUFFIX
from semcast.history.reader import Nameless, Seat, beside, cut_off_at, files_in, foreign
from semcast.history.replay import BLOCK_ROWS, Replay
from semcast.history.schema import Kind
from semcast.history.versions import completed, described, refusing_damage
from semcast.history.writer import HOW, metadata_of


def converted(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The same histories for who reads Parquet only: journals are written to a folder as Parquet files.

    Journals of a run may be in several of the paths: processes on several hosts write to several folders.
    """
    found: list[Path] = []
    live: list[Path] = []
    for path in paths:
        files = files_in(path)
        if any(file.suffix == SUFFIX for file in files):
            live += files
        else:
            found.append(path)
    if live:
        folder.mkdir(parents=True, exist_ok=True)
        for number, conversion in enumerate(_conversions(list(dict.fromkeys(live)))):
            found.append(folder / f"{number}.parquet")
            conversion.write(found[-1])
    return found


def _conversions(files: Sequence[Path]) -> list["_Conversion"]:
    """The runs of some journals, and of the Parquet files beside them."""
    runs: dict[str, _Conversion] = {}
    nameless: Nameless = {}
    for file in files:
        if file.suffix == SUFFIX:
            with Replay(file) as replay:
                info = replay.info
            if info is None:
                nameless.setdefault(file.parent, []).append(replay.process)
                continue
        else:
            info = _described(file)
        runs.setdefault(info.run, _Conversion(info, nameless)).add(info, file)
    if not runs:
        raise HistoryError(f"{files[0].parent}: no journal here has a readable header")
    return list(runs.values())


class _Conversion:
    """The files of one run on their way into one."""

    def __init__(self, info: RunInfo, nameless: Nameless) -> None:
        self._info = info
        self._nameless = nameless
        self._files: list[Path] = []
        self._unknown: set[MemberId] = set()
        self._seen: set[Seat] = set()
        self._there: set[Seat] = set()

    def add(self, info: RunInfo, file: Path) -> None:
        """One more file of the run."""
        united = self._info.united(info)
        if united is None:
            raise HistoryError(f"{file}: describes run {info.run} differently than {self._files[0]}")
        self._info = united
        self._files.append(file)

    def write(self, path: Path) -> None:
        """Write all of it; who is cut off is known, and written, at the end."""
        rows = 0
        with pq.ParquetWriter(path, SCHEMA, **HOW) as writer:
            for file in self._files:
                for table in self._journal(file) if file.suffix == SUFFIX else self._parquet(file):
                    writer.write_table(table)
                    rows += table.num_rows
            folders = {file.parent for file in self._files}
            unknown = {*self._unknown, *beside(self._nameless, folders)}
            info = cut_off_at(self._info, unknown, self._seen, self._there)
            writer.add_key_value_metadata(metadata_of(info))
        if not rows:
            raise HistoryError(f"{self._files[0]}: run {self._info.run} has no events")

    def _journal(self, file: Path) -> Iterator[pa.Table]:
        with Replay(file) as replay:
            assert replay.info is not None
            group = replay.info.only.name
            self._there.add((group, replay.process))
            for block in replay.blocks():
                fault = foreign(replay.info, group, replay.process)
                if fault is not None:
                    raise HistoryError(f"{file}: row 0: {fault}")
                yield block
            self._seen.update((group, member) for member in replay.seen)
            if replay.unknown is not None:
                self._unknown.add(replay.process)

    def _parquet(self, file: Path) -> Iterator[pa.Table]:
        """What is wrong with single rows is found by who reads the result."""
        with refusing_damage(file), pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            for batch in parquet.iter_batches(BLOCK_ROWS):
                table = completed(pa.Table.from_batches([batch]))
                self._look_at(table)
                yield table.cast(SCHEMA)

    def _look_at(self, table: pa.Table) -> None:
        seats = table.group_by(["group", "process", "incarnation"]).aggregate([]).to_pylist()
        self._there.update((row["group"], MemberId(row["process"], row["incarnation"])) for row in seats)
        views = table.filter(pc.equal(table["kind"], Kind.VIEW.value)).select(["group", "members"])
        for row in views.to_pylist():
            members = [member for member in row["members"] or () if member is not None]
            self._seen.update((row["group"], MemberId(each["name"], each["incarnation"])) for each in members)


def _described(file: Path) -> RunInfo:
    with refusing_damage(file), pq.ParquetFile(file) as parquet:
        return described(file, parquet)
