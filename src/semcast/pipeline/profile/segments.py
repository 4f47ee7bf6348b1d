"""A trace in pieces that follow each other, folded where they lie (`fold.py`) and joined where they meet.

Files are mostly in order already, so that nothing has to be sorted: the driver looks whether the pieces of
each stream lie one after the other. If they do not, rows are sorted over contiguous partitions and folded
again. The driver then knows how many messages stand before each piece, and puts bursts together over edges.
Distances over edges are between the last update of an item in a piece and its first in the next that has one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.frames import keep
from semcast.pipeline.profile.merge import JOINED, joining
from semcast.pipeline.profile.partial import FOLDED, Cut, folding, unpacked
from semcast.pipeline.profile.validate import Trace

_FOLDED, _JOINED = from_arrow_schema(FOLDED), from_arrow_schema(JOINED)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What folding found."""

    folded: DataFrame
    of_stream: dict[str, list[Row]]
    """The pieces of each stream, in order."""

    cut: Cut

    @property
    def in_order(self) -> bool:
        """Whether no two pieces of a stream overlap."""
        return all(
            before["last"] < piece["first"]
            for pieces in self.of_stream.values()
            for before, piece in pairwise(pieces)
        )


def fold_trace(trace: Trace, cut: Cut, kept: ExitStack) -> Pieces:
    """Fold the rows as they lie, or sorted if need be."""
    pieces = _folded(trace, trace.blocks, cut, kept)
    if pieces.in_order:
        return pieces
    ordered = trace.rows.repartitionByRange(cut.shares, "stream", "seq").sortWithinPartitions("stream", "seq")
    return _folded(trace, ordered.withColumn("block", fn.lit(0).cast("long")), cut, kept)


def _folded(trace: Trace, rows: DataFrame, cut: Cut, kept: ExitStack) -> Pieces:
    only = trace.streams[0].stream if len(trace.streams) == 1 else None
    item = fn.when(fn.col("kind") == "update", fn.col("key")).alias("item")
    columns = rows.select("seq", "ts", item, "block", *([] if only is not None else ["stream"]))
    folded = keep(columns.mapInArrow(folding(cut, only), _FOLDED), kept)
    of_stream = defaultdict(list)
    for piece in folded.where("share is null").collect():
        of_stream[piece["stream"]].append(piece)
    ordered = {stream: sorted(pieces, key=_first) for stream, pieces in of_stream.items()}
    return Pieces(folded, ordered, cut)


def _first(piece: Row) -> int:
    return int(piece["first"])


def joined(pieces: Pieces) -> DataFrame:
    """(stream, key, distance, n): the updates of each key, and those with each distance (see `JOINED`)."""
    before = {
        (stream, piece["piece"]): rows
        for stream, mine in pieces.of_stream.items()
        for piece, rows in zip(mine, accumulate((p["n"] for p in mine), initial=0), strict=False)
    }
    shares = pieces.folded.where("share is not null").repartition(pieces.cut.shares, "share")
    return shares.select("stream", "piece", "items", "distances").mapInArrow(joining(before), _JOINED)


def distances(joined: DataFrame) -> DataFrame:
    """(stream, distance, n): how many updates are so far from the next of their key."""
    return joined.where("key is null").select("stream", "distance", "n")


def items(joined: DataFrame) -> DataFrame:
    """(stream, key, updates): how often each item is written."""
    return joined.where("key is not null").select("stream", "key", fn.col("n").alias("updates"))


def bursts(pieces: Pieces) -> dict[str, Counter[int]]:
    """For each stream, how many bursts have how many messages."""
    return {stream: _bursts(mine, pieces.cut.gap) for stream, mine in pieces.of_stream.items()}


def _bursts(pieces: Sequence[Row], gap: float) -> Counter[int]:
    """Those inside of pieces, and those that touch an edge."""
    counts = Counter[int]()
    size = 0
    for number, piece in enumerate(pieces):
        inside = unpacked(bytes(piece["bursts"])).to_pydict()
        counts.update(dict(zip(inside["value"], inside["n"], strict=True)))
        if number and abs(piece["began"] - pieces[number - 1]["ended"]) > gap:
            counts[size] += 1
            size = 0
        size += piece["head"]
        if piece["head"] < piece["n"]:
            counts[size] += 1
            size = piece["tail"]
    counts[size] += 1
    return counts
