"""Strips: the rows of one process in one view, in order, some thousands at a time, as arrays.

They are put together once, and everything else goes over them: what is shuffled is arrays, not rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from semcast.pipeline.verify.folds import INDEX, INDEX_BITS, SENT, Rows
from semcast.pipeline.verify.large.causal.again import Again
from semcast.pipeline.verify.large.causal.arrays import SEQ_BITS, Ints, coded, groups, overlaps
from semcast.pipeline.verify.large.causal.ground import Ground
from semcast.pipeline.verify.scene import Scene

_MANY = 400_000
"""So many rows are divided by strips at a time: there may be few of each strip in a batch."""

PART = pa.schema([("stay", pa.int64()), ("chunk", pa.int64()), ("rows", pa.binary())])
STRIP = pa.schema(
    [
        ("stay", pa.int64()),
        ("chunk", pa.int64()),
        ("sent", pa.int64()),
        ("highest", pa.binary()),
        ("rows", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows in order."""

    index: Ints
    seat: Ints
    """Of the author of what is delivered; of what is sent, its complement, which is below 0."""

    first: Ints
    last: Ints

    @classmethod
    def of(cls, rows: bytes | pa.Buffer) -> "Strip":
        """From the bytes of a table."""
        return cls(*np.frombuffer(rows, np.int64).reshape(4, -1))

    @property
    def sent(self) -> Ints:
        """Which rows send something."""
        return np.flatnonzero(self.seat < 0)

    @property
    def delivered(self) -> Ints:
        """Which rows deliver something."""
        return np.flatnonzero(self.seat >= 0)


def strips_of(scene: Scene, ground: Ground, again: Again) -> DataFrame:
    """All strips: (stay, chunk, sent, highest, rows).

    `sent` is the first number that was sent in the strip, null if nothing was; `highest` are seats, and the
    highest number of each that was delivered in the strip.
    """
    parts = scene.over_messages(_dividing(ground, again), "stay long, chunk long, rows binary")
    schema = "stay long, chunk long, sent long, highest binary, rows binary"
    return parts.groupBy("stay", "chunk").applyInArrow(joined, schema).select(*STRIP.names)


def _dividing(ground: Ground, again: Again) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def divide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for columns in _gathered(batches):
            parts = list(divided(ground, again, *columns))
            yield pa.RecordBatch.from_arrays(
                [pa.array([part[n] for part in parts], field.type) for n, field in enumerate(PART)],
                schema=PART,
            )

    return divide


def divided(ground: Ground, again: Again, *columns: Ints) -> Iterator[tuple[int, int, bytes]]:
    """What counts of rows (place, sent, author, first, last), by stays and chunks."""
    stay, index, seat, first, last = inside(ground, again, *columns)
    chunk = index >> ground.bits[ground.scope[stay]]
    order = np.lexsort((chunk, stay))
    stay, chunk = stay[order], chunk[order]
    table = np.stack((index, seat, first, last))[:, order]
    for part in groups(stay, chunk):
        yield int(stay[part.start]), int(chunk[part.start]), table[:, part].tobytes()


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[Ints]]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _MANY:
            yield _columns(held)
            held = []
    if held:
        yield _columns(held)


def _columns(batches: list[pa.RecordBatch]) -> list[Ints]:
    rows = Rows(*(column.to_numpy() for column in pa.Table.from_batches(batches).columns))
    return [rows.place, np.minimum(rows.what, SENT), rows.author, rows.first, rows.last]


def inside(
    ground: Ground, again: Again, place: Ints, sent: Ints, author: Ints, first: Ints, last: Ints
) -> tuple[Ints, ...]:
    """What counts of rows: (stay, index, seat, first, last), where the seat is as in a strip."""
    stay = ground.stay[np.searchsorted(ground.starts, place, side="right") - 1]
    here = (stay >= 0) & (ground.scope[stay] >= 0)
    stay, place, sent, author = stay[here], place[here], sent[here], author[here]
    first, last = first[here], last[here]
    rank = np.where(sent > 0, -1, again.rank(place >> INDEX_BITS, author))
    twice = np.flatnonzero(rank >= 0)
    if len(twice):
        index = place & INDEX
        row, low, high = again.pieces(rank[twice], first[twice], last[twice], index[twice])
        rows = np.concatenate((np.flatnonzero(rank < 0), twice[row]))
        first = np.concatenate((first[rank < 0], low))
        last = np.concatenate((last[rank < 0], high))
        stay, place, sent, author = stay[rows], place[rows], sent[rows], author[rows]
    low, high = coded(author, first), coded(author, last)
    row, span = overlaps(low, high, ground.sent.first, ground.sent.last)
    same = ground.scope[stay[row]] == ground.sent.scope[span]
    row, span = row[same], span[same]
    mask = (1 << SEQ_BITS) - 1
    seat = ground.sent.seat[span]
    return (
        stay[row],
        place[row] & mask,
        np.where(sent[row] > 0, ~seat, seat),
        np.maximum(low[row], ground.sent.first[span]) & mask,
        np.minimum(high[row], ground.sent.last[span]) & mask,
    )


def joined(parts: pa.Table) -> pa.Table:
    """A strip from its parts (stay, chunk, rows)."""
    tables = [np.frombuffer(rows.as_buffer(), np.int64).reshape(4, -1) for rows in parts["rows"]]
    table = np.concatenate(tables, axis=1)
    table = table[:, np.lexsort((table[2], table[0]))]
    _, seat, first, last = table
    sends = first[seat < 0]
    highest = np.zeros(seat.max(initial=-1) + 1, np.int64)
    np.maximum.at(highest, seat[seat >= 0], last[seat >= 0])
    seats = np.flatnonzero(highest)
    row = {
        "stay": parts["stay"][0].as_py(),
        "chunk": parts["chunk"][0].as_py(),
        "sent": int(sends.min()) if len(sends) else None,
        "highest": np.stack((seats, highest[seats])).tobytes(),
        "rows": table.tobytes(),
    }
    return pa.Table.from_pylist([row], schema=STRIP)
