"""Which of the messages that a debtor lacks it has a replacement of, among what it delivered itself.

Most are found by a join: a later message of the same item, or one that names them. For the rest all edges
of their run meet in one task.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify import relation
from semcast.pipeline.verify.graph import Replacements
from semcast.pipeline.verify.relation import MEMBER_TYPE, annotated_within, chain_edges, node_columns

Keep = Callable[[DataFrame], DataFrame]

_MESSAGE = ["run", "sender", "seq"]
_POINT = ["debtor", "run", "sender", "seq"]


def covered(
    lacking: DataFrame, holding: DataFrame, annotated: DataFrame, positions: DataFrame, keep: Keep
) -> DataFrame | None:
    """What of the messages in spans that debtors lack is replaced by one in spans that they hold.

    Spans are (debtor, run, sender, first, last); comes back as (debtor, run, sender, seq), None for nothing.
    """
    wanted = keep(points(lacking, annotated))
    if wanted.isEmpty():
        return None
    concerned = fn.broadcast(wanted.select("debtor").distinct())
    held = keep(points(holding.join(concerned, "debtor", "left_semi"), annotated))
    chains = keep(relation.chains(annotated))
    listed = keep(relation.listed_edges(annotated, positions))
    found = keep(at_once(wanted, held, chains, listed))
    edges = all_edges(chains, listed)
    rest = keep(hopeful(wanted.exceptAll(found), edges))
    return found if rest.isEmpty() else found.union(through_others(rest, held, edges))


def points(spans: DataFrame, annotated: DataFrame) -> DataFrame:
    """The annotated messages inside spans (debtor, run, sender, first, last): (debtor, run, sender, seq)."""
    return annotated_within(spans, annotated, "debtor").select(*_POINT)


def at_once(lacking: DataFrame, held: DataFrame, chains: DataFrame, listed: DataFrame) -> DataFrame:
    """Lacking points that a held one replaces directly, or by its item."""
    items = chains.select(*_MESSAGE, "item")
    tops = (
        held.join(items, _MESSAGE).groupBy("debtor", "run", "sender", "item").agg(fn.max("seq").alias("top"))
    )
    by_item = (
        lacking.join(items, _MESSAGE)
        .join(tops, ["debtor", "run", "sender", "item"])
        .where("top > seq")
        .select(*_POINT)
    )
    new = held.select("debtor", "run", fn.col("sender").alias("new_sender"), fn.col("seq").alias("new_seq"))
    named = lacking.join(listed, _MESSAGE).join(new, ["debtor", "run", "new_sender", "new_seq"], "left_semi")
    return by_item.union(named.select(*_POINT)).distinct().select(*_POINT)


def hopeful(lacking: DataFrame, edges: DataFrame) -> DataFrame:
    """Lacking points that have any replacement."""
    return lacking.join(edges, _MESSAGE, "left_semi").select(*_POINT)


def all_edges(chains: DataFrame, listed: DataFrame) -> DataFrame:
    """Every edge of the relation."""
    return listed.union(chain_edges(chains))


def through_others(lacking: DataFrame, held: DataFrame, edges: DataFrame) -> DataFrame:
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
