"""Which of the messages that a process lacks it has a replacement of.

Only messages that are lacking are looked at. Most are covered at once: by a later message of the same item,
or by a message that names them. What is left flows along the edges between lacking messages, in one task for
each process of a run.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.verify.graph import covered_rows
from semcast.pipeline.verify.relation import MEMBER_TYPE, annotated_within, chain_edges, node_columns

_MESSAGE = ["run", "sender", "seq"]
_POINT = ["run", "process", "sender", "seq"]


def lacking_points(lacking: DataFrame, annotated: DataFrame) -> DataFrame:
    """The annotated messages inside the spans that processes lack: (run, process, sender, seq)."""
    return annotated_within(lacking, annotated, "process").select(*_POINT)


def relevant_chains(chains: DataFrame, points: DataFrame) -> DataFrame:
    """The item tags of lacking messages."""
    return chains.join(points.select(*_MESSAGE).distinct(), _MESSAGE).select(*chains.columns)


def relevant_edges(edges: DataFrame, points: DataFrame) -> DataFrame:
    """The edges from lacking messages."""
    return edges.join(points.select(*_MESSAGE).distinct(), _MESSAGE).select(*edges.columns)


def covered_at_once(points: DataFrame, chains: DataFrame, listed: DataFrame) -> DataFrame:
    """Lacking messages that a delivered one replaces directly, or by its item."""
    back = Window.partitionBy("run", "process", "sender", "item").orderBy(fn.desc("seq"))
    by_item = (
        points.join(chains, _MESSAGE)
        .select(*_POINT, "later", (fn.row_number().over(back) - 1).alias("later_lacking"))
        .where("later > later_lacking")
        .select(*_POINT)
    )
    named = points.join(listed, _MESSAGE).join(
        _as_new(points), ["run", "process", "new_sender", "new_seq"], "left_anti"
    )
    return by_item.union(named.select(*_POINT)).distinct().select(*_POINT)


def covered_through_others(
    points: DataFrame, at_once: DataFrame, chains: DataFrame, listed: DataFrame
) -> DataFrame:
    """Lacking messages whose replacements are lacking too, but covered in the end."""
    edges = listed.union(chain_edges(chains))
    known = _as_new(at_once).withColumn("covered", fn.lit(True))
    new = ["run", "process", "new_sender", "new_seq"]
    hops = (
        points.join(at_once, _POINT, "left_anti")
        .join(edges, _MESSAGE)
        .join(_as_new(points), new, "left_semi")
        .join(known, new, "left")
        .select(*_POINT, *node_columns(), fn.coalesce("covered", fn.lit(False)).alias("covered"))
    )
    hopeful = at_once.select("run", "process").distinct()
    return (
        hops.join(hopeful, ["run", "process"], "left_semi")
        .select(*_POINT, "old", "new", "covered")
        .groupBy("run", "process")
        .applyInArrow(covered_rows, f"run string, process {MEMBER_TYPE}, sender {MEMBER_TYPE}, seq bigint")
        .select(*_POINT)
    )


def _as_new(points: DataFrame) -> DataFrame:
    return points.select(
        "run", "process", fn.col("sender").alias("new_sender"), fn.col("seq").alias("new_seq")
    )
