"""The obsolescence relation over annotated messages, as edges from a message to one that replaces it.

An item tag needs only the edge to the next message with the same tag.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import AnnotationKind, Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE
from semcast.pipeline.verify.arrays import Flags, Ints
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.violations import violations

MEMBER_TYPE = "struct<name: string, incarnation: bigint>"
POSITIONS = {"run": TEXT, "sender": MEMBER, "seq": WHOLE, "position": WHOLE}
_BIN = 64
"""Spans and messages meet where they have a bin of so many numbers in common."""

_EDGE = ("run", "sender", "seq", "new_sender", "new_seq")


def annotated(events: DataFrame) -> DataFrame:
    """The messages that say something about obsolescence: (run, sender, seq, note)."""
    return (
        of_kind(events, Kind.MULTICAST)
        .where("annotation is not null")
        .select("run", "sender", "seq", fn.col("annotation").alias("note"))
    )


def annotated_within(spans: DataFrame, annotated: DataFrame, whose: str) -> DataFrame:
    """The annotated messages inside spans (whose, run, sender, first, last): (whose, run, sender, seq)."""
    within = fn.sequence(fn.expr(f"first div {_BIN}"), fn.expr(f"last div {_BIN}"))
    cut = spans.select(whose, "run", "sender", "first", "last", fn.explode(within).alias("bin"))
    notes = annotated.select("run", "sender", "seq", fn.expr(f"seq div {_BIN}").alias("bin"))
    inside = notes.join(cut, ["run", "sender", "bin"]).where("seq between first and last")
    return inside.select(whose, "run", "sender", "seq")


def positions(events: DataFrame, annotated: DataFrame) -> DataFrame:
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""
    placed = of_kind(events, Kind.MULTICAST, Kind.DELIVER, Kind.PURGE).where("order is not null")
    seq = fn.explode(fn.sequence("seq", "last"))
    return (
        placed.select("run", "sender", (fn.col("order") - fn.col("seq")).alias("shift"), seq.alias("seq"))
        .select("run", "sender", "seq", (fn.col("shift") + fn.col("seq")).alias("position"))
        .distinct()
        .join(annotated, ["run", "sender", "seq"], "left_semi")
        .select("run", "sender", "seq", "position")
    )


def chains(annotated: DataFrame) -> DataFrame:
    """Item tags: (run, sender, seq, item, next, later), the next of the same tag and how many come later."""
    along = Window.partitionBy("run", "sender", "item").orderBy("seq")
    back = Window.partitionBy("run", "sender", "item").orderBy(fn.desc("seq"))
    return (
        annotated.where(fn.col("note.kind") == AnnotationKind.ITEM.value)
        .select("run", "sender", "seq", "note.item")
        .select(
            "run",
            "sender",
            "seq",
            "item",
            fn.lead("seq").over(along).alias("next"),
            (fn.row_number().over(back) - 1).alias("later"),
        )
    )


def chain_edges(chains: DataFrame) -> DataFrame:
    """The edges of item tags."""
    following = chains.where("next is not null")
    return following.select(
        "run", "sender", "seq", fn.col("sender").alias("new_sender"), fn.col("next").alias("new_seq")
    )


def listed_edges(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    """The edges of enumerations and bitmaps; what they name need not exist."""
    edges = _named(annotated).union(_marked(annotated)).union(_marked_in_total_order(annotated, positions))
    return edges.select(*_EDGE)


def order_violations(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    """Messages whose chain of replacements never ends. Each run's edges meet in one task."""
    listed = listed_edges(annotated, positions)
    real = listed.join(annotated, ["run", "sender", "seq"], "left_semi").select(*_EDGE)
    edges = real.union(chain_edges(chains(annotated))).select("run", "sender", "seq", *node_columns())
    endless = edges.groupBy("run").applyInArrow(endless_rows, f"run string, sender {MEMBER_TYPE}, seq bigint")
    found = endless.select(
        "run",
        fn.col("sender").alias("process"),
        "sender",
        fn.col("seq").alias("first"),
        fn.col("seq").alias("last"),
    )
    return violations(found, "relation_is_order", "its replacements run in a circle")


def node_columns() -> list[Column]:
    """Both ends of an edge as hashes."""
    return [fn.xxhash64("sender", "seq").alias("old"), fn.xxhash64("new_sender", "new_seq").alias("new")]


def _named(annotated: DataFrame) -> DataFrame:
    """Enumerations: what they name, except themselves."""
    named = annotated.where(fn.col("note.kind") == AnnotationKind.ENUMERATION.value).select(
        "run",
        fn.col("sender").alias("new_sender"),
        fn.col("seq").alias("new_seq"),
        fn.explode("note.ids").alias("id"),
    )
    sender = fn.struct(fn.col("id.sender").alias("name"), fn.col("id.incarnation").alias("incarnation"))
    return (
        named.select("run", sender.alias("sender"), fn.col("id.seq").alias("seq"), "new_sender", "new_seq")
        .where((fn.col("sender") != fn.col("new_sender")) | (fn.col("seq") != fn.col("new_seq")))
        .select(*_EDGE)
    )


