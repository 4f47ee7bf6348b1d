"""Rows that Spark has read and judged, folded where they lie: one pass, one segment after the other.

Spark cuts large files into blocks and reads several in one task, so that no row knows its line. Rows of a
block come in order, so each has a place in its block; when all blocks are counted, the driver knows the
lines. A second pass over the same files is compared with the first, block by block: if blocks were cut
otherwise or files changed in between, that is an error and never a row too few.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from semcast.pipeline.paths import local_path
from semcast.pipeline.profile.partial import (
    KINDS,
    SAMPLE,
    Cut,
    Ints,
    Problem,
    Segment,
    SegmentRows,
    fold,
    gathered,
)

Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `mapInArrow` calls."""

Flags = npt.NDArray[np.bool_]
Block = tuple[str | None, int]
"""A file, and where in it a block begins."""

TASK_BITS = 32
SORTED, IN_PLACE = 1 << 62, 1 << 61
"""Numbers of segments have the task above the lower 32 bits, and one of these bits if rows were sorted, or
were read without Spark: tasks have other numbers then."""

ROW = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("ts", pa.float64()),
        ("key", pa.string()),
        ("bytes", pa.int64()),
        ("kind", pa.string()),
    ]
)


ORDINAL_BITS = 40
"""Rows without numbers are ordered by file, then line: the file's number is above this bit."""


class Counted(NamedTuple):
    """What the first pass found of a block."""

    line: int
    """The number of its first row in the file, from 1."""

    rows: int


class UnequalPassesError(Exception):
    """Two passes over the same rows found different ones."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What rows of a table do not say themselves."""

    header: bool = False
    """Whether the first line of a file names the columns."""

    streams: Mapping[str, str] | None = None
    """The stream of each file, where rows name none."""

    ordinals: Mapping[str, int] | None = None
    """The number of each file, where rows have none: they count in the order of files and lines."""

    @property
    def numbered(self) -> bool:
        """Whether rows have a `seq`."""
        return self.ordinals is None


def scanning(layout: Layout, cut: Cut) -> Mapper:
    """Over batches of (file, block, stream, seq, ts, key, bytes, kind, blank, good, problem), in order."""
    return partial(_scan, layout=layout, cut=cut)


def numbering(layout: Layout, blocks: Mapping[Block, Counted] | None, columns: pa.Schema) -> Mapper:
    """The good rows of such batches with `file` and `line`, and a `seq` if they have none.

    Args:
        layout: as in the first pass.
        blocks: those of the first pass; None if rows know their lines.
        columns: what to give.
    """
    return partial(_number, layout=layout, blocks=blocks, columns=columns)


def folding_sorted(cut: Cut) -> Mapper:
    """Over rows sorted by stream and `seq`; of several with the same `seq` the first counts."""
    return partial(_fold_sorted, cut=cut)


def _scan(batches: Iterator[pa.RecordBatch], *, layout: Layout, cut: Cut) -> Iterator[pa.RecordBatch]:
    where, start = None, 0
    for number, table in enumerate(gathered(batches, cut.rows, ("file", "block"))):
        file, block = _block_of(table)
        start = start if (file, block) == where else 0
        good, blank = _flags(table, layout, block, start)
        bad = np.flatnonzero(~good & ~blank)
        segment = Segment(
            _task() << TASK_BITS | number,
            file,
            block,
            start,
            rows=len(table),
            empty=int(np.count_nonzero(blank)),
            bad=len(bad),
            sample=tuple(Problem(start + at, table["problem"][at].as_py()) for at in bad[:SAMPLE].tolist()),
            numbered=layout.numbered,
        )
        yield from fold(_rows(table, good, layout, file, start), cut, segment)
        where, start = (file, block), start + len(table)


