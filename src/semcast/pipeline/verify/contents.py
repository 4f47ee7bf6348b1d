"""Whether what was delivered contains what was multicast, by the CRCs of rows (`semcast.specs.contents`).

Where a process delivered all that was multicast, one CRC over everything is enough. Of others the rows of
sender and receiver are lined up, a stretch of numbers at a time; what reaches over the edge of a stretch is
left over, and lined up in the end.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history.crc import crc32_combine
from semcast.pipeline.verify.alignment import COLUMNS, COMPARED, DIFFERENT, LEFT_OVER, Flags, align
from semcast.pipeline.verify.crcs import Ints
from semcast.pipeline.verify.folds import DELIVERED, INDEX, INDEX_BITS, Batches, Rows
from semcast.pipeline.verify.reading import longs
from semcast.pipeline.verify.scene import Scene, numbered_violations

STRETCH_BITS = 18
"""Of the numbers of a stretch. No result depends on it."""

_PAIR_BITS = 32
_SCHEMA = longs("stretch", *COLUMNS)
_ALIGNED = ", ".join(f"{name} long" for name in COLUMNS)

Pair = tuple[int, int]
"""The numbers of a process and of a sender."""


def deliveries(pairs: DataFrame) -> DataFrame:
    """How many messages of each sender each process delivered: (run, process, sender, messages, same)."""
    return pairs.where("messages > 0").select("run", "process", "sender", "messages", "same")


def unsure(scene: Scene, delivered: Iterable[Row]) -> dict[Pair, int]:
    """Who delivered something of whom that is not known to be the same, and how many messages."""
    sums = _sums(scene.contents.collect())
    found = {}
    for row in delivered:
        who, author = (scene.numbers[row["run"], _member(row[name])] for name in ("process", "sender"))
        sent = sums.get((author, author, 1))
        if not row["same"] or sent is None or sums.get((who, author, 0)) != sent:
            found[who, author] = int(row["messages"])
    return found


def _sums(rows: Iterable[Row]) -> dict[tuple[int, int, int], tuple[int, int] | None]:
    """CRC and size of everything, by process, sender and 1 for what was sent; None if it is not known."""
    sums: dict[tuple[int, int, int], tuple[int, int] | None] = {}
    ends: dict[tuple[int, int, int], int] = {}
    for row in sorted(rows, key=lambda row: int(row["begin"])):
        key = row["who"], row["author"], row["sent"]
        before = sums.get(key, (0, 0))
        if before is None or row["crc"] < 0 or row["begin"] <= ends.get(key, -1):
            sums[key] = None  # rows of other batches lie between, if they overlap
        else:
            crc, size = before
            sums[key] = crc32_combine(crc, row["crc"], row["size"]), size + row["size"]
        ends[key] = max(row["end"], ends.get(key, -1))
    return sums


def lined_up(scene: Scene, unsure: Mapping[Pair, int], *, bits: int = STRETCH_BITS) -> DataFrame:
    """What comes of lining up the rows of these pairs, in the columns of `alignment`."""
    rows = scene.over_messages(_picking(list(unsure), bits), _SCHEMA)
    if scene.in_one_task:
        return rows.groupBy().applyInArrow(align, _ALIGNED)
    found = scene.keep(rows.groupBy("stretch").applyInArrow(align, _ALIGNED))
    rest = found.where(fn.col("what") == LEFT_OVER).groupBy("who", "author").applyInArrow(align, _ALIGNED)
    return found.where(fn.col("what") != LEFT_OVER).union(rest)


def not_compared(scene: Scene, unsure: Mapping[Pair, int], lined_up: DataFrame) -> dict[str, int]:
    """By run, how many messages were delivered whose contents could not be compared."""
    compared = lined_up.where(fn.col("what") == COMPARED).groupBy("who", "author")
    told = compared.agg(fn.sum("size").alias("messages")).collect()
    of_pair = {(row["who"], row["author"]): int(row["messages"]) for row in told}
    found: dict[str, int] = {}
    for pair, messages in unsure.items():
        run, _ = scene.everybody[pair[0]]
        found[run] = found.get(run, 0) + messages - of_pair.get(pair, 0)
    return found


def violations(scene: Scene, lined_up: DataFrame) -> DataFrame:
    """The stretches with other contents than were multicast, each one case, at its first message."""
    rows = lined_up.where(fn.col("what") == DIFFERENT).select(
        "who", "author", "first", fn.col("first").alias("last"), "index"
    )
    reason = "delivered with other contents than were multicast, here or soon after"
    return scene.named(numbered_violations(rows, "integrity", reason, index=fn.col("index")))


def _picking(pairs: list[Pair], bits: int) -> Callable[[Batches], Batches]:
    """The rows of these pairs whose contents are known: those of a sender once for each receiver."""
    receivers: dict[int, list[tuple[int, int]]] = {}
    for number, (who, author) in enumerate(pairs):
        receivers.setdefault(author, []).append((who, number))

    def pick(batches: Batches) -> Batches:
        for batch in batches:
            rows = Rows.of(batch)
            who, sent = rows.place >> INDEX_BITS, rows.what != DELIVERED
            for author in np.unique(rows.author).tolist():
                known = (rows.author == author) & (rows.crc >= 0)
                for receiver, number in receivers.get(author, ()):
                    chosen = known & (sent | (who == receiver))
                    if chosen.any():
                        stretch = (number << _PAIR_BITS) + (rows.first[chosen] >> bits)
                        yield _picked(rows, sent, chosen, receiver, stretch)

    return pick


def _picked(rows: Rows, sent: Flags, chosen: Flags, receiver: int, stretch: Ints) -> pa.RecordBatch:
    first = rows.first[chosen]
    columns = {
        "stretch": stretch,
        "what": np.full(len(first), LEFT_OVER),
        "who": np.full(len(first), receiver),
        "author": rows.author[chosen],
        "sent": sent[chosen].astype(np.int64),
        "first": first,
        "last": rows.last[chosen],
        "size": rows.size[chosen],
        "crc": rows.crc[chosen],
        "index": rows.place[chosen] & INDEX,
    }
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))


def _member(struct: Row) -> MemberId:
    return MemberId(struct["name"], struct["incarnation"])
