"""What was sent and delivered in each piece of each process, as spans: one pass over all rows.

A fold over each batch, where it lies, finds the piece of every row and joins spans that follow each other.
Nothing is left out or counted twice: repeated deliveries are still there twice. What else is to be known of a
piece, where its first delivery is and when its last step was, comes along.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.history.schema import SAFE, Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.stays import Piece, Who

INDEX_BITS = 40
_MOVES = ("piece", "what", "view", "author", "first", "last")
_NO_VIEW = -1
_NEVER = (1 << INDEX_BITS) - 1
DELIVERED, SENT, SENT_SAFE, STEPS = 0, 1, 2, 3

_Batches = Iterator[pa.RecordBatch]
_Ints = npt.NDArray[np.int64]


def people_table(spark: SparkSession, people: Sequence[Who]) -> DataFrame:
    """Processes and senders with their numbers: (run, member, who)."""
    rows = [(run, (who.name, who.incarnation), number) for number, (run, who) in enumerate(people)]
    return small_frame(spark, {"run": TEXT, "member": MEMBER, "who": WHOLE}, rows)


def moves(
    events: DataFrame, people: DataFrame, numbers: dict[Who, int], pieces: Iterable[Piece]
) -> DataFrame:
    """Spans of messages: (piece, what, view, author, first, last), numbers throughout.

    `what` is DELIVERED or SENT; what was sent as safe is there once more, as SENT_SAFE, so that spans of
    sent messages are long. `view` is about sending only. For `steps` there are rows STEPS.
    """
    starts = np.array([(numbers[piece.who] << INDEX_BITS) + piece.first for piece in pieces], np.int64)
    rows = of_kind(events, Kind.MULTICAST, Kind.DELIVER)
    sent = fn.col("kind") == Kind.MULTICAST.value
    place = fn.shiftleft(fn.col("who"), INDEX_BITS) + fn.col("index")
    numbered = with_author(with_number(rows, people, "process"), people).select(
        place.alias("place"),
        fn.when(sent & (fn.col("level") == SAFE), SENT_SAFE)
        .when(sent, SENT)
        .otherwise(DELIVERED)
        .cast("long")
        .alias("what"),
        fn.when(sent, fn.coalesce("view", fn.lit(_NO_VIEW))).otherwise(_NO_VIEW).cast("long").alias("view"),
        "author",
        fn.col("seq").alias("first"),
        "last",
        "at_ns",
    )
    schema = ", ".join(f"{name} long" for name in _MOVES)
    return numbered.mapInArrow(_folding(starts), schema).select(*_MOVES)


def steps(moves: DataFrame) -> DataFrame:
    """Of each piece the index of its first delivery, if any, and its latest time: (piece, first, at)."""
    return (
        moves.where(fn.col("what") == STEPS)
        .groupBy("piece")
        .agg(fn.min("first").alias("first"), fn.max("last").alias("at"))
        .select("piece", fn.when(fn.col("first") < _NEVER, fn.col("first")).alias("first"), "at")
    )


def with_number(rows: DataFrame, people: DataFrame, column: str) -> DataFrame:
    """With `who`, the number of the member in a column."""
    return rows.join(fn.broadcast(people.withColumnRenamed("member", column)), ["run", column])


def with_author(rows: DataFrame, people: DataFrame) -> DataFrame:
    """With `author`, the number of the sender."""
    authors = people.select("run", fn.col("member").alias("sender"), fn.col("who").alias("author"))
    return rows.join(fn.broadcast(authors), ["run", "sender"])


def _folding(starts: _Ints) -> Callable[[_Batches], _Batches]:
    def fold(batches: _Batches) -> _Batches:
        for batch in batches:
            if batch.num_rows:
                place, what, *rest, at = (column.to_numpy() for column in batch.columns)
                piece = np.searchsorted(starts, place, side="right") - 1
                yield _spans([piece, np.minimum(what, SENT), *rest])
                yield _steps(piece, what, place & _NEVER, at)
                safe = what == SENT_SAFE
                if safe.any():
                    yield _spans([column[safe] for column in (piece, what, *rest)])

    return fold


def _steps(piece: _Ints, what: _Ints, index: _Ints, at: _Ints) -> pa.RecordBatch:
    order = np.argsort(piece, kind="stable")
    pieces, begins = np.unique(piece[order], return_index=True)
    delivered = np.where(what == DELIVERED, index, _NEVER)
    first = np.minimum.reduceat(delivered[order], begins)
    latest = np.maximum.reduceat(at[order], begins)
    nothing = np.zeros_like(pieces)
    columns = (pieces, nothing + STEPS, nothing, nothing, first, latest)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(_MOVES))


def _spans(columns: list[_Ints]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in _joined(columns)], names=list(_MOVES))


def _joined(columns: list[_Ints]) -> list[_Ints]:
    """Spans that follow each other as one; the last two columns are the first and last of each."""
    order = np.lexsort(tuple(reversed(columns)))
    *keys, first, last = (column[order] for column in columns)
    follows = first[1:] == last[:-1] + 1
    for key in keys:
        follows &= key[1:] == key[:-1]
    begins = np.concatenate(([True], ~follows))
    ends = np.concatenate((~follows, [True]))
    return [*(key[begins] for key in keys), first[begins], last[ends]]
