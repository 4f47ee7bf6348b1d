"""What replaces what, circles of it, and which of the messages that a debtor lacks it has a replacement of.

The relation is edges from a message to one that replaces it; an item tag needs only the edge to the next
message with the same tag. Most replacements are found by a join: a later message of the same item, or one
that names them. Only where messages name others, and what they name is lacking too, all edges of a run meet
in one task.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import AnnotationKind, Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.folds import Flags, Ints
from semcast.pipeline.verify.run_index import Keep, RunIndex, with_author
from semcast.pipeline.verify.violations import violations

MEMBER_TYPE = "struct<name: string, incarnation: bigint>"
POSITIONS = {"run": TEXT, "sender": MEMBER, "seq": WHOLE, "position": WHOLE}
_BIN = 64
"""Spans and messages meet where they have a bin of so many numbers in common."""

_EDGE = ("run", "sender", "seq", "new_sender", "new_seq")


def annotated_within(spans: DataFrame, annotated: DataFrame, whose: str) -> DataFrame:
    """The annotated messages inside spans (whose, run, sender, first, last): (whose, run, sender, seq)."""
    within = fn.sequence(fn.expr(f"first div {_BIN}"), fn.expr(f"last div {_BIN}"))
    cut = spans.select(whose, "run", "sender", "first", "last", fn.explode(within).alias("bin"))
    notes = annotated.select("run", "sender", "seq", fn.expr(f"seq div {_BIN}").alias("bin"))
    inside = notes.join(cut, ["run", "sender", "bin"]).where("seq between first and last")
    return inside.select(whose, "run", "sender", "seq")


def positions(events: DataFrame, purges: DataFrame, annotated: DataFrame) -> DataFrame:
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""
    placed = of_kind(events, Kind.MULTICAST, Kind.DELIVER).union(purges).where("order is not null")
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


_MESSAGE = ["run", "sender", "seq"]
_POINT = ["debtor", "run", "sender", "seq"]
_ITEM = ["run", "sender", "item"]


def covered(
    run_index: RunIndex, lacking: DataFrame, holding: DataFrame, positions: DataFrame
) -> DataFrame | None:
    """What of the messages in spans that debtors lack is replaced by one in spans that they hold.

    Spans are (debtor, author, first, last); comes back as (debtor, author, seq), None for nothing.
    """
    owed, held = run_index.of_senders(lacking), run_index.of_senders(holding)
    found = _covered(owed, held, run_index.annotated, positions, run_index.keep)
    if found is None:
        return None
    return with_author(found, run_index.people).select("debtor", "author", "seq")


class ReplacementsInViews:
    """The same inside views: both messages were multicast in the view, and so was everything in between.

    The transforms know runs. Here each view is one, named by its number.
    """

    def __init__(self, run_index: RunIndex, sent: DataFrame, positions: DataFrame) -> None:
        """`sent` is (view, author, first, last)."""
        self._run_index = run_index
        notes = run_index.annotated
        spans = run_index.of_senders(sent.select(fn.col("view").alias("debtor"), "author", "first", "last"))
        where = annotated_within(spans, notes, "debtor").withColumnRenamed("debtor", "view").distinct()
        where = run_index.keep(where)
        self._notes = run_index.keep(notes.join(where, _MESSAGE).select(_as_run(), "sender", "seq", "note"))
        self._positions = positions.join(where, _MESSAGE).select(_as_run(), "sender", "seq", "position")

    def covered(self, lacking: DataFrame, holding: DataFrame, debtors: DataFrame) -> DataFrame:
        """What of the spans that debtors lack is replaced by something in spans that they hold.

        Spans are (debtor, author, first, last), and `debtors` is (debtor, view, run). Comes back as
        (debtor, author, seq).
        """
        owed, held = (self._in_views(spans, debtors) for spans in (lacking, holding))
        found = _covered(owed, held, self._notes, self._positions, self._run_index.keep)
        if found is None:
            return self._run_index.table([], "debtor", "author", "seq")
        known = found.drop("run").join(fn.broadcast(debtors.select("debtor", "run")), "debtor")
        return with_author(known, self._run_index.people).select("debtor", "author", "seq")

    def _in_views(self, spans: DataFrame, debtors: DataFrame) -> DataFrame:
        known = self._run_index.of_senders(spans).drop("run").join(fn.broadcast(debtors), "debtor")
        return known.select("debtor", _as_run(), "sender", "first", "last")


def _as_run() -> Column:
    return fn.col("view").cast("string").alias("run")


def _covered(
    lacking: DataFrame, holding: DataFrame, annotated: DataFrame, positions: DataFrame, keep: Keep
) -> DataFrame | None:
    """Of spans (debtor, run, sender, first, last), what is replaced: (debtor, run, sender, seq)."""
    wanted = keep(annotated_within(lacking, annotated, "debtor"))
    if wanted.isEmpty():
        return None
    concerned = fn.broadcast(wanted.select("debtor").distinct())
    theirs = holding.join(concerned, "debtor", "left_semi")
    items = annotated.where(fn.col("note.kind") == AnnotationKind.ITEM.value)
    items = items.select(*_MESSAGE, "note.item")
    same_items = keep(items.join(items.join(wanted, _MESSAGE).select(*_ITEM).distinct(), _ITEM))
    by_item = _later_of_item(wanted, annotated_within(theirs, same_items, "debtor"), same_items)
    listed = keep(listed_edges(annotated, positions))
    if listed.isEmpty():
        return keep(by_item)
    held = keep(annotated_within(theirs, annotated, "debtor"))
    found = keep(by_item.union(_named_by(wanted, held, listed)).distinct())
    edges = listed.union(chain_edges(chains(annotated)))
    rest = keep(wanted.exceptAll(found).join(edges, _MESSAGE, "left_semi").select(*_POINT))
    return found if rest.isEmpty() else found.union(_through_others(rest, held, edges))


def _later_of_item(lacking: DataFrame, held: DataFrame, items: DataFrame) -> DataFrame:
    """Lacking points of which a later message of the same item is held."""
    tops = held.join(items, _MESSAGE).groupBy("debtor", *_ITEM).agg(fn.max("seq").alias("top"))
    points = lacking.join(items, _MESSAGE).join(tops, ["debtor", *_ITEM])
    return points.where("top > seq").select(*_POINT)


def _named_by(lacking: DataFrame, held: DataFrame, listed: DataFrame) -> DataFrame:
    """Lacking points that a held one names."""
    new = held.select("debtor", "run", fn.col("sender").alias("new_sender"), fn.col("seq").alias("new_seq"))
    named = lacking.join(listed, _MESSAGE).join(new, ["debtor", "run", "new_sender", "new_seq"], "left_semi")
    return named.select(*_POINT)


def _through_others(lacking: DataFrame, held: DataFrame, edges: DataFrame) -> DataFrame:
    """Lacking points whose replacements are not held, but have replacements that are, and so on."""
    nothing = fn.lit(None)
    member = nothing.cast(MEMBER_TYPE).alias("sender")
    long = nothing.cast("long")
    node = fn.xxhash64("sender", "seq").alias("old")
    runs = fn.broadcast(lacking.select("run").distinct())
    debtors = fn.broadcast(lacking.select("debtor").distinct())
    graph = edges.join(runs, "run", "left_semi").select(
        "run", long.alias("debtor"), member, long.alias("seq"), *node_columns()
    )
    seeds = held.join(debtors, "debtor", "left_semi").select(
        "run", "debtor", member, long.alias("seq"), node, long.alias("new")
    )
    wanted = lacking.select("run", "debtor", "sender", "seq", node, long.alias("new"))
    schema = f"debtor bigint, run string, sender {MEMBER_TYPE}, seq bigint"
    return graph.union(seeds).union(wanted).groupBy("run").applyInArrow(_reached(), schema).select(*_POINT)


def _reached() -> Callable[[pa.Table], pa.Table]:
    def reached(table: pa.Table) -> pa.Table:
        """Edges have a `new`, points have a debtor; those that are lacking have a number as well."""
        is_edge = table.column("new").is_valid().to_numpy()
        is_lacking = table.column("seq").is_valid().to_numpy()
        old = table.column("old").to_numpy()
        debtor = table.column("debtor").fill_null(-1).to_numpy()
        new = table.column("new").filter(pa.array(is_edge)).to_numpy()
        graph = Replacements(old[is_edge], new)
        found = np.zeros(len(old), dtype=np.bool_)
        for number in np.unique(debtor[is_lacking]):
            seeds = old[~is_edge & ~is_lacking & (debtor == number)]
            mine = np.flatnonzero(is_lacking & (debtor == number))
            found[mine] = graph.reached_nodes(seeds, old[mine])
        return table.select(["debtor", "run", "sender", "seq"]).filter(pa.array(found))

    return reached
