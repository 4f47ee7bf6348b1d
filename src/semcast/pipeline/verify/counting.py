"""The first pass over histories: rows and messages of each process counted, row group by row group.

The fingerprint of a set of messages is the xor, and the sum, of h(seq) - h(seq + 1) over its messages. Of a
run of messages that is h(first) - h(last + 1), so it does not depend on how runs were cut, nor on any order.
Of rows that follow each other everything between cancels out: only first and last numbers are hashed.

Whether a row cannot be an event is looked up in footers, and in the few columns that are read anyway. Rows
that are in doubt are for Spark to look at closer (`events.malformed`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

from semcast.core.ids import MemberId
from semcast.history import RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.schema import CRC_MASK, KINDS, AnnotationKind, Kind
from semcast.history.versions import refusing_damage
from semcast.pipeline.verify.batches import RowGroup, over_row_groups, row_groups
from semcast.pipeline.verify.folds import Flags, Ints, changes, mixed

_BATCH = 1 << 17
_REQUIRED = tuple(field.name for field in SCHEMA if not field.nullable)
_NAMES = ("run", "group", "process", "kind", "sender")
_NUMBERS = ("incarnation", "index", "sender_incarnation", "seq", "count")
_VIEW = ("view", "members")
_LEAVES = {"view": "view", "members": "members.list.element.name", "annotation": "annotation.kind"}
"""Columns that are read whole only where there is something in them, and a leaf that is always read."""

_MESSAGES = (Kind.MULTICAST.value, Kind.DELIVER.value, Kind.PURGE.value)
_SUMMED = np.uint64((1 << 32) - 1)
"""The bits of a hash that are summed: few enough that no sum overflows."""

_FEW = 1 << 15

_Label = tuple[str, MemberId, str, MemberId | None]


class Total(NamedTuple):
    """What a process recorded of one kind about one sender."""

    run: str
    process: MemberId
    kind: str
    sender: MemberId | None
    rows: int
    messages: int
    xor: int
    sum: int
    latest: int
    """The highest number of a message."""
    begin: int
    """The lowest index of a row."""
    end: int
    """The highest."""
    trail: int
    """Over the kinds of a process, the xor of h(index) ^ h(index + 1) over its rows."""
    doubtful: bool
    """Whether there may be a row that cannot be an event, here or beside."""
    total: bool
    """Whether annotations, here or beside, speak of places in the total order."""
    odd: bool
    """Whether a message, here or beside, may replace others than earlier ones of its own sender."""

    @property
    def label(self) -> _Label:
        """What is counted."""
        return self[:4]

    @property
    def print(self) -> tuple[int, int, int]:
        """Which messages these rows are about."""
        return self.messages, self.xor, self.sum

    def and_also(self, other: "Total") -> "Total":
        """Both together."""
        return Total(
            *self.label,
            self.rows + other.rows,
            self.messages + other.messages,
            self.xor ^ other.xor,
            self.sum + other.sum,
            max(self.latest, other.latest),
            min(self.begin, other.begin),
            max(self.end, other.end),
            self.trail ^ other.trail,
            self.doubtful or other.doubtful,
            self.total or other.total,
            self.odd or other.odd,
        )


_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("process", pa.string()),
        ("incarnation", pa.int64()),
        ("kind", pa.string()),
        ("sender", pa.string()),
        ("sender_incarnation", pa.int64()),
        *((name, pa.int64()) for name in Total._fields[4:]),
    ]
)


def totals(
    spark: SparkSession, files: Sequence[Path], runs: Mapping[str, RunInfo], *, here: bool
) -> list[Total]:
    """Per run, process, kind and sender; `here` where there are so few rows that the driver counts them.

    `runs` has runs, and groups of those that have several, by their names.

    Raises:
        HistoryError: the driver found a damaged file.
    """
    several = frozenset(info.run for name, info in runs.items() if name != info.run)
    if here:
        return _united(_counted(row_groups(files), several))

    def count(groups: Iterator[RowGroup]) -> Iterator[pa.RecordBatch]:
        rows = [_flat(each) for each in _united(_counted(groups, several))]
        columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)],
            schema=_SCHEMA,
        )

    return _united(map(_total, over_row_groups(spark, files, count, _SCHEMA).collect()))


def _flat(total: Total) -> tuple[object, ...]:
    """As a row between tasks and the driver."""
    run, process, kind, sender = total.label
    author = (None, None) if sender is None else (sender.name, sender.incarnation)
    return run, process.name, process.incarnation, kind, *author, *map(int, total[4:])


def _total(row: Row) -> Total:
    run, process, life, kind, sender, author, *numbers, doubtful, total, odd = row
    about = None if sender is None else MemberId(sender, author)
    who, flags = MemberId(process, life), map(bool, (doubtful, total, odd))
    return Total._make((run, who, kind, about, *numbers, *flags))


def trail_of(rows: int) -> int:
    """The trail of so many rows that are numbered 0, 1, 2, ..."""
    ends = mixed(np.array([0, rows], np.int64)).view(np.int64)
    return int(ends[0] ^ ends[1])


def _united(found: Iterable[Total]) -> list[Total]:
    """One for each label, in an order that does not depend on theirs."""
    together: dict[_Label, Total] = {}
    for each in found:
        known = together.get(each.label)
        together[each.label] = each if known is None else known.and_also(each)
    return sorted(together.values(), key=lambda each: tuple(map(str, each.label)))


def _counted(groups: Iterable[RowGroup], several: frozenset[str]) -> Iterator[Total]:
    for file, group in groups:
        with refusing_damage(Path(file)):
            yield from _row_group(file, group, several)


def _row_group(file: str | Path, group: int, several: frozenset[str]) -> Iterator[Total]:
    with pq.ParquetFile(file, page_checksum_verification=True, read_dictionary=list(_NAMES)) as parquet:
        footer = parquet.metadata.row_group(group)
        leaves = {footer.column(n).path_in_schema: footer.column(n) for n in range(footer.num_columns)}
        doubtful = not _sound(leaves)
        said = {path.partition(".")[0] for path, leaf in leaves.items() if _says(leaf)}
        empty = [name for name in _LEAVES if name not in said]
        columns = [*_NAMES, *_NUMBERS, *(_LEAVES[name] if name in empty else name for name in _LEAVES)]
        for batch in parquet.iter_batches(_BATCH, row_groups=[group], columns=columns, use_threads=False):
            if batch.num_rows:
                blank = any(batch[name].null_count < batch.num_rows for name in empty)
                told = batch.drop_columns(empty)
                yield from _of_batch(told, several, doubtful=doubtful or blank)


def _sound(leaves: Mapping[str, pq.ColumnChunkMetaData]) -> bool:
    """Whether the footer shows that no value is missing, and that sizes and CRCs can be."""
    for name in _REQUIRED:
        known = leaves[name].statistics
        if known is None or not known.has_null_count or known.null_count:
            return False
    return _between(leaves["bytes"], 0, None) and (
        "crc" not in leaves or _between(leaves["crc"], 0, CRC_MASK)
    )


def _between(leaf: pq.ColumnChunkMetaData, least: int, most: int | None) -> bool:
    if not _says(leaf):
        return True
    known = leaf.statistics
    return (
        known is not None and known.has_min_max and known.min >= least and (most is None or known.max <= most)
    )


def _says(leaf: pq.ColumnChunkMetaData) -> bool:
    """Whether there may be any value."""
    return leaf.statistics is None or leaf.statistics.num_values > 0


def _of_batch(batch: pa.RecordBatch, several: frozenset[str], *, doubtful: bool) -> Iterator[Total]:
    doubtful = doubtful or any(batch[name].null_count for name in (*_NAMES[:4], *_NUMBERS))
    run = batch["run"].dictionary[0].as_py()
    if run not in several:
        yield from _of_group(batch, run, doubtful=doubtful)
        return
    for name in batch["group"].dictionary.to_pylist():
        part = batch.filter(pc.equal(batch["group"], name))
        if part.num_rows:
            yield from _of_group(part, f"{run}[{name}]", doubtful=doubtful)


def _of_group(batch: pa.RecordBatch, run: str, *, doubtful: bool) -> Iterator[Total]:
    kinds = _Names(batch["kind"])
    index, seq, count = (_number(batch, name) for name in ("index", "seq", "count"))
    doubtful = doubtful or _strange(batch, kinds, seq, count)
    total, odd = _about_order(batch, kinds)
    process, sender = _Names(batch["process"]), _Names(batch["sender"])
    life, author = _Distinct(_number(batch, "incarnation")), _Distinct(_number(batch, "sender_incarnation"))
    lives = process.code * life.size + life.code
    code = ((lives * kinds.size + kinds.code) * sender.size + sender.code) * author.size + author.code
    trails = _trails(lives, index)
    order = _sorted(code, process.size * life.size * kinds.size * sender.size * author.size)
    code, index, seq, beyond = code[order], index[order], seq[order], (seq + count)[order]
    new = changes(code)
    begins = np.flatnonzero(new)
    breaks = new.copy()
    breaks[1:] |= seq[1:] != beyond[:-1]
    first, last = mixed(seq[breaks]), mixed(beyond[np.append(breaks[1:], True)])
    of_breaks = np.flatnonzero(new[breaks])
    sums = np.add.reduceat((first & _SUMMED).astype(np.int64) - (last & _SUMMED).astype(np.int64), of_breaks)
    numbers = (
        np.diff(np.append(begins, len(order))),
        np.add.reduceat(beyond - seq, begins),
        np.bitwise_xor.reduceat(first ^ last, of_breaks).view(np.int64),
        sums,
        np.maximum.reduceat(beyond, begins) - 1,
        np.minimum.reduceat(index, begins),
        np.maximum.reduceat(index, begins),
    )
    rows = zip(*(each.tolist() for each in numbers), strict=True)
    for place, row in zip(order[begins].tolist(), rows, strict=True):
        who = MemberId(process.at(place) or "", life.at(place))
        name = sender.at(place)
        about = None if name is None else MemberId(name, author.at(place))
        trail = trails.pop(int(lives[place]), 0)
        yield Total._make((run, who, kinds.at(place) or "", about, *row, trail, doubtful, total, odd))


def _trails(lives: Ints, index: Ints) -> dict[int, int]:
    """Of each process the trail of all of its rows."""
    if lives[0] != lives[-1] or (lives != lives[0]).any():
        order = np.argsort(lives, kind="stable")
        lives, index = lives[order], index[order]
    new = changes(lives)
    breaks = new.copy()
    breaks[1:] |= index[1:] != index[:-1] + 1
    ends = np.append(breaks[1:], True)
    hashes = mixed(index[breaks]) ^ mixed(index[ends] + 1)
    trails = np.bitwise_xor.reduceat(hashes, np.flatnonzero(new[breaks])).view(np.int64)
    return dict(zip(lives[new].tolist(), trails.tolist(), strict=True))


def _sorted(code: Ints, size: int) -> Ints:
    if size <= _FEW:
        return np.argsort(code.astype(np.int16), kind="stable")
    return np.argsort(code, kind="stable")


class _Names:
    """A column of names as numbers from 0, the last for no name."""

    def __init__(self, column: pa.DictionaryArray) -> None:
        self.names: list[str | None] = [*column.dictionary.to_pylist(), None]
        self.size = len(self.names)
        indices = column.indices
        filled = indices.fill_null(self.size - 1) if indices.null_count else indices
        self.code: Ints = filled.to_numpy().astype(np.int64)

    def at(self, row: int) -> str | None:
        return self.names[int(self.code[row])]

    def among(self, *names: str) -> Flags:
        """Which rows have one of these."""
        return np.array([name in names for name in self.names], np.bool_)[self.code]


class _Distinct:
    """A column of numbers by the place of each among those that there are."""

    def __init__(self, column: Ints) -> None:
        if (column == column[0]).all():
            self.values, self.code = column[:1], np.zeros(len(column), np.int64)
        else:
            self.values, self.code = np.unique(column, return_inverse=True)
        self.size = len(self.values)

    def at(self, row: int) -> int:
        return int(self.values[self.code[row]])


def _number(batch: pa.RecordBatch, name: str) -> Ints:
    column = batch[name]
    found: Ints = (column.fill_null(0) if column.null_count else column).to_numpy()
    return found


def _strange(batch: pa.RecordBatch, kinds: _Names, seq: Ints, count: Ints) -> bool:
    """Whether a row may be none that a recorder writes, whatever else is read of it."""
    if any(name is not None and name not in KINDS for name in kinds.names):
        return True
    message = kinds.among(*_MESSAGES)
    if message.any() and ((seq[message] < 1).any() or (count[message] < 1).any()):
        return True
    nobody = batch["sender"].is_null().to_numpy(zero_copy_only=False) if batch["sender"].null_count else None
    if nobody is not None and (nobody & (message | kinds.among(Kind.APPLY.value))).any():
        return True
    if (count[kinds.among(Kind.BUFFER.value)] < 0).any():
        return True
    sent = kinds.among(Kind.MULTICAST.value)
    return (
        (sent.any() and not _by_its_sender(batch, sent))
        or not _whole_views(batch, kinds.among(Kind.VIEW.value, Kind.TRANSITIONAL.value))
        or not _readable(batch, kinds, count)
    )


def _by_its_sender(batch: pa.RecordBatch, sent: Flags) -> bool:
    same_life = _number(batch, "incarnation")[sent] == _number(batch, "sender_incarnation")[sent]
    process, sender = _Names(batch["process"]), _Names(batch["sender"])
    place = {name: number for number, name in enumerate(process.names)}
    same = np.array([place.get(name, -1) for name in sender.names], np.int64)[sender.code[sent]]
    return bool((same_life & (same == process.code[sent])).all())


def _whole_views(batch: pa.RecordBatch, views: Flags) -> bool:
    """Whether views have a number, and members with all that is to be known of them."""
    for name in _VIEW:
        if name in batch.schema.names:
            if batch[name].null_count and batch[name].is_null().to_numpy(zero_copy_only=False)[views].any():
                return False
        elif views.any():
            return False
    if "members" not in batch.schema.names:
        return True
    return _complete(batch["members"].flatten(), "name", "incarnation")


def _complete(structs: pa.StructArray, *fields: str) -> bool:
    return not structs.null_count and not any(pc.struct_field(structs, name).null_count for name in fields)


def _readable(batch: pa.RecordBatch, kinds: _Names, count: Ints) -> bool:
    """Whether annotations say what they must, and speak for one message."""
    states = kinds.among(Kind.APPLY.value)
    if "annotation" not in batch.schema.names:
        return not states.any()
    there = batch["annotation"].is_valid().to_numpy(zero_copy_only=False)
    if (states & ~there).any():
        return False
    if (there & kinds.among(Kind.MULTICAST.value, Kind.DELIVER.value) & (count > 1)).any():
        return False
    notes = batch["annotation"].filter(pa.array(there))
    said = pc.struct_field(notes, "kind").dictionary_encode()
    if said.null_count:
        return False
    as_kind, states = _Names(said), states[there]
    items = as_kind.among(AnnotationKind.ITEM.value)
    if (states & ~items).any():
        return False
    purges = kinds.among(Kind.PURGE.value)[there]
    if (purges != as_kind.among(AnnotationKind.BY.value)).any():
        return False
    lists = as_kind.among(AnnotationKind.ENUMERATION.value)
    bitmaps = as_kind.among(AnnotationKind.K_ENUMERATION.value)
    if not (items | purges | lists | bitmaps).all():
        return False
    ids = pc.struct_field(notes, "ids")
    lengths = pc.list_value_length(ids).fill_null(-1).to_numpy(zero_copy_only=False)
    if (lengths[lists] < 0).any() or (lengths[purges] != 1).any():
        return False
    return (
        _filled(notes, items, "item")
        and _filled(notes, bitmaps, "base", "bitmap", "total")
        and _complete(ids.flatten(), "sender", "incarnation", "seq")
    )


def _filled(notes: pa.StructArray, rows: Flags, *fields: str) -> bool:
    """Whether these rows have something in each of the fields."""
    return not any(
        pc.struct_field(notes, name).is_null().to_numpy(zero_copy_only=False)[rows].any() for name in fields
    )


def _about_order(batch: pa.RecordBatch, kinds: _Names) -> tuple[bool, bool]:
    """Whether annotations speak of the total order; whether they may name others than earlier ones."""
    if "annotation" not in batch.schema.names:
        return False, False
    total = bool(pc.any(pc.struct_field(batch["annotation"], "total")).as_py())
    sent = batch.filter(pa.array(kinds.among(Kind.MULTICAST.value)))
    ids = pc.struct_field(sent["annotation"], "ids")
    named = ids.flatten()
    if total or not len(named):
        return total, total
    rows = sent.take(pc.list_parent_indices(ids))
    others = [
        pc.not_equal(pc.struct_field(named, "sender"), rows["sender"].cast(pa.string())),
        pc.not_equal(pc.struct_field(named, "incarnation"), rows["sender_incarnation"]),
        pc.greater(pc.struct_field(named, "seq"), rows["seq"]),
    ]
    return total, any(bool(pc.any(each).as_py()) for each in others)