def _marked(annotated: DataFrame) -> DataFrame:
    """Bitmaps over the sender's own numbers: only earlier ones count."""
    return (
        _marks(annotated.where("not note.total"))
        .where(fn.col("position") < fn.col("new_seq"))
        .select(
            "run",
            fn.col("new_sender").alias("sender"),
            fn.col("position").alias("seq"),
            "new_sender",
            "new_seq",
        )
    )


def _marked_in_total_order(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    return _marks(annotated.where("note.total")).join(positions, ["run", "position"]).select(*_EDGE)


def _marks(annotated: DataFrame) -> DataFrame:
    """The positions that bitmaps replace: (run, new_sender, new_seq, position)."""
    bitmaps = annotated.where(
        (fn.col("note.kind") == AnnotationKind.K_ENUMERATION.value) & (fn.length("note.bitmap") > 0)
    )
    value = fn.conv(fn.hex(fn.substring("bitmap", fn.col("byte"), fn.lit(1))), 16, 10).cast("int")
    is_set = fn.expr("filter(sequence(0, 7), bit -> shiftright(value, bit) % 2 = 1)")
    return (
        bitmaps.select("run", "sender", "seq", "note.base", "note.bitmap")
        .select("*", fn.explode(fn.sequence(fn.lit(1), fn.length("bitmap"))).alias("byte"))
        .select("*", value.alias("value"))
        .where("value != 0")
        .select("*", fn.explode(is_set).alias("bit"))
        .select(
            "run",
            fn.col("sender").alias("new_sender"),
            fn.col("seq").alias("new_seq"),
            (fn.col("base") - (fn.col("byte") - 1) * 8 - fn.col("bit") - 1).alias("position"),
        )
    )


class Replacements:
    """Edges from a message (`new`) to one that it replaces (`old`), by node: 0, 1, 2, ..."""

    def __init__(self, old: Ints, new: Ints) -> None:
        self._nodes, places = np.unique(np.concatenate((old, new)), return_inverse=True)
        self.size = len(self._nodes)
        self.old, self.new = places[: len(old)], places[len(old) :]
        by_new = np.argsort(self.new, kind="stable")
        self._olds = self.old[by_new]
        self._start = np.searchsorted(self.new[by_new], np.arange(self.size + 1))

    def replaced(self, news: Ints) -> Ints:
        """What these replace, once for each edge."""
        counts = self._start[news + 1] - self._start[news]
        before = np.repeat(np.cumsum(counts) - counts, counts)
        places: Ints = np.repeat(self._start[news], counts) + np.arange(counts.sum()) - before
        olds: Ints = self._olds[places]
        return olds

    def reached(self, seeds: Ints) -> Flags:
        """The seeds and everything that they replace, directly or through others."""
        reached = np.zeros(self.size, dtype=np.bool_)
        front = np.unique(seeds)
        while len(front):
            reached[front] = True
            olds = self.replaced(front)
            front = np.unique(olds[~reached[olds]])
        return reached

    def reached_nodes(self, seeds: Ints, asked: Ints) -> Flags:
        """Which of the nodes that are asked for are reached from seeds; both need not be in any edge."""
        reached = self.reached(self._places(seeds[np.isin(seeds, self._nodes)]))
        known: Flags = np.isin(asked, self._nodes)
        known[known] = reached[self._places(asked[known])]
        return known

    def _places(self, nodes: Ints) -> Ints:
        places: Ints = np.searchsorted(self._nodes, nodes)
        return places

    def endless(self) -> Flags:
        """Those whose chain of replacements never ends."""
        waiting = np.bincount(self.old, minlength=self.size)
        front = np.flatnonzero(waiting == 0)
        while len(front):
            olds, times = np.unique(self.replaced(front), return_counts=True)
            waiting[olds] -= times
            front = olds[waiting[olds] == 0]
        result: Flags = waiting > 0
        return result


def endless_rows(table: pa.Table) -> pa.Table:
    """Of edges (..., old, new) of one run those whose old message has no last replacement."""
    edges = Replacements(table.column("old").to_numpy(), table.column("new").to_numpy())
    return _first_rows(table, edges.old, edges.endless())


def _first_rows(table: pa.Table, old: Ints, chosen: Flags) -> pa.Table:
    """The first row of each chosen node, without the last columns, which are about edges."""
    nodes, rows = np.unique(old, return_index=True)
    columns = table.column_names[: table.column_names.index("old")]
    return table.select(columns).take(np.sort(rows[chosen[nodes]]))