def _number(
    batches: Iterator[pa.RecordBatch],
    *,
    layout: Layout,
    blocks: Mapping[Block, Counted] | None,
    columns: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    where, start = None, 0
    for table in gathered(batches, 1 << 16, ("file", "block")):
        file, block = _block_of(table)
        if (file, block) != where:
            _compare(where, start, blocks)
            start = 0
        good, _ = _flags(table, layout, block, start)
        extra = {"file": pa.repeat(pa.scalar(file, pa.string()), len(table))}
        line = (
            table["line"].to_numpy() if blocks is None else _lines(table, _of((file, block), blocks), start)
        )
        extra["line"] = pa.array(line)
        if layout.ordinals is not None:
            extra["seq"] = pa.array((layout.ordinals[file or ""] << ORDINAL_BITS) + line)
        if layout.streams is not None:
            extra["stream"] = pa.repeat(_stream_of(layout.streams, file), len(table))
        arrays = [extra[name] if name in extra else table[name] for name in columns.names]
        whole = pa.table(arrays, schema=columns)
        yield from whole.filter(pa.array(good)).to_batches()
        where, start = (file, block), start + len(table)
    _compare(where, start, blocks)


def _lines(table: pa.Table, block: Counted, start: int) -> Ints:
    return block.line + start + np.arange(len(table))


def _of(where: Block, blocks: Mapping[Block, Counted]) -> Counted:
    if where not in blocks:
        raise UnequalPassesError(f"{where[0]}: a block at {where[1]} was not there in the first pass")
    return blocks[where]


def _compare(where: Block | None, rows: int, blocks: Mapping[Block, Counted] | None) -> None:
    if where is not None and blocks is not None and rows != (due := _of(where, blocks).rows):
        raise UnequalPassesError(f"{where[0]}: {due} rows were there at first, then {rows}")


def _fold_sorted(batches: Iterator[pa.RecordBatch], *, cut: Cut) -> Iterator[pa.RecordBatch]:
    latest: tuple[str, int] | None = None
    for number, table in enumerate(gathered(batches, cut.rows, ())):
        streams, seq = table["stream"].combine_chunks().dictionary_encode(), table["seq"].to_numpy()
        codes = streams.indices.to_numpy()
        same = np.append(False, (np.diff(codes) == 0) & (np.diff(seq) == 0))
        same[0] = latest == (streams[0].as_py(), int(seq[0]))
        copies = np.flatnonzero(same)
        segment = Segment(
            SORTED | _task() << TASK_BITS | number,
            None,
            _task(),
            0,
            rows=len(table),
            bad=len(copies),
            sample=tuple(_copy(table.slice(at, 1).to_pylist()[0]) for at in copies[:SAMPLE].tolist()),
        )
        yield from fold(_rows(table, ~same, Layout(), None, 0), cut, segment)
        latest = (streams[-1].as_py(), int(seq[-1]))


def _copy(row: dict[str, object]) -> Problem:
    line, file = row["line"], row["file"]
    problem = f"seq {row['seq']} is in stream {row['stream']} already"
    return Problem(
        line if isinstance(line, int) else 0, problem, None if file is None else local_path(str(file))
    )


def _block_of(table: pa.Table) -> Block:
    """The file, as people write it, and the block of a segment; rows of no file are in a block a task."""
    file, block = table["file"][0].as_py(), table["block"][0].as_py()
    return (None, _task()) if file is None else (local_path(file), block)


def _flags(table: pa.Table, layout: Layout, block: int, start: int) -> tuple[Flags, Flags]:
    """Which rows are good, and which are no rows."""
    good, blank = (_as_flags(table[name]) for name in ("good", "blank"))
    if layout.header and block == start == 0:
        good, blank = good.copy(), blank.copy()
        good[0], blank[0] = False, True
    return good, blank


def _as_flags(column: pa.ChunkedArray) -> Flags:
    found: Flags = column.to_numpy().astype(bool)
    return found


def _rows(table: pa.Table, good: Flags, layout: Layout, file: str | None, start: int) -> SegmentRows:
    places = np.flatnonzero(good)
    if len(places) < len(table):
        table = table.take(pa.array(places))
    if layout.streams is None:
        stream = table["stream"].combine_chunks().dictionary_encode()
    else:
        stream = constant(_stream_of(layout.streams, file), len(table))
    kind = table["kind"].combine_chunks().dictionary_encode()
    return SegmentRows(
        stream,
        table["seq"].to_numpy() if layout.numbered else start + places,
        table["ts"].to_numpy(),
        table["key"].combine_chunks().dictionary_encode(),
        kind_places(kind.dictionary)[kind.indices.to_numpy()],
        table["bytes"].to_numpy(),
    )


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """So many times the same text."""
    names = [text] if rows else []
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(names, pa.string()))


def kind_places(names: pa.Array) -> Ints:
    """The place in `KINDS` of each name, or -1."""
    known = {name: place for place, name in enumerate(KINDS)}
    return np.array([known.get(name, -1) for name in names.to_pylist()], np.int64)


def _stream_of(streams: Mapping[str, str], file: str | None) -> str:
    if file is None or file not in streams:
        raise UnequalPassesError(f"{file} was not there when files were listed")
    return streams[file]


def _task() -> int:
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()
