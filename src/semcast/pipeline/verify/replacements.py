"""Which of the messages that a debtor lacks it has a replacement of, among what it holds.

Most are found by a join: a later message of the same item, or one that names them. Only where messages name
others, and what they name is lacking too, all edges of a run meet in one task.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import AnnotationKind
from semcast.pipeline.verify import relation
from semcast.pipeline.verify.relation import MEMBER_TYPE, Replacements, annotated_within, node_columns
from semcast.pipeline.verify.run_index import Keep, RunIndex, with_author

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
    listed = keep(relation.listed_edges(annotated, positions))
    if listed.isEmpty():
        return keep(by_item)
    held = keep(annotated_within(theirs, annotated, "debtor"))
    found = keep(by_item.union(_named_by(wanted, held, listed)).distinct())
    edges = listed.union(relation.chain_edges(relation.chains(annotated)))
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
