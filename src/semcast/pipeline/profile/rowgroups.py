"""Row groups of local Parquet files, read, checked and folded where they are, without Spark's reader.

Only for files whose columns have the types of the schema, or ones that turn into them in one way; and only as
long as every row is good. Everything else is left to Spark's reader (`readers.py`), which also words what is
wrong with a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semcast.pipeline.profile.partial import UPDATE, Cut, Ints, Reals, Segment, SegmentRows, fold
from semcast.pipeline.profile.scan import (
    IN_PLACE,
    TASK_BITS,
    Mapper,
    UnequalPassesError,
    constant,
    kind_places,
)

_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD"}
_TEXTS = ("stream", "key", "kind", "group")
_EVENT = 3


@dataclass(frozen=True, slots=True)
class RowGroupSpan:
    """Some row groups of a file that follow each other."""

    path: str
    stream: str
    """The stream of the rows if they name none."""

    groups: tuple[int, ...]
    before: int
    """How many rows of the file stand before them."""

    rows: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself."""

    path: str
    stream: str
    rows: tuple[int, ...]
    """Of each row group."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Files that can be read here, and the column that plays each role in all of them."""

    files: tuple[Footer, ...]
    roles: dict[str, str]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(sum(file.rows) for file in self.files)


class UnreadableError(Exception):
    """A file that is no Parquet file, or a damaged one."""


def row_groups_of(
    files: Sequence[tuple[str, str]], named: Mapping[str, str | None], required: Sequence[str]
) -> RowGroups | None:
    """The row groups of some files, or None if Spark has to read one of them.

    Args:
        files: each file, and the stream that its rows belong to if they do not say it.
        named: for each role the name of its column; None stands for the name of the role, if there is one.
        required: the roles that must be played.
    """
    found, all_roles = [], []
    for path, stream in files:
        try:
            with pq.ParquetFile(path) as file:
                roles = _roles(file, named, required)
                if roles is None:
                    return None
                all_roles.append(roles)
                sizes = (file.metadata.row_group(number).num_rows for number in range(file.num_row_groups))
                found.append(Footer(path, stream, tuple(sizes)))
        except (OSError, pa.ArrowException) as error:
            raise UnreadableError(f"{path}: cannot be read: {error}") from error
    return (
        RowGroups(tuple(found), all_roles[0]) if all(roles == all_roles[0] for roles in all_roles) else None
    )


def _roles(
    file: pq.ParquetFile, named: Mapping[str, str | None], required: Sequence[str]
) -> dict[str, str] | None:
    schema, metadata = file.schema_arrow, file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    codecs = {group.column(at).compression for group in groups for at in range(group.num_columns)}
    wanted = {role: name or role for role, name in named.items() if name is not None or role != "group"}
    roles = {role: name for role, name in wanted.items() if schema.get_field_index(name) >= 0}
    missing = [role for role in wanted if role not in roles and (named[role] is not None or role in required)]
    plain = all(_plain(role, schema.field(name).type) for role, name in roles.items())
    return roles if plain and not missing and codecs <= _CODECS else None


