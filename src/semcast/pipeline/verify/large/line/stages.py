"""From windows to paths: two shuffles of arrays, by message and then by process."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from semcast.pipeline.verify.large.line.paths import (
    STRETCH_BITS,
    Blocks,
    blocks_of,
    pack_items,
    unpack_items,
)
from semcast.pipeline.verify.large.line.places import ROW_BITS, Places
from semcast.pipeline.verify.large.line.ranks import Window
from semcast.pipeline.verify.large.line.windows import unpack

_STRETCHES = "who long, stretch long, size long, steps binary"
_ARROW = pa.schema(
    [("who", pa.int64()), ("stretch", pa.int64()), ("size", pa.int64()), ("steps", pa.binary())]
)
_FIELDS = 4

Tell = Callable[[Window], Iterable[tuple[int, ...]]]
"""What is to be said of a window, in rows of numbers."""

Stretch = tuple[int, int, int, bytes]
"""Process, which of its stretches, how many, and all of them."""


def items(windows: DataFrame, places: Places) -> DataFrame:
    """The steps of all processes with their ranks: (who, stretch, size, steps)."""

    def rank(table: pa.Table) -> pa.Table:
        author, window = table.column("author")[0].as_py(), table.column("window")[0].as_py()
        return _table(ranked(author, window, table.column("rows").to_pylist(), places))

    return windows.groupBy("author", "window").applyInArrow(rank, _STRETCHES).select(*_ARROW.names)


def blocks(items: DataFrame, places: Places) -> DataFrame:
    """The paths of all processes, in blocks: (who, stretch, size, steps)."""

    def fold(table: pa.Table) -> pa.Table:
        who, stretch = table.column("who")[0].as_py(), table.column("stretch")[0].as_py()
        return _table([folded(who, stretch, table.column("steps").to_pylist(), places)])

    return items.groupBy("who", "stretch").applyInArrow(fold, _STRETCHES).select(*_ARROW.names)


def ranked(author: int, window: int, rows: list[bytes], places: Places) -> Iterator[Stretch]:
    """The steps that are about one window."""
    found = Window(author, window, unpack(rows), places).items()
    stretch = found.spot >> (ROW_BITS + STRETCH_BITS)
    order = np.lexsort((stretch, found.who))
    found, stretch = found.only(order), stretch[order]
    packed = pack_items(found)
    fresh = np.flatnonzero((np.diff(found.who) != 0) | (np.diff(stretch) != 0)) + 1
    bounds = [0, *fresh.tolist(), len(stretch)] if len(stretch) else []
    for low, high in pairwise(bounds):
        yield int(found.who[low]), int(stretch[low]), high - low, packed[:, low:high].tobytes()


def folded(who: int, stretch: int, steps: list[bytes], places: Places) -> Stretch:
    """The blocks of one stretch."""
    arrays = [np.frombuffer(some, np.int64).reshape(_FIELDS, -1) for some in steps]
    found = blocks_of(who, unpack_items(who, np.concatenate(arrays, axis=1)), places)
    return who, stretch, len(found.spot), np.stack(found).tobytes()


def by_process(stretches: Iterable[Stretch]) -> dict[int, Blocks]:
    """All blocks of each process, in the order of its path."""
    arrays: dict[int, list[np.ndarray[tuple[int, int], np.dtype[np.int64]]]] = defaultdict(list)
    for who, _, size, steps in sorted(stretches, key=lambda each: each[:2]):
        arrays[who].append(np.frombuffer(steps, np.int64).reshape(len(Blocks._fields), size))
    return {who: Blocks(*np.concatenate(some, axis=1)) for who, some in arrays.items()}


def _table(rows: Iterable[Stretch]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(_ARROW)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, _ARROW.types, strict=True)], _ARROW
    )


def told(windows: DataFrame, places: Places, tell: Tell, *columns: str) -> DataFrame:
    """What is to be said of each window, in rows of numbers."""

    def rows(table: pa.Table) -> pa.Table:
        author, window = table.column("author")[0].as_py(), table.column("window")[0].as_py()
        found = list(tell(Window(author, window, unpack(table.column("rows").to_pylist()), places)))
        arrays = zip(*found, strict=True) if found else ((),) * len(columns)
        return pa.table([pa.array(array, pa.int64()) for array in arrays], list(columns))

    schema = ", ".join(f"{name} long" for name in columns)
    return windows.groupBy("author", "window").applyInArrow(rows, schema).select(*columns)
