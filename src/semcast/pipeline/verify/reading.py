"""Rows about messages with numbers instead of names, batch by batch, straight from the files.

Spark deals out the row groups, and each task reads its own, column by column: that takes a fraction of the
time that single rows take through Spark to Python.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from semcast.history import RunInfo
from semcast.history.schema import SAFE, Kind
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.session import slots
from semcast.pipeline.verify.crcs import Ints
from semcast.pipeline.verify.folds import (
    DELIVERED,
    INDEX_BITS,
    NOTHING,
    SENT,
    SENT_SAFE,
    Batches,
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
_TASKS_A_CORE = 8

Fold = Callable[[Batches], Batches]
_Members = Mapping[tuple[str, int], int]
_Known = dict[tuple[str, str], dict[tuple[str, int], int]]
"""By run and group, the numbers of members by name and incarnation."""


def over_files(
    spark: SparkSession,
    files: Sequence[Path],
    runs: Mapping[str, RunInfo],
    numbers: Mapping[Who, int],
    fold: Fold,
    schema: str,
) -> DataFrame:
    """What `fold` makes of the batches of all row groups, whose columns are those of `Rows`."""
    groups = [(str(file), group) for file in files for group in range(_groups(file))]
    tasks = min(len(groups), _TASKS_A_CORE * slots(spark))
    dealt = small_frame(spark, {"file": TEXT, "group": WHOLE}, groups).repartition(max(1, tasks))
    known: _Known = {}
    for (name, member), number in numbers.items():
        seat = runs[name].run, runs[name].only.name
        known.setdefault(seat, {})[member.name, member.incarnation] = number

    def read(batches: Batches) -> Batches:
        return fold(_read(batches, known))

    return dealt.mapInArrow(read, schema)


def _groups(file: Path) -> int:
    with pq.ParquetFile(file) as parquet:
        return int(parquet.metadata.num_row_groups)


def _read(batches: Batches, known: _Known) -> Batches:
    for dealt in batches:
        for file, group in zip(*dealt.to_pydict().values(), strict=True):
            yield from _row_group(file, group, known)


def _row_group(file: str, group: int, known: _Known) -> Batches:
    columns = [*_NAMES, *_NUMBERS]
    with pq.ParquetFile(file, page_checksum_verification=True, read_dictionary=list(_NAMES)) as parquet:
        there = [name for name in columns if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(_BATCH, row_groups=[group], columns=there, use_threads=False):
            for part, members in _by_group(batch, known):
                rows = numbered(part, members)
                if rows is not None:
                    yield pa.RecordBatch.from_arrays(
                        [pa.array(column) for column in rows], names=list(Rows._fields)
                    )


def _by_group(batch: pa.RecordBatch, known: _Known) -> Iterator[tuple[pa.RecordBatch, _Members]]:
    """The rows of each group, with its members; a file is about one run."""
    run = batch["run"].dictionary[0].as_py()
    groups = batch["group"].dictionary.to_pylist()
    for group in groups:
        if (run, group) in known:
            part = batch if len(groups) == 1 else batch.filter(pc.equal(batch["group"], group))
            yield part, known[run, group]


def numbered(batch: pa.RecordBatch, members: _Members) -> Rows | None:
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
    return Rows(
        place=(who << INDEX_BITS) + _filled(batch, "index"),
        what=np.where(safe, SENT_SAFE, kinds),
        view=np.where(sent, _filled(batch, "view"), NOTHING),
        author=_members(members, batch["sender"], _filled(batch, "sender_incarnation")),
        first=first,
        last=first + _filled(batch, "count") - 1,
        at=_filled(batch, "at_ns"),
        order=np.where(sent, NOTHING, _filled(batch, "order")),
        size=_filled(batch, "bytes"),
        crc=_filled(batch, "crc"),
    )


def _coded(names: pa.DictionaryArray, codes: Mapping[str, int]) -> Ints:
    """Numbers for some names, NOTHING for others."""
    table = [codes.get(name, NOTHING) for name in names.dictionary.to_pylist()]
    return np.array([*table, NOTHING], np.int64)[_indices(names)]


def _indices(names: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """-1 where there is no name."""
    found: npt.NDArray[np.int32] = names.indices.fill_null(-1).to_numpy()
    return found


def _filled(batch: pa.RecordBatch, name: str) -> Ints:
    if name not in batch.schema.names:  # of version 1
        return np.full(batch.num_rows, NOTHING, np.int64)
    found: Ints = batch[name].fill_null(NOTHING).to_numpy()
    return found


def _members(known: _Members, names: pa.DictionaryArray, incarnations: Ints) -> Ints:
    """The numbers of members, by name and incarnation."""
    listed = names.dictionary.to_pylist()
    one = int(incarnations[0])
    if (incarnations == one).all():
        table = np.array([known.get((name, one), NOTHING) for name in listed], np.int64)
        return table[_indices(names)]
    distinct, places = np.unique(incarnations, return_inverse=True)
    pairs = np.array(
        [[known.get((name, each), NOTHING) for each in distinct.tolist()] for name in listed], np.int64
    )
    return pairs[_indices(names), places]