def _plain(role: str, kind: pa.DataType) -> bool:
    """Whether values of this type mean here what they mean to Spark's casts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    small = pa.types.is_signed_integer(kind) or kind in (pa.uint8(), pa.uint16(), pa.uint32())
    if role in _TEXTS:
        return pa.types.is_string(kind) or small
    if role == "ts":
        return small or kind in (pa.float32(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
    return small


def _tasks(files: Sequence[Footer], most: int) -> list[list[RowGroupSpan]]:
    """Work for tasks of about so many rows; a stretch has no more unless a single row group has."""
    tasks: list[list[RowGroupSpan]] = []
    room = 0
    for stretch in (stretch for footer in files for stretch in _stretches(footer, most)):
        if stretch.rows > room or not tasks:
            tasks.append([])
            room = most
        tasks[-1].append(stretch)
        room -= stretch.rows
    return tasks


def _stretches(footer: Footer, most: int) -> Iterator[RowGroupSpan]:
    held: list[int] = []
    before = rows = 0
    for number, size in enumerate(footer.rows):
        if held and rows + size > most:
            yield RowGroupSpan(footer.path, footer.stream, tuple(held), before, rows)
            held, before, rows = [], before + rows, 0
        held.append(number)
        rows += size
    if rows:
        yield RowGroupSpan(footer.path, footer.stream, tuple(held), before, rows)


def reading(row_groups: RowGroups, cut: Cut, first: int = 0) -> tuple[int, Mapper]:
    """The number of tasks, and a function over batches of their numbers: the `PARTIAL` of their rows.

    Segments are numbered as if there were tasks for other files before: `first` of them.
    """
    tasks = _tasks(row_groups.files, cut.rows)
    return len(tasks), partial(_read, tasks=tasks, roles=row_groups.roles, cut=cut, first=first)


def _read(
    batches: Iterator[pa.RecordBatch],
    *,
    tasks: Sequence[Sequence[RowGroupSpan]],
    roles: Mapping[str, str],
    cut: Cut,
    first: int,
) -> Iterator[pa.RecordBatch]:
    for task in (task for batch in batches for task in batch["id"].to_pylist()):
        number = IN_PLACE | (first + task) << TASK_BITS
        for stretch in tasks[task]:
            start = stretch.before
            for table in _tables(stretch, roles, cut.rows):
                bad, rows = _checked(table, roles, stretch.stream, start)
                segment = Segment(
                    number, stretch.path, 0, start, rows=len(table), bad=bad, numbered="seq" in roles
                )
                yield from fold(rows, cut, segment)
                number, start = number + 1, start + len(table)
            if start != stretch.before + stretch.rows:
                raise UnequalPassesError(
                    f"{stretch.path}: {stretch.rows} rows were there at first, then {start - stretch.before}"
                )


def _tables(stretch: RowGroupSpan, roles: Mapping[str, str], most: int) -> Iterator[pa.Table]:
    texts = [name for role, name in roles.items() if role in _TEXTS]
    columns = list(dict.fromkeys(roles.values()))
    try:
        with pq.ParquetFile(stretch.path, read_dictionary=texts, page_checksum_verification=True) as file:
            if stretch.rows <= most:
                yield file.read_row_groups(list(stretch.groups), columns, use_threads=False)
                return
            for batch in file.iter_batches(most, list(stretch.groups), columns, use_threads=False):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(f"{stretch.path}: cannot be read: {error}") from error


def _checked(table: pa.Table, roles: Mapping[str, str], source: str, start: int) -> tuple[int, SegmentRows]:
    """How many rows are not good, and the rows if all are."""
    cells = {role: table[name] for role, name in roles.items()}
    size = len(table)
    key, key_missing = _text(cells["key"])
    stream, no_stream = _text(cells["stream"]) if "stream" in cells else (constant(source, size), None)
    seq = _whole(cells["seq"], -1) if "seq" in cells else start + np.arange(size)
    ts = _seconds(cells["ts"])
    length = _whole(cells["bytes"], 0) if "bytes" in cells else np.zeros(size, np.int64)
    kind = _kinds(cells.get("kind"), key_missing)
    bad = (seq < 0) | ~np.isfinite(ts) | (length < 0) | (kind < 0) | (kind == UPDATE) & key_missing
    for missing in (no_stream, _text(cells["group"])[1] if "group" in cells else None):
        if missing is not None:
            bad |= missing
    count = int(np.count_nonzero(bad))
    if count:
        nothing = pa.array([], pa.string()).dictionary_encode()
        empty = np.zeros(0, np.int64)
        return count, SegmentRows(nothing, empty, empty.astype(np.float64), nothing, empty, empty)
    return 0, SegmentRows(_used(stream), seq, ts, key, kind, length)


def _text(column: pa.ChunkedArray) -> tuple[pa.DictionaryArray, Ints]:
    """As texts, and where there is none."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if not pa.types.is_string(array.dictionary.type):
        array = array.cast(pa.string()).dictionary_encode()
    empty = pc.index(array.dictionary, "").as_py()
    codes = array.indices.fill_null(empty).to_numpy()
    return array, codes == empty


def _used(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """With only such values in the dictionary as are in use."""
    used = np.bincount(array.indices.to_numpy(), minlength=len(array.dictionary)) > 0
    return array if used.all() else array.cast(pa.string()).dictionary_encode()


def _whole(column: pa.ChunkedArray, missing: int) -> Ints:
    found: Ints = _filled(column.cast(pa.int64()), missing).to_numpy()
    return found


def _seconds(column: pa.ChunkedArray) -> Reals:
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.int64()).cast(pa.float64(), safe=False)
        return np.asarray(micros.fill_null(np.nan).to_numpy() / 1e6)
    found: Reals = _filled(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return found


def _filled(column: pa.ChunkedArray, missing: float) -> pa.ChunkedArray:
    return column.fill_null(missing) if column.null_count else column


def _kinds(column: pa.ChunkedArray | None, key_missing: Ints) -> Ints:
    """Places in `KINDS`; where none is given, an update if there is a key; -1 where it is no kind."""
    default = np.where(key_missing, _EVENT, UPDATE)
    if column is None:
        return default
    array, missing = _text(column)
    given = np.append(kind_places(array.dictionary), -1)[array.indices.fill_null(-1).to_numpy()]
    return np.where(missing, default, given) if missing.any() else given
