"""Rows about messages with numbers instead of names, batch by batch, straight from the files.

Spark deals out the row groups, and each task reads its own, column by column: that takes a fraction of the
time that single rows take through Spark to Python. Of few rows the driver reads all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.core.ids import MemberId
from semcast.history import HistoryError, RunInfo
from semcast.history.schema import SAFE, Kind
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.session import slots
from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX_BITS,
    INDEX_IN_PACKET_BITS,
    NOTHING,
    SENT,
    SENT_SAFE,
    VECTOR,
    Batches,
    Fold,
    Ints,
    Rows,
)
from semcast.pipeline.verify.stays import Who

_BATCH = 1 << 16
_NAMES = ("run", "group", "process", "kind", "sender", "level")
_NUMBERS = (
    "incarnation",
    "index",
    "at_ns",
    "sender_incarnation",
    "seq",
    "count",
    "order",
    "view",
    "bytes",
    "crc",
)
_PLACE = "ring"
"""The column that says where a message was in the order of a ring."""
_CERTIFICATES = {_PLACE: "ring.packet", "vector": "vector.list.element.seq"}
"""The columns of certificates, and a leaf of each that is null where there is none."""

ROWS = pa.schema([*((name, pa.int64()) for name in Rows._fields), (VECTOR, pa.list_(pa.int64()))])
"""The columns of batches."""

_TASKS_A_CORE = 8
_SCOPE_BITS = 42

RowGroup = tuple[str | Path, int]
"""A file, and the number of a row group there."""

_Members = Mapping[tuple[str, int], int]
_Known = dict[tuple[str, str], dict[tuple[str, int], int]]
"""By run and group, the numbers of members by name and incarnation."""


def over_files(
    spark: SparkSession,
    files: Sequence[Path],
    runs: Mapping[str, RunInfo],
    numbers: Mapping[Who, int],
    fold: Fold,
    schema: pa.Schema,
    *,
    vectors: bool,
) -> DataFrame:
    """What `fold` makes of the batches of all row groups, without vector times unless they are asked for."""
    known = _known(runs, numbers)

    def read(groups: Iterator[RowGroup]) -> Batches:
        return fold(batch for group in groups for batch in _row_group(*group, known, vectors=vectors))

    return over_row_groups(spark, files, read, schema)


def over_row_groups(
    spark: SparkSession,
    files: Sequence[Path],
    work: Callable[[Iterator[RowGroup]], Batches],
    schema: pa.Schema,
) -> DataFrame:
    """What a function makes of all row groups, some in each task."""
    sizes = {file: file.stat().st_size for file in files}
    groups = [(str(file), group, sizes[file]) for file, group in row_groups(files)]

    def in_task(dealt: Batches) -> Batches:
        rows = (zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in dealt)
        return work(map(_as_here, chain.from_iterable(rows)))

    table = small_frame(spark, {"file": TEXT, "group": WHOLE, "size": WHOLE}, groups)
    return table.repartition(tasks_for(spark, len(groups))).mapInArrow(in_task, from_arrow_schema(schema))


def _as_here(dealt: tuple[str, int, int]) -> RowGroup:
    """In a task, which may run where another file has this path: on a worker that came late, say."""
    file, group, size = dealt
    there = Path(file).stat().st_size
    if there != size:
        raise HistoryError(f"{file}: has {size} bytes, and {there} where an executor runs")
    return file, group


def row_groups(files: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """All of them, by file and number."""
    for file in files:
        with pq.ParquetFile(file) as parquet:
            count = int(parquet.metadata.num_row_groups)
        yield from ((file, group) for group in range(count))


def tasks_for(spark: SparkSession, parts: int) -> int:
    """How many tasks to cut so many parts of the work into: a few for each core, however many parts."""
    return max(1, min(parts, _TASKS_A_CORE * slots(spark)))


def read_here(
    files: Sequence[Path], runs: Mapping[str, RunInfo], numbers: Mapping[Who, int]
) -> list[pa.RecordBatch]:
    """The batches of all row groups, if they are few, as the driver reads them."""
    known = _known(runs, numbers)
    return [batch for group in row_groups(files) for batch in _row_group(*group, known, vectors=True)]


def over_batches(spark: SparkSession, batches: Batches, fold: Fold, schema: pa.Schema) -> DataFrame:
    """What `fold` makes of batches that the driver holds."""
    nothing = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
    found = [nothing, *(batch.cast(schema) for batch in fold(batches))]
    return spark.createDataFrame(pa.Table.from_batches(found, schema), schema=from_arrow_schema(schema))


def _known(runs: Mapping[str, RunInfo], numbers: Mapping[Who, int]) -> _Known:
    known: _Known = {}
    for (name, member), number in numbers.items():
        seat = runs[name].run, runs[name].only.name
        known.setdefault(seat, {})[member.name, member.incarnation] = number
    return known


def scope_code(number: int, formed_by: int) -> int:
    """A configuration as one number: its own, and that of who formed it."""
    return (formed_by + 1 << _SCOPE_BITS) + number


def _row_group(file: str | Path, group: int, known: _Known, *, vectors: bool) -> Batches:
    with pq.ParquetFile(file, page_checksum_verification=True, read_dictionary=list(_NAMES)) as parquet:
        columns = parquet.schema_arrow.names  # asked once: it is made anew each time
        names = [*_NAMES, *_NUMBERS, *_certificates(parquet, columns, group)]
        there = [name for name in names if name in columns and (vectors or name != VECTOR)]
        for batch in parquet.iter_batches(_BATCH, row_groups=[group], columns=there, use_threads=False):
            for part, members in _by_group(batch, known):
                rows = numbered(part, members)
                if rows is not None:
                    yield rows


def _certificates(parquet: pq.ParquetFile, columns: Sequence[str], group: int) -> Iterator[str]:
    """The columns of certificates that say anything in a row group."""
    footer = parquet.metadata.row_group(group)
    leaves = {footer.column(n).path_in_schema: footer.column(n) for n in range(footer.num_columns)}
    for name, leaf in _CERTIFICATES.items():
        if name in columns:
            known = leaves[leaf].statistics if leaf in leaves else None
            if name == VECTOR or known is None or known.num_values:
                yield name


def _by_group(batch: pa.RecordBatch, known: _Known) -> Iterator[tuple[pa.RecordBatch, _Members]]:
    """The rows of each group, with its members; a file is about one run."""
    run = batch["run"].dictionary[0].as_py()
    groups = batch["group"].dictionary.to_pylist()
    for group in groups:
        if (run, group) in known:
            part = batch if len(groups) == 1 else batch.filter(pc.equal(batch["group"], group))
            yield part, known[run, group]


def numbered(batch: pa.RecordBatch, members: _Members) -> pa.RecordBatch | None:
    """The rows of a batch that are about messages, None if there are none."""
    kinds = _coded(batch["kind"], {Kind.MULTICAST.value: SENT, Kind.DELIVER.value: DELIVERED})
    chosen = kinds != NOTHING
    if not chosen.any():
        return None
    if not chosen.all():
        batch, kinds = batch.filter(pa.array(chosen)), kinds[chosen]
    sent = kinds == SENT
    safe = sent & (_coded(batch["level"], {SAFE: 1}) == 1)
    first = _filled(batch, "seq")
    who = _members(members, batch["process"], _filled(batch, "incarnation"))
    scope, position = _positions(batch, members)
    changes, vector = _vectors(batch)
    rows = Rows(
        place=(who << INDEX_BITS) + _filled(batch, "index"),
        what=np.where(safe, SENT_SAFE, kinds),
        view=np.where(sent, _filled(batch, "view"), NOTHING),
        author=_members(members, batch["sender"], _filled(batch, "sender_incarnation")),
        first=first,
        last=first + _filled(batch, "count") - 1,
        at=_filled(batch, "at_ns"),
        order=np.where(scope != NOTHING, position, np.where(sent, NOTHING, _filled(batch, "order"))),
        size=_filled(batch, "bytes"),
        crc=_filled(batch, "crc"),
        scope=scope,
        changes=changes,
    )
    columns = [*map(pa.array, rows), vector]
    return pa.RecordBatch.from_arrays(columns, names=[*Rows._fields, VECTOR])


def _positions(batch: pa.RecordBatch, members: _Members) -> tuple[Ints, Ints]:
    """The configuration of the ring and the position there that rows were recorded with."""
    nothing = np.full(batch.num_rows, NOTHING, np.int64)
    if _PLACE not in batch.schema.names:
        return nothing, nothing
    ring = batch[_PLACE]
    parts = {field.name: pc.struct_field(ring, field.name) for field in ring.type}
    packet = parts["packet"].fill_null(NOTHING).to_numpy(zero_copy_only=False)
    there = packet != NOTHING
    names = parts["representative"].dictionary_encode()
    by = _members(members, names, parts["incarnation"].fill_null(0).to_numpy(zero_copy_only=False))
    number = parts["configuration"].fill_null(0).to_numpy(zero_copy_only=False)
    index = parts["index"].fill_null(0).to_numpy(zero_copy_only=False)
    scope = (by + 1 << _SCOPE_BITS) + number
    return np.where(there, scope, NOTHING), np.where(there, (packet << INDEX_IN_PACKET_BITS) + index, NOTHING)


def _vectors(batch: pa.RecordBatch) -> tuple[Ints, pa.Array]:
    """How many fields of the vector time change in each row, and which, as ranks and numbers in turn."""
    kind = pa.list_(pa.int64())
    if VECTOR not in batch.schema.names or batch[VECTOR].null_count == batch.num_rows:
        return np.full(batch.num_rows, NOTHING, np.int64), pa.nulls(batch.num_rows, kind)
    vector = batch[VECTOR]
    changes = pc.list_value_length(vector).fill_null(NOTHING).to_numpy(zero_copy_only=False)
    fields = vector.flatten()
    pairs = np.empty(2 * len(fields), np.int64)
    pairs[::2] = pc.struct_field(fields, "rank").to_numpy(zero_copy_only=False)
    pairs[1::2] = pc.struct_field(fields, "seq").to_numpy(zero_copy_only=False)
    ends = np.append(0, np.cumsum(2 * np.maximum(changes, 0))).astype(np.int32)
    return changes.astype(np.int64), pa.ListArray.from_arrays(pa.array(ends), pa.array(pairs), type=kind)


def _coded(names: pa.DictionaryArray, codes: Mapping[str, int]) -> Ints:
    """Numbers for some names, NOTHING for others."""
    table = [codes.get(name, NOTHING) for name in names.dictionary.to_pylist()]
    return np.array([*table, NOTHING], np.int64)[_indices(names)]


def _indices(names: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """-1 where there is no name."""
    indices = names.indices
    found: npt.NDArray[np.int32] = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    return found


def _filled(batch: pa.RecordBatch, name: str) -> Ints:
    if name not in batch.schema.names:  # of version 1
        return np.full(batch.num_rows, NOTHING, np.int64)
    column = batch[name]
    if column.null_count == len(column):
        return np.full(len(column), NOTHING, np.int64)
    found: Ints = (column.fill_null(NOTHING) if column.null_count else column).to_numpy()
    return found


def _members(known: _Members, names: pa.DictionaryArray, incarnations: Ints) -> Ints:
    """The numbers of members, by name and incarnation; NOTHING for others, and for no name."""
    listed = [*names.dictionary.to_pylist(), None]
    one = int(incarnations[0])
    if (incarnations == one).all():
        table = np.array([known.get((name, one), NOTHING) for name in listed], np.int64)
        return table[_indices(names)]
    distinct, places = np.unique(incarnations, return_inverse=True)
    pairs = np.array(
        [[known.get((name, each), NOTHING) for each in distinct.tolist()] for name in listed], np.int64
    )
    return pairs[_indices(names), places]


def member_number(numbers: Mapping[Who, int], run: str, member: MemberId | None) -> int:
    """The number of a member of a run, NOTHING for nobody."""
    return NOTHING if member is None else numbers.get((run, member), NOTHING)
